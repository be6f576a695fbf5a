"""The verbs of the debugger by name: how each is called, by every door."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from intersession_actors.debugger.lens import Lens, lens
from intersession_actors.debugger.show import Show, show
from intersession_actors.debugger.state import State, state
from intersession_actors.debugger.view import View


class Verb(msgspec.Struct, frozen=True, kw_only=True):
    """A verb, and all that doors need to know of it. It reads, and changes nothing.

    `title` is what a person sees, `description` what a model reads. `arguments` is a struct with a default for whatever may be left
    out; `call` returns a plain JSON object.
    """

    name: str
    title: str
    description: str
    arguments: type[msgspec.Struct]
    call: Callable[[View, Any], Mapping[str, object]]  # its own arguments, which `arguments` names


VERBS: Final[Mapping[str, Verb]] = {
    verb.name: verb
    for verb in (
        Verb(
            name="lens",
            title="What an agent was given",
            description=(
                "Exactly what an agent was given in an attempt of a run: system context, transcript, message, tools with "
                "schemas, model, deadline; rebuilt from the log and held against the hash recorded then (`asRecorded`). "
                "`dialect` also gives it as a model got it."
            ),
            arguments=Lens,
            call=lens,
        ),
        Verb(
            name="show",
            title="Sequence diagram",
            description=(
                "An exchange, a spawn or a run as a sequence diagram: who takes part (`lanes`), who said what to whom and what "
                "happened besides (`rows`, in log order, lanes by number)."
            ),
            arguments=Show,
            call=show,
        ),
        Verb(
            name="state",
            title="State at a place",
            description=(
                "Everything as it stood at a place of the log: sessions with their transcripts, runs, exchanges, what was "
                "open; with `from` and `to`, what differs between two places. A place is a position, event:ID, an ISO "
                "time, head, or RUN@start, RUN@reply, RUN@turn:N, RUN@announce, RUN@end."
            ),
            arguments=State,
            call=state,
        ),
    )
}

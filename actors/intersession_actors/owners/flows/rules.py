"""The rules of one kind of flow, and the format of its decision records: the same for a system, a replay and `why`."""

from collections.abc import Callable, Iterable, Sequence
from types import UnionType
from typing import Generic, NamedTuple, TypeGuard, TypeVar

from intersession_actors.owners.streams.commands import Refused
from intersession_actors.owners.streams.effects import Effect
from intersession_actors.owners.streams.records import Record, Words
from intersession_actors.rules.config.config import Config
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import Event
from intersession_events.log.recorded import Recorded

S = TypeVar("S")
C = TypeVar("C")
N = TypeVar("N")


class RecordRead(NamedTuple):
    """The decision record of a stream, in the log with that id; `words` returns the texts that it refers to."""

    record: Record
    stream: str
    log_id: str
    words: Words


class Rules(NamedTuple, Generic[S, C, N]):
    """The rules of exchanges, spawns or deliveries: states `S`, commands `C`, circumstances `N`. All are pure."""

    commands: UnionType
    """What can be told to a flow."""
    events: UnionType
    """What its stream has."""
    begins: type[Event]
    """What its stream begins with."""
    fold: Callable[[S | None, Recorded], S]
    decide: Callable[[S, C, N], Sequence[Event] | Refused]
    effects: Callable[[S, Recorded, Config], Sequence[Effect]]
    """Says what a durable event asks for; the state is the one after it."""
    inputs_of: Callable[[C], JsonObject]
    """Says what a record has of a command beside its name."""
    knew_of: Callable[[S, N], JsonObject]
    """Says what a record has of circumstances: what is not as it nearly always is."""
    command_in: Callable[[RecordRead], C | None]
    """Reads the command of a record, where the record says all of it."""
    circumstances_in: Callable[[RecordRead, S], N]

    def state_in(self, stream: Iterable[Recorded]) -> S | None:
        """Return the state of a flow after events of its stream; None before its beginning.

        Of a log that somebody else has written, what does not belong there is passed over.
        """
        state: S | None = None
        for recorded in stream:
            if isinstance(recorded.event, self.begins if state is None else self.events):
                state = self.fold(state, recorded)
        return state

    def takes(self, command: object) -> TypeGuard[C]:
        """Whether a command is for flows of this kind."""
        return isinstance(command, self.commands)

"""The verbs of the debugger by name: how each is called, by every door."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from intersession_actors.debugger.diff import Diff, Replay, diff, replay
from intersession_actors.debugger.forks import naming_forks
from intersession_actors.debugger.lens import Lens, lens
from intersession_actors.debugger.lists import (
    Deliveries,
    Events,
    MessagesOf,
    Runs,
    list_deliveries,
    list_events,
    list_messages,
    list_runs,
)
from intersession_actors.debugger.origin import Origin, origin
from intersession_actors.debugger.search import Search, search
from intersession_actors.debugger.show import Show, show
from intersession_actors.debugger.smells import SmellsOf, smells
from intersession_actors.debugger.state import State, state
from intersession_actors.debugger.view import View
from intersession_actors.debugger.why import Why, why


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
            name="runs",
            title="List what happened",
            description=(
                "Exchanges (all that one sessions_send started), spawns, and runs of neither, newest first: their ids, between "
                "whom, how each stands or ended, what became of its texts. All filters hold at once; `smell` marks what is "
                "seldom meant; `cursor` is for more. The other tools take these ids."
            ),
            arguments=Runs,
            call=list_runs,
        ),
        Verb(
            name="messages",
            title="List who said what to whom",
            description=(
                "What people and sessions said to sessions, newest first: from whom, to whom, for which person; with `why` the "
                "message that it all began with, with `delivered` what became of the answers that went outside."
            ),
            arguments=MessagesOf,
            call=list_messages,
        ),
        Verb(
            name="deliveries",
            title="List what went outside",
            description=(
                "Texts that went to a channel, or should have, newest first: where to, in whose name, whether they arrived."
            ),
            arguments=Deliveries,
            call=list_deliveries,
        ),
        Verb(
            name="events",
            title="List events",
            description=(
                "The events of the log, newest first, by name, stream or session: position, time, who, to whom, what it says."
            ),
            arguments=Events,
            call=list_events,
        ),
        Verb(
            name="lens",
            title="What an agent was given",
            description=(
                "Exactly what an agent was given in an attempt of a run: system context, transcript, message, tools with "
                "schemas, model, deadline; rebuilt from the log and held against the hash recorded then (`asRecorded`). "
                "`dialect` also gives it as a model got it."
            ),
            arguments=Lens,
            call=naming_forks(lens, "run", "than"),
        ),
        Verb(
            name="search",
            title="Search for words",
            description=(
                "Where words were said, in all transcripts and events, newest first: `hits` with position, session, run and "
                "the words around; `cursor` is for more. All of the words have to be there, in any case and order."
            ),
            arguments=Search,
            call=search,
        ),
        Verb(
            name="show",
            title="Sequence diagram",
            description=(
                "An exchange, a spawn or a run as a sequence diagram: who takes part (`lanes`), who said what to whom and what "
                "happened besides (`rows`, in log order, lanes by number)."
            ),
            arguments=Show,
            call=naming_forks(show, "run", "at"),
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
            call=naming_forks(state, "of", "at", "from_", "to"),
        ),
        Verb(
            name="why",
            title="Why it is so",
            description=(
                "Why an event is there: its causes over all sessions, back to a person, a call, a timer or a start; and why "
                "an exchange, a spawn, a run or a delivery ended as it did, was refused, or reached nobody: the rule, what "
                "it looked at, what would have changed it. With `forward`, all that it led to. `of` is a place, an event's "
                "id, or the id of an exchange, a spawn, a run or a delivery."
            ),
            arguments=Why,
            call=naming_forks(why, "of"),
        ),
        Verb(
            name="origin",
            title="Where words came from",
            description=(
                "The first message that holds some words, and each hop by which they reached others: who said them first, "
                "and who repeated them. Words that nobody said so are looked for in any case and white space, then by the "
                "longest run of them."
            ),
            arguments=Origin,
            call=naming_forks(origin, "run", "at"),
        ),
        Verb(
            name="smells",
            title="What is seldom meant",
            description=(
                "What is seldom meant in an exchange, a spawn or a run, or without one in all runs of the log, newest first: "
                "turns that repeat each other, a late or a doubled message, a loop that a limit cut, a guard that refused, an "
                "announce that nobody got."
            ),
            arguments=SmellsOf,
            call=naming_forks(smells, "run"),
        ),
        Verb(
            name="diff",
            title="What differs between two runs",
            description=(
                "What differs between two runs, or between two places of one (RUN@turn:1 and RUN@turn:3): aligned by structure "
                "(step, turn, tool call), by what is meant and not by ids and times. `firstDivergence` is where they part, "
                "`turns` is all of both: same, changed (`differs`, words marked), only in a, only in b; then `totals`."
            ),
            arguments=Diff,
            call=diff,
        ),
        Verb(
            name="replay",
            title="Decide a run again",
            description=(
                "Sealed replay: today's rules and actors decide a run again, with what was recorded of people, agents, channels "
                "and times, and nothing else. `same`, or `firstDifference`: the first event that comes out otherwise, field by "
                "field, and the command that led to it. For the operator alone."
            ),
            arguments=Replay,
            call=replay,
        ),
    )
}

"""The verbs of the debugger: how each is called by every door, and as a method of `Debugger`, with the types of its struct and function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final, Generic, ParamSpec, Protocol, Self, TypeVar, cast, overload

import msgspec

from intersession_actors.hindsight.debugger.verbs import on_call
from intersession_events.basics.plain_json import JsonMapping, JsonObject

if TYPE_CHECKING:
    from intersession_actors.hindsight.debugger.view import View

_Taken = ParamSpec("_Taken")
_Arguments = TypeVar("_Arguments")
_Answer = TypeVar("_Answer", bound=Mapping[str, object])

# The arguments of a verb, and what answers them: each of one struct, whichever.
_Loaded = tuple[Any, "Callable[[View, Any], _Answer]"]  # the struct of this verb


class _Calls(Protocol):
    """What a verb is a method of: calls verbs by their names."""

    def call(self, verb: str, arguments: JsonMapping | None = None) -> JsonObject:
        """Call it."""
        ...

    def acall(self, verb: str, arguments: JsonMapping | None = None) -> Coroutine[object, None, JsonObject]:
        """Call it without blocking the event loop."""
        ...


class Verb(Generic[_Taken, _Answer]):
    """A verb with all that doors need to know. It reads, and changes nothing.

    `title` is what a person sees, `description` what a model reads. `loads` gives the struct of its arguments, which has a default
    for whatever may be left out, and the function that answers: both are loaded when they are first asked for. In a class it is a
    method that takes what the struct takes and returns what the function returns; `awaited` is its twin.
    """

    def __init__(
        self,
        name: str,
        *,
        title: str,
        description: str,
        loads: Callable[[], tuple[Callable[_Taken, _Arguments], Callable[[View, _Arguments], _Answer]]],
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self._loads: Callable[[], _Loaded[_Answer]] = loads
        self.awaited: Final = AwaitedVerb(self)

    @property
    def arguments(self) -> type[msgspec.Struct]:
        """Its arguments' struct."""
        kind: type[msgspec.Struct] = self._loads()[0]
        return kind

    def answer(self, view: View, given: msgspec.Struct) -> _Answer:
        """Return its answer, a plain JSON object, for `arguments`."""
        answer = self._loads()[1](view, given)
        told = on_call.limits_applied(given)
        return cast("_Answer", {**answer, **told}) if told else answer

    def given(self, *args: _Taken.args, **kwargs: _Taken.kwargs) -> JsonObject:
        """Return its arguments as JSON; None is left out."""
        named = inspect.signature(self.arguments).bind(*args, **kwargs).arguments
        return {
            field.encode_name: [*value] if isinstance(value, tuple) else value  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - of a caller's
            for field in msgspec.structs.fields(self.arguments)
            if (value := named.get(field.name)) is not None
        }

    def described(self, method: Callable[..., object]) -> None:
        """Give a method the signature and docstring of the verb, for Python's introspection."""
        method.__name__, method.__doc__ = self.name, f"{self.title}. {self.description}"
        method.__signature__ = inspect.signature(self.arguments)  # type: ignore[attr-defined] # pyright: ignore[reportFunctionMemberAccess]

    @overload
    def __get__(self, debugger: None, owner: type) -> Self: ...
    @overload
    def __get__(self, debugger: _Calls, owner: type) -> Callable[_Taken, _Answer]: ...
    def __get__(self, debugger: _Calls | None, owner: type) -> Self | Callable[_Taken, _Answer]:
        if debugger is None:
            return self

        def called(*args: _Taken.args, **kwargs: _Taken.kwargs) -> _Answer:
            return cast("_Answer", debugger.call(self.name, self.given(*args, **kwargs)))

        self.described(called)
        return called


class AwaitedVerb(Generic[_Taken, _Answer]):
    """A verb as a method to be awaited: it blocks a thread in place of the event loop."""

    def __init__(self, verb: Verb[_Taken, _Answer]) -> None:
        self._verb = verb

    @overload
    def __get__(self, debugger: None, owner: type) -> Self: ...
    @overload
    def __get__(
        self, debugger: _Calls, owner: type
    ) -> Callable[_Taken, Coroutine[object, None, _Answer]]: ...
    def __get__(
        self, debugger: _Calls | None, owner: type
    ) -> Self | Callable[_Taken, Coroutine[object, None, _Answer]]:
        if debugger is None:
            return self
        verb = self._verb

        async def awaited(*args: _Taken.args, **kwargs: _Taken.kwargs) -> _Answer:
            return cast("_Answer", await debugger.acall(verb.name, verb.given(*args, **kwargs)))

        verb.described(awaited)
        return awaited


RUNS: Final = Verb(
    "runs",
    title="List what happened",
    description=(
        "Exchanges (all that one sessions_send started), spawns, and runs of neither, newest first: their ids, between "
        "whom, how each stands or ended, what became of its texts. All filters hold at once; `smell` marks what is "
        "seldom meant; `cursor` is for more. The other tools take these ids."
    ),
    loads=lambda: (on_call.Runs, on_call.list_runs),
)

MESSAGES: Final = Verb(
    "messages",
    title="List who said what to whom",
    description=(
        "What people and sessions said to sessions, newest first: from whom, to whom, for which person; with `why` the "
        "message that it all began with, with `delivered` what became of the answers that went outside."
    ),
    loads=lambda: (on_call.MessagesOf, on_call.list_messages),
)

DELIVERIES: Final = Verb(
    "deliveries",
    title="List what went outside",
    description=(
        "Texts that went to a channel, or should have, newest first: where to, in whose name, whether they arrived; by "
        "address (`to`), by the person whose words they came of, by `words`."
    ),
    loads=lambda: (on_call.Deliveries, on_call.list_deliveries),
)

TOLD: Final = Verb(
    "told",
    title="What a person was told",
    description=(
        "Every text for one person, newest first: who said it, on whose behalf, what it answers, when it went out and "
        "whether the channel took it (`reached`); in their direct chats, and in groups where they wrote. For the operator alone."
    ),
    loads=lambda: (on_call.PersonTexts, on_call.list_person_texts),
)

EVENTS: Final = Verb(
    "events",
    title="List events",
    description=(
        "The events of the log, newest first, by name, stream or session: position, time, who, to whom, what it says."
    ),
    loads=lambda: (on_call.Events, on_call.list_events),
)

CALLS: Final = Verb(
    "calls",
    title="List calls of tools",
    description=(
        "Which tools agents called, newest first: in which session and run, with which arguments, what the tool gave; "
        "`failed` for those that were refused or failed, `args` for words in what was given."
    ),
    loads=lambda: (on_call.CallsOf, on_call.list_calls),
)

IMPORTS: Final = Verb(
    "imports",
    title="What imports left out",
    description=(
        "What imports of another system's transcripts skipped, what that system had refused, and what has no place here, "
        "row by row with file, line and reason. For the operator alone."
    ),
    loads=lambda: (on_call.ImportsOf, on_call.list_imports),
)

USAGE: Final = Verb(
    "usage",
    title="What runs have used",
    description=(
        "Tokens and money of runs, added up by day, agent, session, model or person, or several of these: what agents "
        "said, else by the prices of the configuration. A person's is all that came of their words."
    ),
    loads=lambda: (on_call.UsageOf, on_call.list_usage),
)

ERASURES: Final = Verb(
    "erasures",
    title="What was erased",
    description=(
        "Each erasure, newest first: when, by whom and why, of which stream, how many payloads and files, and which "
        "checkpoint covers it. For the operator alone."
    ),
    loads=lambda: (on_call.ErasuresOf, on_call.list_erasures),
)

ACCESS: Final = Verb(
    "access",
    title="Who asked for what",
    description=(
        "Receipts, newest first: who called which tool or method, with which filters, how many sessions they were shown, "
        "what they were denied and why. For the operator alone."
    ),
    loads=lambda: (on_call.AccessOf, on_call.list_access),
)

HOSTS: Final = Verb(
    "hosts",
    title="Hosts of the log",
    description=(
        "The hosts of the log now: its writer, standbys, workers and doors; how many calls of each agent and channel wait "
        "or are under way, and the oldest of these. For the operator alone."
    ),
    loads=lambda: (on_call.HostsOf, on_call.hosts),
)

LENS: Final = Verb(
    "lens",
    title="What an agent was given",
    description=(
        "Exactly what an agent was given in an attempt of a run: system context, transcript, message, tools with "
        "schemas, model, deadline; rebuilt from the log and held against the hash recorded then (`asRecorded`). "
        "`messages` are the newest of the transcript; `before` is for more. `dialect` also gives all of it as a model "
        "got it. Of an import it is what the session had been told (`imported`), and `problem` says what is not known."
    ),
    loads=lambda: (on_call.Lens, on_call.naming_forks(on_call.lens, "run", "than")),
)

SEARCH: Final = Verb(
    "search",
    title="Search for words",
    description=(
        "Where words were said, in all transcripts and events, newest first: `hits` with position, session, run and "
        "the words around; `cursor` is for more. All of the words have to be there, in any case and order."
    ),
    loads=lambda: (on_call.Search, on_call.search),
)

SHOW: Final = Verb(
    "show",
    title="Sequence diagram",
    description=(
        "An exchange, a spawn or a run as a sequence diagram: who takes part (`lanes`), who said what to whom and what "
        "happened besides (`rows`, in log order, lanes by number)."
    ),
    loads=lambda: (on_call.Show, on_call.naming_forks(on_call.show, "run", "at")),
)

STATE: Final = Verb(
    "state",
    title="State at a place",
    description=(
        "Everything as it stood at a place of the log: sessions with their transcripts, runs, exchanges, what was "
        "open; with `from` and `to`, what differs between two places. A place is a position, event:ID, an ISO "
        "time, head, or RUN@start, RUN@reply, RUN@turn:N, RUN@announce, RUN@end."
    ),
    loads=lambda: (on_call.State, on_call.naming_forks(on_call.state, "of", "at", "frm", "to")),
)

WHY: Final = Verb(
    "why",
    title="Why it is so",
    description=(
        "Why an event is there: its causes over all sessions, back to a person, a call, a timer or a start; and why "
        "an exchange, a spawn, a run or a delivery ended as it did, was refused, or reached nobody: the rule, what "
        "it looked at, what would have changed it. With `forward`, all that it led to. `of` is a place, an event's "
        "id, or the id of an exchange, a spawn, a run or a delivery."
    ),
    loads=lambda: (on_call.Why, on_call.naming_forks(on_call.why, "of")),
)

ORIGIN: Final = Verb(
    "origin",
    title="Where words came from",
    description=(
        "The first message that holds some words, and each hop by which they reached others: who said them first, "
        "and who repeated them. Words that nobody said so are looked for in any case and white space, then by the "
        "longest run of them. With `seen`, also who saw them: runs whose agents were given them, sessions, chats."
    ),
    loads=lambda: (on_call.Origin, on_call.naming_forks(on_call.origin, "run", "at")),
)

SMELLS: Final = Verb(
    "smells",
    title="What is seldom meant",
    description=(
        "What is seldom meant in an exchange, a spawn or a run, or without one in all runs of the log, newest first: "
        "turns that repeat each other, a late or a doubled message, a loop that a limit cut, a guard that refused, an "
        "announce that nobody got."
    ),
    loads=lambda: (on_call.SmellsOf, on_call.naming_forks(on_call.smells, "run")),
)

DIFF: Final = Verb(
    "diff",
    title="What differs between two runs",
    description=(
        "What differs between two runs, or between two places of one (RUN@turn:1 and RUN@turn:3): aligned by structure "
        "(step, turn, tool call), by what is meant and not by ids and times. `firstDivergence` is where they part, "
        "`turns` is all of both: same, changed (`differs`, words marked), only in a, only in b; then `totals`."
    ),
    loads=lambda: (on_call.Diff, on_call.diff),
)

REPLAY: Final = Verb(
    "replay",
    title="Decide a run again",
    description=(
        "Sealed replay: today's rules and actors decide a run again, with what was recorded of people, agents, channels "
        "and times, and nothing else. `same`, or `firstDifference`: the first event that comes out otherwise, field by "
        "field, and the command that led to it. For the operator alone."
    ),
    loads=lambda: (on_call.Replay, on_call.replay),
)

VERBS: Final[Mapping[str, Verb[..., Any]]] = {  # each has arguments and an answer of its own
    verb.name: verb
    for verb in (
        RUNS,
        MESSAGES,
        DELIVERIES,
        TOLD,
        EVENTS,
        CALLS,
        IMPORTS,
        LENS,
        SEARCH,
        SHOW,
        STATE,
        WHY,
        ORIGIN,
        SMELLS,
        DIFF,
        REPLAY,
        HOSTS,
        USAGE,
        ERASURES,
        ACCESS,
    )
}
"""All verbs, by name."""

"""The face of the debugger: all its verbs on one log, for Python, the command line, the gateway and MCP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack, overload

from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.forks import ForkViews
from intersession_actors.hindsight.debugger.verbs.verbs import (
    ACCESS,
    CALLS,
    DELIVERIES,
    ERASURES,
    EVENTS,
    HOSTS,
    IMPORTS,
    LENS,
    MESSAGES,
    ORIGIN,
    RUNS,
    SEARCH,
    SHOW,
    SMELLS,
    STATE,
    TOLD,
    USAGE,
    VERBS,
    WHY,
)
from intersession_actors.hindsight.debugger.view import At, View
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.shapes import text_of
from intersession_events.basics.plain_json import JsonMapping, JsonObject, present
from intersession_events.basics.progress import Progress, not_told

if TYPE_CHECKING:
    # A verb is loaded when it is called, and its answer with it.
    from collections.abc import Sequence

    from intersession_actors.hindsight.bundling.bundle import BundleMade
    from intersession_actors.hindsight.bundling.wanted import BundleFields, Redact
    from intersession_actors.hindsight.debugger.answers import StateAnswer
    from intersession_actors.hindsight.debugger.diff import DiffAnswer
    from intersession_actors.hindsight.debugger.smells import SmellingAnswer, SmellsAnswer
    from intersession_actors.hindsight.debugger.state import ChangesAnswer
    from intersession_actors.hindsight.debugger.why import EffectsAnswer, WhyAnswer
    from intersession_actors.hindsight.exporting.export import ExportMade, ExportTo
    from intersession_actors.hindsight.replaying.replayed import Replayed
    from intersession_events.proofs.signatures import PrivateKey
    from intersession_projections.questions.diagram.diagram import Diagram

_Taken = ParamSpec("_Taken")
_Result = TypeVar("_Result")


def _awaitable(
    verb: Callable[Concatenate[Debugger, _Taken], _Result],
) -> Callable[Concatenate[Debugger, _Taken], Coroutine[object, None, _Result]]:
    """Return the same verb to be awaited: it takes and returns the same, and blocks a thread in place of the event loop.

    Overloads of a verb hold for its twin as well.
    """

    @wraps(verb)
    async def awaited(self: Debugger, /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> _Result:
        from intersession_actors.running.host.own_threads import (  # noqa: PLC0415 - who is called by none of these names has no loop
            off_loop,
        )

        return await off_loop(verb, self, *args, **kwargs)

    return awaited


class Debugger:
    """Reads a log at any place, and explains it. Each verb is a method; none of them changes anything.

    `system.debug` is one of a running system, `open_log(…).debug` of a log that is only read: they see what the operator sees.
    Each verb has a twin to be awaited, `await debug.awhy(…)` for `debug.why(…)`, which does not block the event loop. Every verb
    can be called by its name, too (`call`, `acall`), with arguments as JSON has them. Most are typed by the table of verbs alone;
    those whose answer depends on what is asked, or that take what JSON can't say, are written out.

    Every verb raises `ToolRefused` where an argument is invalid, or names nothing that the caller may see.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def view(self) -> View:
        """The view it reads through. For authors of another door."""
        return self._view

    @property
    def verbs(self) -> tuple[str, ...]:
        """The names of all verbs."""
        return tuple(VERBS)

    def call(self, verb: str, arguments: JsonMapping | None = None) -> JsonObject:
        """Call a verb by its name, with JSON arguments, and return its answer.

        Raises:
            ToolRefused: there is no such verb, or an argument is invalid, or names nothing that exists.
        """
        found = VERBS.get(text_of("verb", verb))
        if found is None:
            raise ToolRefused(
                "invalid_request", f"verb: there is no {verb[:64]!r}, use one of {', '.join(VERBS)}"
            )
        given = arguments or {}
        read = read_arguments(found.arguments, given)
        self._view.check_asked(verb, given)
        return dict(self._view.handed_out(found.answer(self._view, read)))

    acall = _awaitable(call)

    runs, aruns = RUNS, RUNS.awaited
    messages, amessages = MESSAGES, MESSAGES.awaited
    deliveries, adeliveries = DELIVERIES, DELIVERIES.awaited
    told, atold = TOLD, TOLD.awaited
    calls, acalls = CALLS, CALLS.awaited
    imports, aimports = IMPORTS, IMPORTS.awaited
    hosts, ahosts = HOSTS, HOSTS.awaited
    usage, ausage = USAGE, USAGE.awaited
    erasures, aerasures = ERASURES, ERASURES.awaited
    access, aaccess = ACCESS, ACCESS.awaited
    events, aevents = EVENTS, EVENTS.awaited
    search, asearch = SEARCH, SEARCH.awaited
    lens, alens = LENS, LENS.awaited
    show, ashow = SHOW, SHOW.awaited
    origin, aorigin = ORIGIN, ORIGIN.awaited

    @overload
    def state(
        self,
        of: str | None = None,
        *,
        at: At | None = None,
        as_: str | None = None,
        limit: int | None = None,
        messages: int | None = None,
    ) -> StateAnswer: ...
    @overload
    def state(
        self,
        of: str | None = None,
        *,
        frm: At,
        to: At | None = None,
        as_: str | None = None,
        limit: int | None = None,
        messages: int | None = None,
    ) -> ChangesAnswer: ...
    def state(self, of: str | None = None, **given: Any) -> Any:  # as the overloads have it
        """Return the state at a place (None: the head), or the differences between two (`frm`, `to`) (PLACE-3).

        `of` is a session, an exchange, a spawn or a run; without it, the whole log. `as_` is a session: only what it could see
        then. At most `limit` sessions, runs and flows are shown (50), and `messages` of each transcript (200; of the whole log 10).

        Raises:
            ToolRefused: a place or a name is invalid.
        """
        return self.call("state", STATE.given(of, **given))

    astate = _awaitable(state)

    @overload
    def why(self, of: At, *, forward: Literal[False] = False) -> WhyAnswer: ...
    @overload
    def why(self, of: At, *, forward: Literal[True]) -> EffectsAnswer: ...
    def why(self, of: At, **given: Any) -> Any:  # as the overloads have it
        """Return the causes of an event, and why things ended, were refused or reached nobody (WHY); or its effects (`forward`).

        `of` is a place, an event's id, or the id of an exchange, a spawn, a run or a delivery: of one of these, all that ended,
        was refused or reached nobody in it is explained.

        Raises:
            ToolRefused: nothing has that name, or there is no event there (`invalid_request`).
        """
        return self.call("why", WHY.given(of, **given))

    awhy = _awaitable(why)

    @overload
    def smells(self, run: str, *, code: Sequence[str] = (), at: At | None = None) -> SmellsAnswer: ...
    @overload
    def smells(
        self,
        run: None = None,
        *,
        session: str | None = None,
        code: Sequence[str] = (),
        at: At | None = None,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> SmellingAnswer: ...
    def smells(self, run: str | None = None, **given: Any) -> Any:  # as the overloads have it
        """Return unusual patterns in a run, or in its exchange or spawn (SMELL-1).

        Without a run, all runs that smell, newest first: at most `limit` (50) of the 500 that are looked at for a page. `session` took
        part; they began between the places `since` and `until`; `cursor` is of the page before. `code` are the smells meant, none:
        all. `at` is the place that it is looked at from.

        Raises:
            ToolRefused: nothing has that name, or several are (`invalid_request`); a place or the cursor is invalid.
        """
        return self.call("smells", SMELLS.given(run, **given))

    asmells = _awaitable(smells)

    def replay(self, run: str | None = None, *, progress: Progress | None = None) -> Replayed:
        """Replay a run sealed, or the whole log: today's rules and actors decide again, from the recorded inputs alone (SEAL).

        `run` is an exchange, a spawn or a run. `progress` is told (events done, events to do).

        Raises:
            ToolRefused: there is no such run, or several are meant (`invalid_request`); the caller does not see everything (`forbidden`).
            CorruptEvent: a row of the log can't be read.
        """
        from intersession_actors.hindsight.debugger.replay import replayed  # noqa: PLC0415 - a verb is loaded when it is called

        return replayed(self._view, run, progress)

    areplay = _awaitable(replay)

    def diff(self, a: str, b: str, *, exact: bool = False, other: Debugger | None = None) -> DiffAnswer:
        """Return the differences between two runs, or between two places of one, by structure and by meaning (DIFF).

        Each is an exchange, a spawn or a run by any name of it, or a place of one (`RUN@turn:1`): then as far as there. `other` is
        the log that `b` is in, if it is another one: `open_log(…).debug`. With `exact`, ids, times, positions and hashes count, too.

        Raises:
            ToolRefused: what is named is no run, and no place of one (`invalid_request`).
        """
        from intersession_actors.hindsight.debugger.diff import Diff, diff_of  # noqa: PLC0415 - as above

        given = read_arguments(Diff, {"a": a, "b": b, "exact": exact})
        return diff_of(self._view, self._view if other is None else other.view, given)

    adiff = _awaitable(diff)

    def diagram(self, run: str, *, at: At | None = None) -> Diagram:
        """Return the diagram of `show` for drawing: a notebook shows it as a picture; `text`, `svg` and `mermaid` are other forms.

        What stands behind the place is dimmed.

        Raises:
            ToolRefused: as `show`.
        """
        from intersession_actors.hindsight.debugger.show import Show, drawing  # noqa: PLC0415 - as above

        with ForkViews(self._view) as forks:
            view, names = forks.of([run, at], field="run")
            given: JsonObject = dict(zip(("run", "at"), names, strict=True))
            return drawing(view, read_arguments(Show, present(given)))

    adiagram = _awaitable(diagram)

    def bundle(
        self,
        out: Path | str,
        *,
        key: PrivateKey | None = None,
        progress: Progress | None = None,
        **wanted: Unpack[BundleFields],
    ) -> BundleMade:
        """Write a part of the log as one file for an auditor, who checks it without the log; into a folder under a name of its own (BUNDLE).

        `bundle(out, *, run=, session=, person=, since=, until=, everything=, at=, redact=, key=, progress=)`

        One of the first five says what: an exchange, a spawn or a run; a session; a person, by the id or the name on a channel
        or as shown; the streams with events between two places; or the whole log. `at` is the last place (the head). `redact` is
        `secrets`, `words` or `people`. `key` signs it. `progress` is told (position, last position).

        Raises:
            ToolRefused: nothing is named, or what is named is not there (`invalid_request`, `not_visible`).
            BundleFailed: the file is there already, or can't be written.
            CorruptEvent: the log is damaged before the place; the error says where.
        """
        from intersession_actors.hindsight.bundling.bundle import make_bundle  # noqa: PLC0415 - as above
        from intersession_actors.hindsight.bundling.wanted import BundleWanted  # noqa: PLC0415 - as above

        return make_bundle(
            self._view, BundleWanted(**wanted), Path(out), key=key, progress=progress or not_told
        )

    abundle = _awaitable(bundle)

    def bundle_answer(
        self,
        out: Path | str,
        verb: str,
        arguments: JsonMapping | None = None,
        *,
        key: PrivateKey | None = None,
        redact: Redact | None = None,
    ) -> BundleMade:
        """Write a verb's answer as a bundle: with the streams of the events that it names, which prove it (BUNDLE-7).

        `redact` is as for `bundle`.

        Raises:
            ToolRefused: as the verb, or its answer names no events.
            BundleFailed: the file is there already, or can't be written.
            CorruptEvent: the log is damaged; the error says where.
        """
        from intersession_actors.hindsight.bundling.answered import wanted_for_answer  # noqa: PLC0415 - as above
        from intersession_actors.hindsight.bundling.bundle import make_bundle  # noqa: PLC0415 - as above

        wanted = wanted_for_answer(self._view, verb, arguments or {}, redact=redact)
        return make_bundle(self._view, wanted, Path(out), key=key)

    abundle_answer = _awaitable(bundle_answer)

    def export(
        self,
        out: Path | str,
        to: ExportTo,
        *,
        run: str | None = None,
        session: str | None = None,
        since: At | None = None,
        until: At | None = None,
        at: At | None = None,
        raw: bool = False,
        progress: Progress | None = None,
    ) -> ExportMade:
        """Write the log, or a part of it, in a form that other tools read: a file, for `parquet` a directory, that is not there yet (OUT-1).

        `run` and `session` name what is exported, with what belongs to it, `since` and `until` the places between which events are;
        `at` is the last place (the head). Secrets are hidden, unless `raw`. `progress` is told (position, last position).

        Raises:
            ToolRefused: the query is invalid, or names nothing that is there (`invalid_request`, `not_visible`).
            ExportFailed: the file is there already or can't be written.
            MissingExtra: `parquet` needs the extra of that name.
            CorruptEvent: a row of the log can't be read.
        """
        from intersession_actors.hindsight.exporting.export import ExportWanted, export  # noqa: PLC0415 - as above

        wanted = ExportWanted(to=to, run=run, session=session, since=since, until=until, at=at, raw=raw)
        return export(self._view, wanted, Path(out), progress=progress or not_told)

    aexport = _awaitable(export)

"""The face of the debugger: all its verbs on one log, for Python, the command line, the gateway and MCP."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, Literal, ParamSpec, TypeVar, cast, overload

from intersession_actors.debugger.forks import ForkViews
from intersession_actors.debugger.verbs import VERBS
from intersession_actors.debugger.view import At, View
from intersession_actors.errors import ToolRefused
from intersession_actors.gate import text_of
from intersession_actors.service import read_arguments
from intersession_events.plain_json import JsonMapping, JsonObject, present

if TYPE_CHECKING:
    # A verb is loaded when it is called, and its answer with it.
    from intersession_actors.debugger.diff import DiffAnswer
    from intersession_actors.debugger.lens import LensAnswer, LensDialect
    from intersession_actors.debugger.lists import (
        CallsAnswer,
        DeliveriesAnswer,
        EventsAnswer,
        ImportsAnswer,
        MessagesAnswer,
        RunsAnswer,
    )
    from intersession_actors.debugger.origin import OriginAnswer
    from intersession_actors.debugger.search import SearchAnswer
    from intersession_actors.debugger.show import ShowAnswer
    from intersession_actors.debugger.smells import SmellingAnswer, SmellsAnswer
    from intersession_actors.debugger.standing import StateAnswer
    from intersession_actors.debugger.state import ChangesAnswer
    from intersession_actors.debugger.why import EffectsAnswer, WhyAnswer
    from intersession_actors.replaying import Replayed
    from intersession_projections.diagram import Diagram
    from intersession_projections.work import WorkEnd, WorkKind

_Taken = ParamSpec("_Taken")
_Given = TypeVar("_Given")


def _awaitable(
    verb: Callable[Concatenate[Debugger, _Taken], _Given],
) -> Callable[Concatenate[Debugger, _Taken], Coroutine[object, None, _Given]]:
    """Return the same verb to be awaited: it takes and returns the same, and blocks a thread in place of the event loop.

    Overloads of a verb hold for its twin as well.
    """

    @wraps(verb)
    async def awaited(self: Debugger, /, *args: _Taken.args, **kwargs: _Taken.kwargs) -> _Given:
        from intersession_actors.host import off_loop  # noqa: PLC0415 - who is called by none of these names has no loop

        return await off_loop(verb, self, *args, **kwargs)

    return awaited


class Debugger:
    """Reads a log at any place, and says why it is as it is. Each verb is a method; none of them changes anything.

    `system.debug` is one of a running system, `open_log(…).debug` of a log that is only read: they see what the operator sees.
    Each verb has a twin to be awaited, `await debug.awhy(…)` for `debug.why(…)`, which does not block the event loop. Every verb
    can be called by its name, too (`call`, `acall`), with arguments as JSON has them.
    """

    def __init__(self, view: View) -> None:
        self._view = view

    @property
    def view(self) -> View:
        """What it reads through. For those who build another door."""
        return self._view

    @property
    def verbs(self) -> tuple[str, ...]:
        """The names of all verbs."""
        return tuple(VERBS)

    def call(self, verb: str, arguments: JsonMapping | None = None) -> JsonObject:
        """Call a verb by its name, with arguments as JSON has them, and return its answer.

        Raises:
            ToolRefused: there is no such verb, an argument is none, or names nothing that is there.
        """
        found = VERBS.get(text_of("verb", verb))
        if found is None:
            raise ToolRefused(
                "invalid_request", f"verb: there is no {verb[:64]!r}, use one of {', '.join(VERBS)}"
            )
        given = arguments or {}
        read = read_arguments(found.arguments, given)
        self._view.check_asked(verb, given)
        view = self._view.for_a_question()
        return dict(view.handed_out(found.call(view, read)))

    acall = _awaitable(call)

    def replay(
        self, run: str | None = None, *, progress: Callable[[int, int], None] | None = None
    ) -> Replayed:
        """Replay a run sealed, or the whole log: today's rules and actors decide again, with the recorded inputs alone (SEAL).

        `run` is an exchange, a spawn or a run. `progress` is told (events done, events to do).

        Raises:
            ToolRefused: there is no such run, or several are meant (`invalid_request`); who asks does not see everything (`forbidden`).
            CorruptEvent: a row of the log can't be read.
        """
        from intersession_actors.debugger.replay import replayed  # noqa: PLC0415 - a verb is loaded when it is called

        return replayed(self._view, run, progress)

    areplay = _awaitable(replay)

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
    def state(
        self,
        of: str | None = None,
        *,
        at: At | None = None,
        frm: At | None = None,
        to: At | None = None,
        as_: str | None = None,
        limit: int | None = None,
        messages: int | None = None,
    ) -> StateAnswer | ChangesAnswer:
        """Return everything at a place (None: the head), or what differs between two (`frm`, `to`) (PLACE-3).

        `of` is a session, an exchange, a spawn or a run; without it, the whole log. `as_` is a session: only what it could see
        then. At most `limit` sessions, runs and flows are shown (50), and `messages` of each transcript (200; of the whole log 10).

        Raises:
            ToolRefused: a place or a name is none.
        """
        given = {
            "of": of,
            "at": at,
            "from": frm,
            "to": to,
            "as": as_,
            "limit": limit,
            "messages": messages,
        }
        return cast("StateAnswer | ChangesAnswer", self.call("state", present(given)))

    astate = _awaitable(state)

    def lens(
        self,
        run: str,
        *,
        attempt: int | None = None,
        dialect: LensDialect | None = None,
        than: str | None = None,
    ) -> LensAnswer:
        """Return exactly what an agent was given in an attempt of a run, the last one if none is named (LENS-1).

        `run` may be one of an exchange: `RUN@turn:3`. It is rebuilt from the log; `asRecorded` says whether it has the hash that
        was recorded then. `dialect` adds it as a model got it: `prompt`, or messages for `openai` or `anthropic`. `than` is another
        run: `fresh` has the messages that this one saw and that one did not.

        Raises:
            ToolRefused: there is no such run within reach, it has not started, or not so often.
        """
        given = {"run": run, "attempt": attempt, "dialect": dialect, "than": than}
        return cast("LensAnswer", self.call("lens", present(given)))

    alens = _awaitable(lens)

    def search(
        self,
        words: str,
        *,
        in_: str | None = None,
        kind: Sequence[str] = (),
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> SearchAnswer:
        """Return where all of some words were said, newest first, in any case and order; `word*` is any that begins so (FIND-1).

        `in_` is a session, `kind` names of events; `cursor` is of the page before. At most `limit` hits are returned (50).

        Raises:
            ToolRefused: there is no word, or a name, a kind, a place or the cursor is none.
        """
        given = {"words": words, "in": in_, "since": since, "until": until, "cursor": cursor, "limit": limit}
        return cast("SearchAnswer", self.call("search", present(given) | {"kind": list(kind)}))

    asearch = _awaitable(search)

    def show(self, run: str, *, at: At | None = None) -> ShowAnswer:
        """Return an exchange, a spawn or a run as lanes and rows of a sequence diagram (SHOW-1).

        Raises:
            ToolRefused: there is no such run, or the place is none.
        """
        return cast("ShowAnswer", self.call("show", present({"run": run, "at": at})))

    ashow = _awaitable(show)

    def diagram(self, run: str, *, at: At | None = None) -> Diagram:
        """Return the same, to be drawn: a notebook shows it as a picture; `text`, `svg` and `mermaid` give it in other forms.

        What stands behind the place is dimmed.

        Raises:
            ToolRefused: as `show`.
        """
        from intersession_actors.debugger.show import Show, drawing  # noqa: PLC0415 - as above

        with ForkViews(self._view.for_a_question()) as forks:
            view, names = forks.of([run, at], field="run")
            given: JsonObject = dict(zip(("run", "at"), names, strict=True))
            return drawing(view, read_arguments(Show, present(given)))

    adiagram = _awaitable(diagram)

    @overload
    def why(self, of: At, *, forward: Literal[False] = False) -> WhyAnswer: ...
    @overload
    def why(self, of: At, *, forward: Literal[True]) -> EffectsAnswer: ...
    def why(self, of: At, *, forward: bool = False) -> WhyAnswer | EffectsAnswer:
        """Return what led to an event, and why things ended, were refused or reached nobody (WHY); or what it led to (`forward`).

        `of` is a place, an event's id, or the id of an exchange, a spawn, a run or a delivery: of one of these, all that ended,
        was refused or reached nobody in it is explained.

        Raises:
            ToolRefused: nothing is called that, or there is no event there (`invalid_request`).
        """
        return cast("WhyAnswer | EffectsAnswer", self.call("why", {"of": of, "forward": forward}))

    awhy = _awaitable(why)

    def origin(
        self,
        words: str,
        *,
        run: str | None = None,
        at: At | None = None,
        seen: bool = False,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> OriginAnswer:
        """Return where words came from, as the log stood at a place: who said them first, and how they reached others (ORIGIN-1).

        With a `run`, it is where those words came from that are in this run, or in its exchange or spawn. `seen` adds each run
        whose agent was given the words, newest first, at most `limit` (50); `cursor` is of the page before.

        Raises:
            ToolRefused: there are no words (`invalid_request`), or a place or a name is none.
        """
        given = {"words": words, "run": run, "at": at, "cursor": cursor, "limit": limit}
        return cast("OriginAnswer", self.call("origin", present(given) | {"seen": seen}))

    aorigin = _awaitable(origin)

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
    def smells(
        self,
        run: str | None = None,
        *,
        session: str | None = None,
        code: Sequence[str] = (),
        at: At | None = None,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> SmellsAnswer | SmellingAnswer:
        """Return what is seldom meant in a run, or in the exchange or the spawn that it belongs to (SMELL-1).

        Without a run, all runs that smell, newest first: at most `limit` (50) of the 500 that are looked at for a page. `session` took
        part; they began between the places `since` and `until`; `cursor` is of the page before. `code` are the smells meant, none:
        all. `at` is the place that it is looked at from.

        Raises:
            ToolRefused: nothing is called that, or several are (`invalid_request`); a place or the cursor is none.
        """
        given = {
            "run": run,
            "session": session,
            "at": at,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        }
        answer = self.call("smells", present(given) | {"code": list(code)})
        return cast("SmellsAnswer | SmellingAnswer", answer)

    asmells = _awaitable(smells)

    def diff(self, a: str, b: str, *, exact: bool = False, other: Debugger | None = None) -> DiffAnswer:
        """Return what differs between two runs, or between two places of one, by structure and by what is meant (DIFF).

        Each is an exchange, a spawn or a run by any name of it, or a place of one (`RUN@turn:1`): then as far as there. `other` is
        the log that `b` is in, if it is another one: `open_log(…).debug`. With `exact`, ids, times, positions and hashes count, too.

        Raises:
            ToolRefused: what is named is no run, and no place of one (`invalid_request`).
        """
        from intersession_actors.debugger.diff import Diff, diff_of  # noqa: PLC0415 - as above

        given = read_arguments(Diff, {"a": a, "b": b, "exact": exact})
        of_a = self._view.for_a_question()
        return diff_of(of_a, of_a if other is None else other.view.for_a_question(), given)

    adiff = _awaitable(diff)

    def runs(
        self,
        *,
        open_: bool = False,
        failed: bool = False,
        held: bool = False,
        kind: Sequence[WorkKind] = (),
        end: Sequence[WorkEnd] = (),
        session: str | None = None,
        with_: str | None = None,
        agent: str | None = None,
        channel: str | None = None,
        person: str | None = None,
        words: str | None = None,
        smell: bool = False,
        at: At | None = None,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> RunsAnswer:
        """Return exchanges, spawns, and runs of neither, newest first, with how each stands, or stood `at` a place (FIND-2).

        All filters hold at once. `session` and `with_` took part, `agent` has a session that did; they were asked for on `channel`
        or a text of them went there, on behalf of `person`; somebody said all `words` at once. `smell` marks what is seldom meant.
        They began between the places `since` and `until`; `cursor` is of the page before. At most `limit` are returned (50).

        Raises:
            ToolRefused: a name, a place or the cursor is none.
        """
        given = {
            "session": session,
            "with": with_,
            "agent": agent,
            "channel": channel,
            "person": person,
            "words": words,
            "at": at,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        }
        asked = {"open": open_, "failed": failed, "held": held, "smell": smell}
        lists = {"kind": list(kind), "end": list(end)}
        return cast("RunsAnswer", self.call("runs", present(given) | asked | lists))

    aruns = _awaitable(runs)

    def messages(
        self,
        *,
        inter_session: bool = False,
        from_: str | None = None,
        to: str | None = None,
        person: str | None = None,
        why: bool = False,
        delivered: bool = False,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> MessagesAnswer:
        """Return what people and sessions said to sessions, newest first: who, to whom, on whose behalf (FIND-2).

        `why` adds the message that it all began with, `delivered` what became of the texts that went outside for it. Places,
        cursor and limit are those of `runs`.

        Raises:
            ToolRefused: a name, a place or the cursor is none.
        """
        given = {
            "from": from_,
            "to": to,
            "person": person,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        }
        asked = {"interSession": inter_session, "why": why, "delivered": delivered}
        return cast("MessagesAnswer", self.call("messages", present(given) | asked))

    amessages = _awaitable(messages)

    def deliveries(
        self,
        *,
        failed: bool = False,
        pending: bool = False,
        session: str | None = None,
        channel: str | None = None,
        run: str | None = None,
        to: str | None = None,
        person: str | None = None,
        words: str | None = None,
        at: At | None = None,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> DeliveriesAnswer:
        """Return the texts that went outside, or should have, newest first, as they are or stood `at` a place (FIND-2).

        `to` is an address, alone or as `channel:id`; they came of words of `person`; all `words` stand in them. Places, cursor and limit are those of `runs`.

        Raises:
            ToolRefused: a name, a place or the cursor is none.
        """
        given = {
            "session": session,
            "channel": channel,
            "run": run,
            "to": to,
            "person": person,
            "words": words,
            "at": at,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        }
        asked = {"failed": failed, "pending": pending}
        return cast("DeliveriesAnswer", self.call("deliveries", present(given) | asked))

    adeliveries = _awaitable(deliveries)

    def calls(
        self,
        *,
        tool: str | None = None,
        session: str | None = None,
        args: str | None = None,
        failed: bool = False,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> CallsAnswer:
        """Return the calls of tools that agents made, newest first, with what the tools gave (FIND-2).

        All words of `args` stand in what was given; `failed` are those that were refused or failed, as the tool's answer says.
        Places, cursor and limit are those of `runs`; what one message called stays on one page.

        Raises:
            ToolRefused: a name, a place or the cursor is none.
        """
        given = {
            "tool": tool,
            "session": session,
            "args": args,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("CallsAnswer", self.call("calls", present(given) | {"failed": failed}))

    acalls = _awaitable(calls)

    def imports(
        self, *, what: str | None = None, cursor: str | None = None, limit: int | None = None
    ) -> ImportsAnswer:
        """Return what imports brought, and what they left out or the other system had refused, row by row with its reason (IMP-1).

        `what` is `skipped`, `refused`, `unattributed`, `renamed` or `note`. At most `limit` rows are returned (50).

        Raises:
            ToolRefused: who asks does not see everything (`forbidden`); `what` or the cursor is none.
        """
        given = {"what": what, "cursor": cursor, "limit": limit}
        return cast("ImportsAnswer", self.call("imports", present(given)))

    aimports = _awaitable(imports)

    def events(
        self,
        *,
        kind: Sequence[str] = (),
        stream: str | None = None,
        session: str | None = None,
        since: At | None = None,
        until: At | None = None,
        cursor: str | None = None,
        limit: int | None = None,
    ) -> EventsAnswer:
        """Return the events of the log, newest first, with all that is stored of each (FIND-2).

        `kind` are names of events, none: all; `stream` is one, or how several begin. Places, cursor and limit are those of `runs`.

        Raises:
            ToolRefused: a name, a kind, a place or the cursor is none.
        """
        given = {
            "stream": stream,
            "session": session,
            "since": since,
            "until": until,
            "cursor": cursor,
            "limit": limit,
        }
        return cast("EventsAnswer", self.call("events", present(given) | {"kind": list(kind)}))

    aevents = _awaitable(events)

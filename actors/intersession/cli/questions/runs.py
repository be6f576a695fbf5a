"""`intersession runs`: the exchanges, spawns and runs of a log, with the ids that `replay` takes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Final, cast, get_args

from cyclopts import Parameter

from intersession.cli.host.verb_call import VerbCall, asks
from intersession.cli.questions.paging import PAGE, Page
from intersession.cli.shell.answer import Answer, AsOf, UsageError
from intersession.cli.shell.terminal import Screen
from intersession.cli.shell.times import moment
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.standing import can_be_retried, standing_in_words
from intersession.cli.story.unknown import unknown_names
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.hindsight.debugger.lists.runs import Runs, RunsAnswer, Stands, calls_held, runs_found
from intersession_actors.hindsight.debugger.verbs.verbs import RUNS
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import CLOSES, FAILURES, LOOP_ENDS, STATUSES
from intersession_events.stores.opened import has_writer
from intersession_projections.questions.known_names import near
from intersession_projections.questions.places.runs_named import Flow, flow_id, flow_sessions
from intersession_projections.questions.work_list import WorkEnd
from intersession_projections.views.flows.rows import ExchangeSummary, SpawnSummary
from intersession_projections.views.held_calls import CallHold, held_call_value
from intersession_projections.views.run_outcomes.outcome import RunOutcome

CODES: Final[tuple[WorkEnd, ...]] = get_args(WorkEnd)
_SHOWN: Final[tuple[Mapping[str, str], ...]] = (
    cast("Mapping[str, str]", STATUSES),
    cast("Mapping[str, str]", FAILURES),
    cast("Mapping[str, str]", LOOP_ENDS),
    cast("Mapping[str, str]", CLOSES),
    {"ok": "answered", "error": "task failed", "timeout": "task took too long"},
    {"ok": "task done"},
)


def ends_named(typed: Iterable[str]) -> tuple[WorkEnd, ...]:
    """Return the codes of the typed ends."""
    return tuple(code for text in typed for code in _codes(text))


def _codes(text: str) -> list[WorkEnd]:
    wanted = " ".join(text.casefold().split())
    found: list[WorkEnd] = [
        code for code in CODES if wanted == code or wanted in map(str.casefold, in_words(code))
    ]
    if found:
        return found
    alike = near(wanted, CODES)
    meant = f"; did you mean {' or '.join(alike)}?" if alike else "."
    known = ", ".join(f"{code} ({in_words(code)[0]})" for code in CODES)
    raise UsageError(f"--end: {text[:64]!r} is no end{meant} The ends are: {known}")


def in_words(code: str) -> list[str]:
    """Return the words for an end; a code for several things has the words of each."""
    return [words[code] for words in _SHOWN if code in words]


_ENDS = Annotated[
    tuple[str, ...],
    Parameter(
        name="--end",
        help="Only what ended so: its run (of an exchange the first one), its ping-pong or all of it, as --json says it "
        '(ok, turn_limit, announced) or as the list shows it ("a turn failed"); may be given several times.',
    ),
]


@asks(RUNS, options={"end": _ENDS, "at": AsOf})
def runs(asked: VerbCall[RunsAnswer], *, page: Page = PAGE) -> Answer:
    """List exchanges, spawns and runs, newest first.

    Each line has the id that `replay` takes. What became of a text that went outside stands beside it: delivered, tried
    again, failed, in doubt. Where no process writes the log, nobody is at work on what is not over, and the next start goes
    on with it.

    All filters hold at once, at a place as all of it stood there. A run that belongs to an exchange or a
    spawn is part of it and has no line of its own.
    """
    if "end" in asked.given:
        asked.given["end"] = ends_named(asked.given["end"])
    with asked.view() as view:
        given = read_arguments(Runs, asked.given | page.given)
        # Who is at work now says nothing of what stood then.
        now = given.at is None
        at_work = not now or has_writer(view.log)
        found = runs_found(view, given, page.most)
        found = found._replace(rows=[row._replace(at_work=at_work) for row in found.rows])
        calls = calls_held(view) if given.held and now else []
        names = names_of(view.log, [key for row in found.rows for key in flow_sessions(row.flow)])
        named = {"--agent": given.agent, "--channel": given.channel, "--person": given.person}
        unknown = [] if found.rows else unknown_names(view.reader, named)
    if_none = (
        ""
        if asked.given or page.given
        else "`intersession sessions` shows who was spoken to, `intersession replay SESSION` tells one"
    )
    hint = "`intersession replay ID` tells one of them, `intersession why ID` why it ended so"
    if not now:
        hint = "`intersession replay ID --at PLACE` tells one of them as far as there"
    elif any(map(can_be_retried, found.rows)):
        hint = f"{hint}, `intersession retry ID` has a run that failed tried again"
    if now and any(row.is_open for row in found.rows):
        hint = f"{hint}, `intersession abort ID` stops what is not over"
    if now and any(row.held is not None for row in found.rows):
        hint = f"{hint}, `intersession release ID` lets what is held go on"
    if calls:
        hint = "`intersession release ID` lets it go on, `--edit` with other arguments, `--refuse` not at all"
    answer = page.answer(
        found,
        "runs",
        lambda row: row.value(view),
        lambda screen, rows: _show(screen, rows, names),
        what="row",
        hint=hint,
        if_none=hint if calls else if_none,
        unknown=unknown,
    )
    if not given.held or not now:
        return answer
    value = {**cast("JsonObject", answer.value), "calls": [held_call_value(one) for one in calls]}

    def show(screen: Screen) -> None:
        if calls and not page.jsonl:
            _show_calls(screen, calls)
        answer.show(screen)

    return Answer(value, show)


def _show_calls(screen: Screen, calls: Sequence[CallHold]) -> None:
    screen.table(
        ["id", "held since (UTC)", "session", "call"],
        [
            (
                one.held.hold_id,
                moment(one.recorded.time),
                one.session_key,
                f"{one.held.tool} {one.held.arguments}",
            )
            for one in calls
        ],
    )


def _show(screen: Screen, found: Sequence[Stands], names: Names) -> None:
    screen.table(
        ["id", "what", "accepted (UTC)", "between", "how it stands"],
        [
            (
                flow_id(standing.flow),
                standing.flow.kind,
                moment(standing.flow.accepted_ms),
                _between(standing.flow, names),
                standing_in_words(standing),
            )
            for standing in found
        ],
    )


def _between(flow: Flow, names: Names) -> str:
    match flow:
        case ExchangeSummary():
            return f"{names.of(flow.requester or 'operator')} → {names.of(flow.target)}"
        case SpawnSummary():
            return f"{names.of(flow.asker)} → {names.of(flow.child)}"
        case RunOutcome():
            return names.of(flow.session_key)

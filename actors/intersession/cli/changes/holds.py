"""`intersession hold` and `release`: an exchange that stops before a text goes on, and what becomes of the text (LIVE-1)."""

from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import Operating, operator_of
from intersession.cli.shell import READING, Agents, Answer, Reading, Screen, UsageError, safe
from intersession_actors.debugger import run_meant, session_named
from intersession_actors.errors import ToolRefused
from intersession_actors.gate import WAIT
from intersession_actors.service import Reader
from intersession_events.facts import ExchangeClosed, ExchangeHeld, HoldBefore, Release
from intersession_events.log import parts_in
from intersession_events.plain_json import JsonMapping, JsonObject
from intersession_projections.wording import HELD_BEFORE

What = Annotated[
    str,
    Parameter(
        help="The exchange: its id or that of a run of it, or how that begins. Or a session: all of its exchanges, those "
        "to come as well."
    ),
]


def hold(
    what: What,
    /,
    *,
    before: Annotated[
        HoldBefore,
        Parameter(
            help="Stop before the next text that goes on, before the next reply, before every text, or before the announce. "
            "Default: next."
        ),
    ] = "next",
    reading: Reading = READING,
) -> Answer:
    """Have an exchange stop before a text goes on.

    It stays there until it is released, also over a restart. A running attempt is not cut off: what it answers is what is held.
    """
    with operator_of(reading) as operator:
        answer = operator.call("exchanges.hold", _named(operator.reader, what) | {"before": before})

    def show(screen: Screen) -> None:
        if "sessionKey" in answer:
            held = answer["sessionKey"]
            screen.line(f"{held} is held: its exchanges stop before {HELD_BEFORE[before]}")
        elif "held" in answer:
            held = answer["runId"]
            screen.line(f"{held} is held ({answer['held']['step']})")
        else:
            held = answer["runId"]
            screen.line(f"{held} stops before {HELD_BEFORE[before]}")
        screen.line(
            safe(
                f"  `intersession runs --held` shows what has stopped, `intersession release {held}` lets it go on",
                "dim",
            )
        )

    return Answer(answer, show)


def release(
    what: What,
    /,
    *,
    edit: Annotated[
        str | None, Parameter(help="Have this text go on in the place of the one that is held.")
    ] = None,
    drop: Annotated[bool, Parameter(help="Leave the text out: as if the agent had said nothing.")] = False,
    end: Annotated[bool, Parameter(help="End the exchange: nothing of it goes on.")] = False,
    for_good: Annotated[bool, Parameter(help="Do not hold this exchange again.")] = False,
    hold_id: Annotated[
        str | None,
        Parameter(
            name="--hold", help="The hold that is meant, so that saying it twice releases nothing else."
        ),
    ] = None,
    agents: Agents = None,
    timeout: Annotated[
        float,
        Parameter(
            help="With --agents, seconds without an event after which it is not waited for any longer. Default: 30.",
            validator=Number(gte=0, lte=WAIT.most),
        ),
    ] = 30.0,
    reading: Reading = READING,
) -> Answer:
    """Let a held exchange go on: as it is, edited, or not.

    With --edit another text goes on, with --drop none, with --end the exchange is over.

    Of a session, all that is held of it, and what is to come is not held any more. Where the log has a host, it goes
    on at once; else the release is recorded, and the next start goes on with it, or this command with --agents.
    """
    if (edit is not None) + drop + end > 1:
        raise UsageError("give one of --edit, --drop and --end")
    action: Release = "edit" if edit is not None else "drop" if drop else "end" if end else "go_on"
    with operator_of(reading, agents=agents) as operator:
        asked: JsonObject = {"action": action, "forGood": for_good}
        asked |= {} if edit is None else {"text": edit}
        asked |= {} if hold_id is None else {"holdId": hold_id}
        after = operator.reader.log.head()
        answer = operator.call("exchanges.release", _named(operator.reader, what) | asked)
        if agents is not None:
            _wait(operator, answer, after, timeout)
    return Answer(answer, lambda screen: _show(screen, answer))


def _wait(operator: Operating, answer: JsonMapping, after: int, seconds: float) -> None:
    """Wait until what was released here is over, or held again, or nothing came for this many seconds."""
    flows = operator.reader.flows
    named = (answer["runId"],) if "runId" in answer else answer["released"]
    under_way = {f"exchange:{flows.exchange_of_run(run_id)}" for run_id in named}
    for recorded in parts_in(operator.events(after, quiet_s=seconds)) if under_way else ():
        if isinstance(recorded.event, ExchangeClosed | ExchangeHeld):
            under_way.discard(recorded.stream)
        if not under_way:
            return


def _show(screen: Screen, answer: JsonMapping) -> None:
    again = ", as it was before" if answer["again"] else ""
    if "sessionKey" in answer:
        released = answer["released"]
        screen.line(f"{answer['sessionKey']} is not held{again}; {len(released)} exchanges go on")
        for run_id in released:
            screen.line(f"  {run_id}")
    elif answer["status"] == "withdrawn":
        screen.line(f"{answer['runId']} had not stopped, and does not stop any more")
    else:
        screen.line(f"{answer['runId']} is released ({answer['action']}){again}")


def _named(reader: Reader, what: str) -> JsonObject:
    """Return what a method is told of an exchange, or of a session.

    Raises:
        ToolRefused: it names neither.
    """
    run = run_meant(reader, what)
    if run is not None:
        return {"runId": run.run_id}
    try:
        return {"sessionKey": session_named(reader, what, field="what")}
    except ToolRefused as refused:
        raise ToolRefused(
            refused.code, f"{refused.error}; `intersession runs --held` shows what is held"
        ) from None

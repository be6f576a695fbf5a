"""The operator's commands on sessions and runs, with a host or without: `abort`, `reset`, `compact`, `label`, `delete`, `retry`, `hold`, `release`."""

from collections.abc import Callable
from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host.hosting import Operating, operator_of
from intersession.cli.shell.answer import OK, READING, REFUSED, Agents, Answer, Reading, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.calls.service.approvals import SHORTEST
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.named import run_meant, session_named
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import WAIT
from intersession_actors.rules.gate.values import json_or_text
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonMapping, JsonObject, is_object
from intersession_events.facts import ExchangeClosed, ExchangeHeld, HoldBefore, Release
from intersession_events.facts.reasons import HELD_BEFORE
from intersession_events.log.recorded import parts_in
from intersession_projections.views.held_calls import HeldCalls

Session = Annotated[str, Parameter(help="The session: its key in any form, its short name, or a session id.")]


def abort(
    what: Annotated[
        str, Parameter(help="The session whose runs are stopped, or the id of a run, an exchange or a spawn.")
    ],
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """Stop what a session does, or one run.

    Of a session, the run under way and those that wait; of an exchange or a spawn, the run that it waits for.
    """

    def params(reader: Reader) -> JsonObject:
        run = run_meant(reader, what)
        if run is not None:
            return {"sessionKey": run.session_key, "runId": run.run_id}
        return {"sessionKey": session_named(reader, what, field="session")}

    def told(answer: JsonMapping) -> str:
        return f"stopped {', '.join(answer['runIds'])}" if answer["aborted"] else "nothing was to be stopped"

    return changed(reading, "chat.abort", params, told)


def reset(session: Session, /, *, reading: Reading = READING) -> Answer:
    """Begin a session anew: it remembers nothing.

    Its earlier transcript can still be read, by its session id.
    """
    return changed(
        reading,
        "sessions.reset",
        lambda reader: {"key": session_named(reader, session, field="session")},
        lambda answer: f"{answer['key']} begins anew as {answer['sessionId']}",
    )


def compact(
    session: Session,
    /,
    *,
    instructions: Annotated[
        str | None, Parameter(help="What matters in the summary, for the agent that writes it.")
    ] = None,
    reading: Reading = READING,
) -> Answer:
    """Have what was said earlier in a session summarised.

    From then on its agent is shown the summary in the place of the older turns. The log keeps all of them.
    """
    given = {} if instructions is None else {"instructions": instructions}
    return changed(
        reading,
        "sessions.compact",
        lambda reader: {"key": session_named(reader, session, field="session"), **given},
        lambda answer: f"{answer['key']} is summarised by run {answer['runId']}",
    )


def label(
    session: Session,
    text: Annotated[
        str | None, Parameter(help="The label, 1 to 64 characters; leave it out with --clear.")
    ] = None,
    /,
    *,
    clear: Annotated[bool, Parameter(help="Take the label away.")] = False,
    reading: Reading = READING,
) -> Answer:
    """Give a session a label to find it by, and to send to."""
    if clear == (text is not None):
        raise UsageError("give a label, or --clear to take it away")
    return changed(
        reading,
        "sessions.patch",
        lambda reader: {"key": session_named(reader, session, field="session"), "label": text},
        lambda answer: (
            f"{answer['key']} has no label" if text is None else f"{answer['key']} has the label {text!r}"
        ),
    )


def delete(session: Session, /, *, reading: Reading = READING) -> Answer:
    """Archive a session; the log keeps all of it.

    It takes no more messages and is in no list. A main session can only be reset.
    """

    def params(reader: Reader) -> JsonObject:
        key = session_named(reader, session, field="session")
        row = reader.sessions.get(key)
        if row is not None and row.archived is not None:
            raise ToolRefused("not_visible", f"session: {key} is archived already")
        return {"key": key}

    return changed(reading, "sessions.delete", params, lambda answer: f"{answer['key']} is archived")


def changed(
    reading: Reading,
    method: str,
    params: Callable[[Reader], JsonObject],
    told: Callable[[JsonMapping], str | list[str]],
) -> Answer:
    """Call a method of the system, through the log's host or as the log's writer."""
    with operator_of(reading) as operator:
        answer = operator.call(method, params(operator.reader))

    def show(screen: Screen) -> None:
        said = told(answer)
        for line in [said] if isinstance(said, str) else said:
            screen.line(line)

    return Answer(answer, show)


_AT_ONCE_S: Final = 20.0
"""How long one call waits: a dead gateway is noticed no later than that."""


def retry(
    run: str,
    /,
    *,
    agents: Agents = None,
    timeout: Annotated[float, Parameter(validator=Number(gte=0, lte=WAIT.most))] = 30.0,
    reading: Reading = READING,
) -> Answer:
    """Have the message of a run that failed answered after all.

    Its words are recorded anew in the same session, and a new run answers them; the text goes where that of
    the failed one would have gone. Asked for again, it is the same run. Where the log has a host, it
    does the work; else this command does, with the agents that --agents names, or the configuration. Without
    the session's agent the run waits for the next host that has it.

    Args:
        run: The run that failed: its id, or how that begins.
        timeout: Seconds to wait for the answer, up to 86400; 0 does not wait. Default: 30.
    """
    with operator_of(reading, agents=agents) as operator:
        meant = run_meant(operator.reader, run)
        value = operator.call("runs.retry", {"runId": run if meant is None else meant.run_id})
        value |= _end(operator, value, timeout)
    return Answer(value, lambda screen: _show(screen, value), REFUSED if _has_failed(value) else OK)


def _end(operator: Operating, accepted: JsonMapping, seconds: float) -> JsonObject:
    """Wait for the end of a run, if its agent is there; return its state."""
    agent_id = SessionKey.recorded(accepted["sessionKey"]).agent_id
    left = seconds if agent_id in operator.call("status", {})["agents"] else 0.0
    while True:
        asked = {"runId": accepted["runId"], "timeoutMs": round(min(left, _AT_ONCE_S) * 1000)}
        answer = operator.call("agent.wait", asked)
        left -= _AT_ONCE_S
        if left <= 0 or "runState" not in answer:
            return answer


def _has_failed(value: JsonMapping) -> bool:
    return value["status"] != "ok" and "runState" not in value


def _show(screen: Screen, value: JsonMapping) -> None:
    run_id = value["runId"]
    if "runState" in value:
        screen.line(safe("accepted", "bold green"), f"  run {run_id} tries {value['retryOf']} again")
        screen.dim(f"  not over: `intersession replay {run_id}` shows how far it is")
        return
    failed = _has_failed(value)
    screen.line(
        safe(value["status"], "bold red" if failed else "bold green"),
        f"  run {run_id} tries {value['retryOf']} again",
    )
    if value.get("reply"):
        screen.indented(value["reply"], 4)
    if "error" in value:
        screen.line("  ", str(value["error"]))
    if failed:
        screen.dim(
            f"  `intersession replay {run_id}` shows why; `intersession retry {run_id}` has that tried again"
        )


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
    before: HoldBefore = "next",
    reading: Reading = READING,
) -> Answer:
    """Have an exchange stop before a text goes on.

    It stays there until it is released, also over a restart. A running attempt is not cut off: what it answers is what is held.

    Args:
        before: Stop before the next text that goes on, before the next reply, before every text, or before the announce. Default: next.
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
        screen.dim(
            f"  `intersession runs --held` shows what has stopped, `intersession release {held}` lets it go on"
        )

    return Answer(answer, show)


def release(
    what: What,
    /,
    *,
    edit: str | None = None,
    drop: bool = False,
    end: bool = False,
    refuse: str | None = None,
    for_good: bool = False,
    hold_id: Annotated[str | None, Parameter(name="--hold")] = None,
    agents: Agents = None,
    timeout: Annotated[float, Parameter(validator=Number(gte=0, lte=WAIT.most))] = 30.0,
    reading: Reading = READING,
) -> Answer:
    """Let what is held go on: as it is, edited, or not.

    With --edit another text goes on, with --drop none, with --end the exchange is over. Of a tool call, named by its
    hold's id or how that begins, --edit takes other arguments (a JSON object), and --refuse what its agent is told.

    Of a session, all that is held of it, and what is to come is not held any more. Where the log has a host, it goes
    on at once; else the release is recorded, and the next start goes on with it, or this command with --agents.

    Args:
        edit: Have this text go on in the place of the one that is held.
        drop: Leave the text out: as if the agent had said nothing.
        end: End the exchange: nothing of it goes on.
        refuse: Refuse the tool call, and tell its agent this.
        for_good: Do not hold this exchange again.
        hold_id: The hold that is meant, so that saying it twice releases nothing else.
        timeout: With --agents, seconds without an event after which it is not waited for any longer. Default: 30.
    """
    if (edit is not None) + drop + end + (refuse is not None) > 1:
        raise UsageError("give one of --edit, --drop, --end and --refuse")
    action: Release = "edit" if edit is not None else "drop" if drop else "end" if end else "go_on"
    with operator_of(reading, agents=agents) as operator:
        asked: JsonObject = {"action": action, "forGood": for_good}
        asked |= {} if edit is None else {"text": edit}
        asked |= {} if hold_id is None else {"holdId": hold_id}
        after = operator.reader.log.head()
        if _is_call(operator.reader, what):
            if drop or end:
                raise UsageError("--drop and --end are for exchanges, a tool call takes --refuse")
            of_call = _call_release(what, edit, refuse)
            answer = operator.call("calls.release", of_call)
            return Answer(answer, lambda screen: _show_call(screen, answer))
        if refuse is not None:
            raise UsageError(f"--refuse is for tool calls, and none is held as {what[:64]!r}")
        answer = operator.call("exchanges.release", _named(operator.reader, what) | asked)
        if agents is not None:
            _wait(operator, answer, after, timeout)
    return Answer(answer, lambda screen: _show_released(screen, answer))


def _is_call(reader: Reader, what: str) -> bool:
    return len(what) >= SHORTEST and bool(HeldCalls(reader.log).named(what))


def _call_release(what: str, edit: str | None, refuse: str | None) -> JsonObject:
    """Return what the method is told of a held tool call."""
    if refuse is not None:
        return {"holdId": what, "action": "refuse"} | ({"text": refuse} if refuse else {})
    if edit is None:
        return {"holdId": what}
    arguments = json_or_text(edit)
    if not is_object(arguments):
        raise UsageError('--edit: of a tool call it is a JSON object, for example {"limit": 1}')
    return {"holdId": what, "action": "edit", "arguments": arguments}


def _show_call(screen: Screen, answer: JsonMapping) -> None:
    again = ", as it was before" if answer["again"] else ""
    how = {"go_on": "goes on", "edit": "goes on with other arguments", "refuse": "is refused"}[
        answer["action"]
    ]
    screen.line(f"the call of {answer['tool']} in {answer['sessionKey']} {how}{again}")


def _wait(operator: Operating, answer: JsonMapping, after: int, seconds: float) -> None:
    """Wait until the released work has ended, or is held again, or no event came for this many seconds."""
    flows = operator.reader.flows
    named = (answer["runId"],) if "runId" in answer else answer["released"]
    under_way = {f"exchange:{flows.exchange_of_run(run_id)}" for run_id in named}
    for recorded in parts_in(operator.events(after, quiet_s=seconds)) if under_way else ():
        if isinstance(recorded.event, ExchangeClosed | ExchangeHeld):
            under_way.discard(recorded.stream)
        if not under_way:
            return


def _show_released(screen: Screen, answer: JsonMapping) -> None:
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
    """Return what a method is told of an exchange, or of a session."""
    run = run_meant(reader, what)
    if run is not None:
        return {"runId": run.run_id}
    try:
        return {"sessionKey": session_named(reader, what, field="what")}
    except ToolRefused as refused:
        raise ToolRefused(
            refused.code, f"{refused.error}; `intersession runs --held` shows what is held"
        ) from None

"""`intersession retry`: the message of a run that failed, answered after all."""

from typing import Annotated, Final

from cyclopts import Parameter
from cyclopts.validators import Number

from intersession.cli.host import Operating, operator_of
from intersession.cli.shell import OK, READING, REFUSED, Agents, Answer, Reading, Screen, safe
from intersession_actors.debugger import run_meant
from intersession_actors.gate import WAIT
from intersession_events.keys import SessionKey
from intersession_events.plain_json import JsonMapping, JsonObject

_AT_ONCE_S: Final = 20.0
"""So long is waited in one call: a gateway that is gone shows no later than that."""


def retry(
    run: Annotated[str, Parameter(help="The run that failed: its id, or how that begins.")],
    /,
    *,
    agents: Agents = None,
    timeout: Annotated[
        float,
        Parameter(
            help="Seconds to wait for the answer, up to 86400; 0 does not wait. Default: 30.",
            validator=Number(gte=0, lte=WAIT.most),
        ),
    ] = 30.0,
    reading: Reading = READING,
) -> Answer:
    """Have the message of a run that failed answered after all.

    Its words are recorded anew in the same session, and a new run answers them; the text goes where that of
    the failed one would have gone. Asked for again, it is the same run. Where the log has a host, it
    does the work; else this command does, with the agents that --agents names, or the configuration. Without
    the session's agent the run waits for the next host that has it.
    """
    with operator_of(reading, agents=agents) as operator:
        meant = run_meant(operator.reader, run)
        value = operator.call("runs.retry", {"runId": run if meant is None else meant.run_id})
        value |= _end(operator, value, timeout)
    return Answer(value, lambda screen: _show(screen, value), REFUSED if _has_failed(value) else OK)


def _end(operator: Operating, accepted: JsonMapping, seconds: float) -> JsonObject:
    """Wait for the end of a run, where somebody is there who answers; return how it stands."""
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
        screen.line(safe(f"  not over: `intersession replay {run_id}` shows how far it is", "dim"))
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
        screen.line(
            safe(
                f"  `intersession replay {run_id}` shows why; `intersession retry {run_id}` has that tried again",
                "dim",
            )
        )

"""`intersession send`: a message to a session, answered by agents that this command hosts for its time."""

from typing import Annotated, Any, Final

from cyclopts import Parameter

from intersession.cli.answer import OK, REFUSED, Answer
from intersession.cli.beat_text import BeatPrinter
from intersession.cli.failures import UsageError
from intersession.cli.gateway_beside import gateway_beside
from intersession.cli.hosting import hosted
from intersession.cli.names import Names
from intersession.cli.options import READING, ActingAs, Reading
from intersession.cli.reading import acting_as
from intersession.cli.sending import Sending
from intersession.cli.terminal import Screen, safe
from intersession_actors.errors import ToolRefused
from intersession_events.stores.ambient import random_log_id

_HURRIED_S: Final = 0.5


def send(
    message: Annotated[str, Parameter(help="What to say.")],
    /,
    *,
    to: Annotated[str | None, Parameter(help="The session: its key in any form, or its session id.")] = None,
    label: Annotated[
        str | None, Parameter(help="The session with this label; with --agent, of that agent.")
    ] = None,
    agent: Annotated[str | None, Parameter(help="This agent's main session.")] = None,
    agents: Annotated[
        str | None,
        Parameter(
            help="Who answers: module:NAME of a dict of agents, or of a function that takes the store's URL and "
            "returns a SessionSystem."
        ),
    ] = None,
    timeout: Annotated[
        float, Parameter(help="Seconds to wait for the reply, up to 86400; 0 does not wait. Default: 30.")
    ] = 30.0,
    no_follow: Annotated[
        bool, Parameter(help="Come back with the reply, and leave the rest to the log's next host.")
    ] = False,
    idempotency_key: Annotated[
        str | None, Parameter(help="The same key and message are sent once, however often this is called.")
    ] = None,
    acting: ActingAs = None,
    reading: Reading = READING,
) -> Answer:
    """Send a message to a session, and follow what comes of it: reply, ping-pong, announce.

    The command is the log's writer for its time, with the agents that --agents names; one that is not there answers
    when a host that has it opens the log. Where a gateway serves the log, it asks that one instead. Without --as it is
    the operator who asks, and nobody replies back.
    """
    arguments = {
        "message": message,
        "sessionKey": to,
        "label": label,
        "agentId": agent,
        "timeoutSeconds": timeout,
        "idempotencyKey": idempotency_key or random_log_id(),
    }
    given = {name: value for name, value in arguments.items() if value is not None}
    if agents is None and (beside := gateway_beside(reading)) is not None:
        with beside:
            asked = beside.call_tool("sessions_send", given, session_key=acting)
        if "runId" not in asked:
            raise ToolRefused(asked["code"], asked["error"])
        return _answer(asked, asked)
    if agents is None and timeout > 0:
        raise UsageError(
            "--agents: nobody would answer; name who does, or give --timeout 0 to leave it to the next host"
        )
    screen = None if reading.json else Screen()
    with hosted(reading, agents=agents, config=reading.config) as system:
        key = acting_as(system.core.reader, acting).key
        sending = Sending(system, None if key is None else str(key), given)
        try:
            if not no_follow:
                sending.follow(None if screen is None else BeatPrinter(screen, Names()))
            result = sending.result()
        except (KeyboardInterrupt, BrokenPipeError):
            system.close(_HURRIED_S)  # what is cut off is taken up by the next host
            raise
        value = result | sending.outcome()
    return _answer(value, result)


def _answer(value: dict[str, Any], result: dict[str, Any]) -> Answer:
    failed = result["status"] in {"error", "forbidden"}
    return Answer(value, lambda on: _show(on, value, result), REFUSED if failed else OK)


def _show(screen: Screen, value: dict[str, Any], result: dict[str, Any]) -> None:
    screen.line()
    status = result["status"]
    screen.line(
        safe(f"{status}", "bold green" if status in {"ok", "accepted"} else "bold red"),
        f"  run {result['runId']}",
    )
    if "beats" not in value and result.get("reply"):
        screen.indented(result["reply"], 4)
    if "error" in result:
        screen.line("  ", str(result["error"]))
    if "pending" in value:
        screen.line(
            safe(
                f"  not over: {value['pending']}; `intersession replay {result['runId']}` shows how far it is",
                "dim",
            )
        )
    elif "exchange" in value:
        screen.line(safe(f"  exchange {value['exchange']['id']}: {value['exchange']['inWords']}", "dim"))

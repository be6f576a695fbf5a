"""`intersession send`: a message to a session, answered by agents that this command hosts, or by the gateway beside."""

from typing import Annotated, Final

from cyclopts import Parameter

from intersession.cli.host import (
    GatewayBeside,
    HostedHere,
    Sending,
    acting_as,
    host_beside,
    hosted,
    reading_log,
)
from intersession.cli.shell import (
    OK,
    READING,
    REFUSED,
    ActingAs,
    Agents,
    Answer,
    Reading,
    Screen,
    UsageError,
    as_typed,
    safe,
)
from intersession.cli.story import BeatPrinter
from intersession_actors.config import load_config
from intersession_actors.debugger import as_key
from intersession_actors.runtime import SystemClock
from intersession_actors.service import Reader
from intersession_events.machine import random_id
from intersession_events.plain_json import JsonObject, present
from intersession_projections.inline_views import inline_views

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
    agents: Agents = None,
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
    """Send a message to a session, and follow what comes of it.

    It shows reply, ping-pong and announce as they come. The command is the log's writer for its time, with
    the agents that --agents names; one that is not there answers when a host that has it opens the log. Where
    the log has a host, it asks that one instead. Without --as it is the operator who asks, and nobody
    replies back.
    """
    if to is None and label is None and agent is None:
        raise UsageError("say which session: give --to, --label or --agent")
    arguments = {
        "message": message,
        "sessionKey": to,
        "label": label,
        "agentId": agent,
        "timeoutSeconds": timeout,
        "idempotencyKey": idempotency_key or random_id(),
    }
    given = present(arguments)
    if agents is None and (beside := host_beside(reading)) is not None:
        # Whatever ends the block, the gateway goes on.
        config = load_config(reading.config).config
        with beside, reading_log(reading, config=config, views=inline_views()) as log:
            names = Reader(log, config=lambda: config, clock=SystemClock())
            if to is not None:
                given["sessionKey"] = as_key(names, to)
            host = GatewayBeside(log, beside, _acting(names, acting), another=lambda: host_beside(reading))
            return _sent(Sending(host, given), no_follow=no_follow, json=reading.json)
    if agents is None and timeout > 0:
        raise UsageError(
            "--agents: nobody would answer; name who does, or give --timeout 0 to leave it to the next host"
        )
    with hosted(reading, agents=agents, config=reading.config) as system:
        if to is not None:
            given["sessionKey"] = as_key(system.service.reader, to)
        sending = Sending(HostedHere(system, _acting(system.service.reader, acting)), given)
        try:
            return _sent(sending, no_follow=no_follow, json=reading.json)
        except (KeyboardInterrupt, BrokenPipeError):
            system.close(_HURRIED_S)  # what is cut off is taken up by the next host
            raise


def _acting(reader: Reader, acting: str | None) -> str | None:
    key = acting_as(reader, acting).key
    return None if key is None else str(key)


def _sent(sending: Sending, *, no_follow: bool, json: bool) -> Answer:
    """Follow what was sent, and return the answer with what is known by then."""
    if not no_follow:
        sending.follow(None if json else BeatPrinter(Screen(), sending.names))
    result = sending.result()
    known, words = sending.outcome()
    value = result | known
    failed = result["status"] in {"error", "forbidden"}
    return Answer(value, lambda screen: _show(screen, value, words), REFUSED if failed else OK)


def _show(screen: Screen, value: JsonObject, words: str) -> None:
    screen.line()
    status = value["status"]
    screen.line(
        safe(f"{status}", "bold green" if status in {"ok", "accepted"} else "bold red"),
        f"  run {value['runId']}",
    )
    if "beats" not in value and value.get("reply"):
        screen.indented(value["reply"], 4)
    if "error" in value:
        screen.line("  ", as_typed(str(value["error"]), ["send"]))
    if "pending" in value:
        more = f"`intersession replay {value['runId']}` shows how far it is"
        screen.line(safe(f"  not over: {words}; {more}", "dim"))
    elif "exchange" in value:
        screen.line(safe(f"  exchange {value['exchange']['id']}: {words}", "dim"))

"""Plays the demo once on a running system: what people say, and when all that comes of it is over."""

from collections.abc import Mapping
from typing import Any, Final

from intersession.cli.commands.demo_agents import GREETING, ORDER, QUESTION
from intersession_actors.system import SessionSystem

_WAIT_S: Final = 20.0
_ADA: Final = {"chat_id": "ada", "sender": "ada"}


def play_round(system: SessionSystem, chat: Mapping[str, str] = _ADA) -> tuple[str, str]:
    """Play it once, with one person in her chat; return the ids of the runs that answered her."""
    _say(system, channel="discord", chat_id="lab", sender="ben", text=GREETING, agent_id="research")
    asked = _say(system, channel="telegram", text=QUESTION, **chat)
    _until_over(system)
    ordered = _say(system, channel="telegram", text=ORDER, **chat)
    _until_over(system)
    return asked, ordered


def _say(system: SessionSystem, **message: Any) -> str:  # the arguments of `inbound`
    answer = system.inbound(wait=_WAIT_S, **message)
    run_id = answer.get("runId")
    if answer["status"] != "ok" or run_id is None:
        raise RuntimeError(f"the demo's own agents failed: {answer}")
    return run_id


def _until_over(system: SessionSystem) -> None:
    """Wait until nothing is open any more."""
    flows = system.service.flows
    for _ in system.follow(max(0, system.log.head() - 1), timeout=_WAIT_S):
        if not (flows.open_exchanges() or flows.open_spawns() or flows.open_deliveries()):
            return

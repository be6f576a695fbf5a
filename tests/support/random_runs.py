"""Logs of agents that talk to each other as chance has it, for tests of what has to hold for every run."""

import random
from pathlib import Path

from intersession import Reply, SessionSystem, Turn
from intersession_actors.hindsight.forking.carrying import carry_on
from support.running import SEES_ALL, WAIT

AGENTS = ("main", "ops", "desk", "home")


def random_runs(path: Path, seed: int, *, asked: int, at_once: bool = True) -> Path:
    """Have agents talk to each other as chance has it: sends, spawns, failures; and one that talks to nobody.

    `at_once`: exchanges begin exchanges, and several of them talk in one session, in an order that no other log has. Else each
    conversation is over before the next one begins.
    """
    chance = random.Random(seed)  # noqa: S311 - the same each time

    def speak(turn: Turn) -> str | Reply:
        if turn.step != "message":
            return Reply.skip() if chance.random() < 0.3 else f"well, {turn.message[:20]}"
        if chance.random() < 0.1:
            raise ValueError("out of order")
        said_by = turn.asked.provenance
        if not at_once and (said_by is None or said_by.kind != "external_user"):
            return f"said {turn.message[:20]}"
        if chance.random() < 0.6:
            other = chance.choice(AGENTS)
            turn.tools.call(
                "sessions_send",
                {"sessionKey": f"agent:{other}:main", "message": f"for {other}", "timeoutSeconds": 0},
            )
        elif chance.random() < 0.3:
            turn.tools.call("sessions_spawn", {"task": "look it up"})
        return f"said {turn.message[:20]}"

    config = {**SEES_ALL, "session": {"agentToAgent": {"maxPingPongTurns": 2}}}
    agents = {**dict.fromkeys(AGENTS, speak), "alone": lambda turn: f"to myself: {turn.message}"}
    with SessionSystem(f"sqlite:///{path}", agents=agents, config=config) as system:
        for number in range(asked):
            for key in (f"agent:{chance.choice(AGENTS)}:main", "agent:alone:main"):
                sent = {"sessionKey": key, "message": f"hello {number}", "idempotencyKey": f"{key} {number}"}
                system.gateway.call("agent.wait", {"runId": system.gateway.call("chat.send", sent)["runId"]})
                if not at_once:
                    carry_on(system.service, "", timeout=WAIT)
        carry_on(system.service, "", timeout=WAIT)  # until nothing is open any more
    return path

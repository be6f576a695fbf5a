"""A limited credential at the web debugger: what others do changes no answer of its own, but for the position of the log."""

import re
from collections.abc import Iterator
from typing import Any, Final

import pytest

from intersession import SessionSystem
from support.doors.gateway_live import READER, TOKEN, WRITER, LiveGateway
from support.doors.web_log import played

ASKED: Final[dict[str, list[dict[str, Any]]]] = {
    "about": [{}],
    "compare": [{"a": "RUN@turn:2", "b": "RUN"}],
    "deliveries": [{}, {"limit": 1}],
    "diff": [{"a": "RUN@turn:2", "b": "RUN"}],
    "event": [{"at": "head"}, {"at": 20}, {"at": "RUN@turn:2"}],
    "events": [{}, {"limit": 2}, {"since": 5, "until": "head"}, {"receipts": "true"}],
    "forks": [{}],
    "integrity": [{}, {"verify": "true"}],
    "lens": [{"run": "RUN"}],
    "messages": [{}, {"limit": 1}, {"interSession": "true"}],
    "notes": [{"run": "RUN"}],
    "origin": [{"words": "3.5 tonnes"}],
    "place": [{"at": "head"}, {"at": 5}, {"at": -3}, {"at": 10**9}, {"at": "turn:2", "run": "RUN"}],
    "replay": [{"run": "RUN"}],
    "rows": [{"run": "RUN"}],
    "run": [{"run": "RUN"}],
    "runs": [{}, {"limit": 1}, {"smell": "true"}, {"words": "boat"}],
    "search": [{"words": "boat"}, {"words": "crossing"}],
    "sessions": [{}, {"search": "research"}],
    "settings": [{}],
    "show": [{"run": "RUN"}],
    "smells": [{}, {"limit": 1}],
    "state": [{}, {"at": "head"}, {"of": "RUN"}, {"from": 5, "to": "head"}],
    "steps": [{"run": "RUN"}],
    "why": [{"of": "RUN"}, {"of": "head"}],
}
"""What is asked of each question; RUN is the exchange of the demo."""


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[SessionSystem, LiveGateway]]:
    with played() as found:
        yield found


def test_every_question_is_asked_here(served: tuple[SessionSystem, LiveGateway]) -> None:
    with served[1].http(None) as client:
        paths = client.get("/openapi.json").json()["paths"]
    described = {
        path.rpartition("/")[2] for path, each in paths.items() if "/debug/api/" in path and "get" in each
    }

    assert described - {"file", "live"} == ASKED.keys()


@pytest.mark.clause("VIS-6", "X2")
@pytest.mark.parametrize("token", [READER, WRITER], ids=["of some sessions", "of none"])
def test_what_others_do_is_in_no_answer_but_for_the_position_of_the_log(
    served: tuple[SessionSystem, LiveGateway], token: str
) -> None:
    system, gateway = served
    others_at_work(system)  # so that the position of the log is far from that of any event of one's own
    answers(gateway, token)  # who asks leaves receipts; asked twice, the second time is like the third
    before = answers(gateway, token)
    others_at_work(system)
    after = answers(gateway, token)

    moved = {asked: (before[asked], after[asked]) for asked in before if before[asked] != after[asked]}
    assert moved == {}


def others_at_work(system: SessionSystem) -> None:
    """Have somebody ask research: nothing of it is of a session that the credentials of the test reach."""
    for number in range(3):
        told: dict[str, Any] = {
            "channel": "telegram",
            "chat_id": "bo",
            "sender": "bo",
            "agent_id": "research",
        }
        system.inbound(text=f"A boat of {number} m at the crossing?", wait=20, **told)


def answers(gateway: LiveGateway, token: str) -> dict[str, tuple[int, str]]:
    """Return the status and the text of each answer, without the position of the log, which every door tells, and how far that is."""
    with gateway.http(TOKEN) as client:
        run = client.get("/debug/api/runs", params={"kind": "exchange", "words": "lake crossing"}).json()[
            "runs"
        ][0]["id"]
    found: dict[str, tuple[int, str]] = {}
    head = 0
    with gateway.http(token) as client:
        for name, each in ASKED.items():
            for given in each:
                asked = {key: str(value).replace("RUN", run) for key, value in given.items()}
                head = gateway.door.system.log.head()
                answer = client.get(f"/debug/api/{name}", params=asked)
                heads = range(head - 3, gateway.door.system.log.head() + 1)
                said = re.sub(
                    rf"\b({'|'.join(map(str, heads))})\b|\d+ (?=events of the log)", "HEAD", answer.text
                )
                found[f"{name} {given}"] = (answer.status_code, said)
    return found

"""A limited credential at the web debugger: what others do changes no answer of its own, but for the position of the log."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import pytest

from intersession import SessionSystem
from intersession.web.questions.table import QUESTIONS
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.rules.policy.questions import OPERATORS
from intersession_events.facts import NotePinned
from intersession_events.log.recorded import Draft, StreamAppend
from support.doors.gateway_live import READER, TOKEN, WRITER, LiveGateway
from support.doors.web_log import played
from support.every_day import every_day
from support.oracle import uuid

ASKED: Final[dict[str, list[dict[str, Any]]]] = {
    "about": [{}],
    "calls": [
        {},
        {"limit": 1, "cursor": "1000", "since": 5, "until": "head"},
        {"tool": "sessions_send", "failed": "true"},
        {"session": "agent:main:main"},
        {"args": "boat"},
    ],
    "compare": [{"a": "RUN@turn:2", "b": "RUN"}, {"a": "RUN", "b": "RUN", "other": "0", "exact": "true"}],
    "deliveries": [
        {},
        {"limit": 1},
        {"failed": "true", "pending": "true"},
        {"session": "agent:main:main", "since": 5, "until": "head", "cursor": "1000"},
        {"channel": "telegram"},
        {"run": "RUN", "at": "head"},
        {"to": "lab"},
        {"person": "bo"},
        {"words": "boat"},
    ],
    "diff": [{"a": "RUN@turn:2", "b": "RUN", "exact": "true"}],
    "event": [{"at": "head"}, {"at": 20}, {"at": "RUN@turn:2"}],
    "events": [
        {},
        {"limit": 2},
        {"since": 5, "until": "head"},
        {"receipts": "true"},
        {"kind": "message_recorded", "cursor": "1000"},
        {"stream": "session:agent:research", "limit": 3},
        {"session": "agent:main:main"},
    ],
    "forks": [{}, {"run": "RUN"}],
    "imports": [{}, {"what": "skipped", "cursor": "1", "limit": 1}],
    "integrity": [{}, {"verify": "true"}],
    "lens": [
        {"run": "RUN", "attempt": 1, "dialect": "prompt", "than": "RUN@turn:2"},
        {"run": "RUN", "before": 2, "limit": 1, "than": "RUN@turn:2"},
        {"run": "RUN", "all": "true"},
    ],
    "messages": [
        {},
        {"limit": 1, "cursor": "1000", "since": 5, "until": "head"},
        {"interSession": "true", "inter_session": "true", "why": "true", "delivered": "true"},
        {"from": "agent:main:main", "to": "agent:main:main"},
        {"from": "agent:research:main"},
        {"person": "bo"},
    ],
    "notes": [{"run": "RUN"}],
    "origin": [
        {"words": "3.5 tonnes", "run": "RUN", "at": "head"},
        {"words": "boat"},
        {"words": "3.5 tonnes", "seen": "true", "limit": 1, "cursor": "1000"},
        {"words": "boat", "seen": "true"},
    ],
    "place": [{"at": "head"}, {"at": 5}, {"at": -3}, {"at": 10**9}, {"at": "turn:2", "run": "RUN"}],
    "replay": [{"run": "RUN"}],
    "rows": [{"run": "RUN", "from": 1, "limit": 2}],
    "run": [{"run": "RUN"}],
    "runs": [
        {},
        {"limit": 1, "cursor": "1000", "since": 5, "until": "head"},
        {"smell": "true", "kind": "exchange", "agent": "research"},
        {"failed": "true"},
        {"open": "true", "held": "true", "at": "head"},
        {"end": "ok"},
        {"smelling": "true"},
        {"session": "agent:main:main", "with": "agent:research:main"},
        {"words": "boat"},
        {"channel": "telegram"},
        {"person": "bo"},
    ],
    "search": [
        {"words": "boat"},
        {"words": "crossing", "in": "agent:main:main", "kind": "run_completed", "limit": 1},
        {"words": "boat", "since": 5, "until": "head", "cursor": "1000"},
    ],
    "sessions": [
        {},
        {"search": "res", "limit": 1},
        {"search": "research", "kinds": "main", "limit": 1},
        {"agent": "research", "at": "head"},
        {"cursor": "none"},
    ],
    "settings": [{}],
    "show": [{"run": "RUN", "at": "head"}],
    "smells": [
        {},
        {"limit": 1, "cursor": "1000", "since": 5, "until": "head"},
        {"run": "RUN", "code": "polite_loop", "at": "head"},
        {"session": "agent:main:main"},
    ],
    "state": [
        {},
        {"at": "head", "limit": 2, "messages": 3},
        {"of": "RUN", "as": "agent:main:main"},
        {"from": 5, "to": "head"},
    ],
    "steps": [{"run": "RUN", "from": 1, "limit": 2}],
    "why": [{"of": "RUN"}, {"of": "head", "forward": "true"}],
}
"""What is asked of each question, with each of its fields; RUN is the exchange of the demo. A page and a verb may differ in fields."""
for _asked in ASKED.values():
    if any("limit" in given for given in _asked):
        # By itself: the newest is of somebody else, and nobody may learn from a page, or from its cursor, that it is there.
        _asked.append({"limit": 1})


MOST: Final = every_day([1, 100], 1)
"""How many ways of asking each question are tried, from the last on: a page of one where it has pages."""


FAR: Final = 3_000


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[SessionSystem, LiveGateway]]:
    with played() as found:
        # So that the position of the log is no number that any answer has for another reason.
        notes = [NotePinned(flow="none", position=1, text="", by="nobody")] * FAR
        drafts = tuple(Draft(event=note, id=uuid(number), time=1) for number, note in enumerate(notes))
        found[0].log.append_now((StreamAppend(stream="notes:none", expected=0, drafts=drafts),))
        yield found


def test_every_question_is_asked_here(served: tuple[SessionSystem, LiveGateway]) -> None:
    with served[1].http(None) as client:
        paths = client.get("/openapi.json").json()["paths"]
    described = {
        path.rpartition("/")[2] for path, each in paths.items() if "/debug/api/" in path and "get" in each
    }

    assert described - {"file", "live"} == ASKED.keys()


@pytest.mark.clause("VIS-6", "FIND-2")
def test_every_question_is_in_the_table_of_who_may_ask_it() -> None:
    assert OPERATORS.keys() == ASKED.keys() | {"file", "reveal"}
    assert VERBS.keys() <= ASKED.keys()


ARGUMENTS: Final = [
    *((question.name, question.arguments) for question in QUESTIONS),
    *((verb.name, verb.arguments) for verb in VERBS.values()),
]


@pytest.mark.clause("VIS-6", "FIND-2")
@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS)
def test_every_field_is_asked_here(name: str, arguments: type[msgspec.Struct]) -> None:
    """A new field tells a limited caller what it likes, until somebody has thought of that."""
    asked = set[str]().union(*ASKED[name])

    assert {field.encode_name for field in msgspec.structs.fields(arguments)} <= asked


@pytest.mark.clause("VIS-6", "FIND-2")
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("compare", {"a": "RUN", "b": "RUN", "other": "0"}),
        ("deliveries", {"channel": "telegram"}),
        ("file", {"run": "RUN", "what": "log"}),
        ("forks", {}),
        ("integrity", {}),
        ("messages", {"person": "ada"}),
        ("replay", {"run": "RUN"}),
        ("run", {"run": "RUN", "fork": "0"}),
        ("runs", {"channel": "telegram"}),
        ("runs", {"person": "ada"}),
        ("runs", {"words": "crossing"}),
        ("settings", {}),
    ],
)
def test_what_only_the_operator_asks_is_refused_at_every_door(
    served: tuple[SessionSystem, LiveGateway], name: str, given: dict[str, Any]
) -> None:
    """The page of runs took words, a channel and a person from anybody, and told by one run or none who else had said a word."""
    _, gateway = served
    run = exchange(gateway)
    given = {field: str(value).replace("RUN", run) for field, value in given.items()}
    with gateway.http(READER) as client, gateway.http(TOKEN) as operator:
        refused = client.get(f"/debug/api/{name}", params=given)
        allowed = operator.get(f"/debug/api/{name}", params=given).status_code
        refused_over_socket = _asked_over_socket(gateway, name, given) if name in VERBS else "forbidden"

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert allowed in {200, 400}
    assert refused_over_socket == "forbidden"


def _asked_over_socket(gateway: LiveGateway, name: str, given: dict[str, Any]) -> str | None:
    with gateway.client(READER) as client:
        answer = client.request(f"debug.{name}", given)
    return None if answer["ok"] else answer["error"]["details"]["code"]


@pytest.mark.clause("VIS-6", "X2")
@pytest.mark.parametrize("most", MOST)
def test_what_others_do_is_in_no_answer_of_a_verb(
    served: tuple[SessionSystem, LiveGateway], most: int
) -> None:
    system, gateway = served
    others_at_work(system)
    verbs(gateway, most)
    before = verbs(gateway, most)
    others_at_work(system)
    after = verbs(gateway, most)

    assert {asked: (before[asked], after[asked]) for asked in before if before[asked] != after[asked]} == {}


@pytest.mark.clause("VIS-6", "X2")
@pytest.mark.parametrize(
    "token", every_day({"of some sessions": READER, "of none": WRITER}, "of some sessions")
)
@pytest.mark.parametrize("most", MOST)
def test_what_others_do_is_in_no_answer_but_for_the_position_of_the_log(
    served: tuple[SessionSystem, LiveGateway], token: str, most: int
) -> None:
    system, gateway = served
    others_at_work(system)  # so that the position of the log is far from that of any event of one's own
    answers(gateway, token, most)  # who asks leaves receipts; asked twice, the second time is like the third
    before = answers(gateway, token, most)
    others_at_work(system)
    after = answers(gateway, token, most)

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


def answers(gateway: LiveGateway, token: str, most: int) -> dict[str, tuple[int, str]]:
    """Return the status and the text of each answer, without the position of the log, which every door tells, and how far that is."""
    run = exchange(gateway)
    found: dict[str, tuple[int, str]] = {}
    with gateway.http(token) as client:
        for name, each in ASKED.items():
            for given in each[-most:]:
                asked = {key: str(value).replace("RUN", run) for key, value in given.items()}
                head = gateway.door.system.log.head()
                answer = client.get(f"/debug/api/{name}", params=asked)
                said = without_heads(answer.text, range(head - 3, gateway.door.system.log.head() + 1))
                found[f"{name} {given}"] = (answer.status_code, said)
    return found


def verbs(gateway: LiveGateway, most: int) -> dict[str, str]:
    """Return the text of each answer of a verb, asked over a connection."""
    run = exchange(gateway)
    found: dict[str, str] = {}
    with gateway.client(READER) as client:
        for name, verb in VERBS.items():
            fields = {field.encode_name for field in msgspec.structs.fields(verb.arguments)}
            for given in ASKED[name][-most:]:
                asked = {
                    key: value.replace("RUN", run) if isinstance(value, str) else value
                    for key, value in given.items()
                    if key in fields
                }
                asked = {key: True if value == "true" else value for key, value in asked.items()}
                head = gateway.door.system.log.head()
                answer = {
                    key: value for key, value in client.request(f"debug.{name}", asked).items() if key != "id"
                }
                heads = range(head - 3, gateway.door.system.log.head() + 1)
                found[f"{name} {given}"] = without_heads(json.dumps(answer, sort_keys=True), heads)
    return found


def exchange(gateway: LiveGateway) -> str:
    """Return the exchange of the demo."""
    with gateway.http(TOKEN) as client:
        listed = client.get("/debug/api/runs", params={"kind": "exchange", "words": "lake crossing"}).json()
    run: str = listed["runs"][0]["id"]
    return run


_ID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def without_heads(text: str, heads: range) -> str:
    text = re.sub(r'(?<="cursor":")eyJ[\w=-]+', _opened, text)
    # An id is taken as a whole: a group of four digits of it may be the same number.
    numbers = rf"({_ID})|\b(?:{'|'.join(map(str, heads))})\b|\d+ (?=events of the log)"
    return re.sub(numbers, lambda found: found[1] or "HEAD", text)


def _opened(cursor: re.Match[str]) -> str:
    """Return what stands in a cursor of sessions, but for the time it was made."""
    inside = json.loads(base64.urlsafe_b64decode(cursor[0] + "=="))
    return json.dumps({name: value for name, value in inside.items() if name != "reference_ms"})

"""No answer of the web debugger has a secret, whoever asks, and none of a verb has one for a limited caller (HIST-5, FIND-2)."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from intersession import SessionSystem, Turn, echo
from intersession.web.questions.table import QUESTIONS
from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.outside.channels.channels import MemoryChannel
from support.doors.gateway_live import GATEWAY, READER, TOKEN, LiveGateway
from support.doors.page_questions import ASKED
from support.every_day import every_day
from support.planted import told_in
from support.running import SEES_ALL, WAIT, merged

MAIN, OPS = "agent:main:main", "agent:ops:main"

BESIDE: Final = "a-token-that-sees-main-from-ops"
CREDENTIALS: Final[list[dict[str, Any]]] = [
    *GATEWAY["gateway"]["auth"]["credentials"],
    {"name": "beside", "token": BESIDE, "actAs": ["agent:ops:*"], "sees": ["agent:main:*"]},
]

NAMED: Final = "Zq7wm2Xk9vTb4LpR1c"
CUT: Final = "sk-proj-Aa9Bb8Cc7Dd6Ee5Ff4Gg3Hh2Ii1"
SECRETS: Final = {
    "a message, where its title is cut": CUT,
    "by the name that it stands under": NAMED,
    "nested under such a name": "Nested5Qx8Wc2Vb6",
    "in a list under such a name": "Listed7Yh3Kd9Ju1",
    "in JSON in an argument": "Quoted4Rt6Pl8Mn2",
    "as a number": "7391046582917",
    "in a result": "Result9Fg5Hj7Kl3",
    "in an answer": "ghp_Ans8wer7Tok6en5Abc4Def3Ghi2Jkl1Mno",
    "in a note": "N0te3Ws5Ed7Rf9Tg",
    "in a text that went outside": "0utside2Qa4Ws6Ed",
    "in a label": "sk-label-Qw3Er5Ty7Ui9Op1As2Df4",
    "in what the system says": "Sys7Tem9Xs2Zq4Wa",
}
"""Each of its own letters, so that a part of one tells which it is."""


def talks(turn: Turn) -> str:
    if turn.step == "message" and "call" in turn.message:
        given = {
            "db": {"password": {"value": SECRETS["nested under such a name"]}},
            "passwords": [SECRETS["in a list under such a name"]],
            "apiKey": NAMED,
            "body": json.dumps({"password": SECRETS["in JSON in an argument"]}),
            "password": int(SECRETS["as a number"]),
        }
        call = turn.record_call("login", given)
        turn.record_result(call, "login", {"secret": SECRETS["in a result"], "ok": True})
        asked = f"Log in with password={SECRETS['in what the system says']}, please."
        turn.tools.call("sessions_send", {"agentId": "ops", "message": asked, "timeoutSeconds": WAIT})
        return f"It is {SECRETS['in an answer']}. Outside it is password: {SECRETS['in a text that went outside']}"
    if "fail" in turn.message:
        raise RuntimeError("refused: password=Err0r6Bn4Mv2Cx8Z")
    return "NO_REPLY"


class Told(NamedTuple):
    system: SessionSystem
    live: LiveGateway
    run: str


@pytest.fixture(scope="module")
def told() -> Iterator[Told]:
    channel = MemoryChannel(idempotent=True)
    with (
        SessionSystem(
            ":memory:",
            agents={"main": talks, "ops": echo("heard ")},
            channels={"telegram": channel},
            config=merged(SEES_ALL, GATEWAY, {"gateway": {"auth": {"credentials": CREDENTIALS}}}),
        ) as system,
        LiveGateway(system) as live,
    ):
        said: dict[str, Any] = {"channel": "telegram", "chat_id": "ada", "sender": "ada", "wait": WAIT}
        # The title of a run is cut at 200 letters, and a snippet begins 48 before the word: both in the midst of it.
        system.inbound(text=f"{'word ' * 37}zebra {CUT} and call", **said)
        system.inbound(text="fail", **said)
        patch = {"key": MAIN, "label": SECRETS["in a label"]}
        system.gateway.call("sessions.patch", patch)
        run = system.debug.runs(kind=["exchange"])["runs"][0]["id"]
        note = f"password is {SECRETS['in a note']}"
        system.gateway.call("notes.pin", {"run": run, "text": note})
        yield Told(system, live, run)


told_of: Final = partial(told_in, secrets=SECRETS)


@pytest.mark.clause("HIST-5")
def test_the_log_has_them_all(told: Told) -> None:
    whole = "".join(str(recorded.event) for recorded in told.system.log.all())

    assert told_of(whole) == [*SECRETS]


def asked_of(told: Told, name: str) -> Iterator[dict[str, Any]]:
    found = [one.position for one in told.system.log.all() if told_of(str(one.event))]
    positions = [{"at": position} for position in found] if name == "event" else []
    for given in [*ASKED[name], *positions]:
        yield {
            key: value.replace("RUN", told.run) if isinstance(value, str) else value
            for key, value in given.items()
        }


ARGUMENTS: Final = [
    *((question.name, question.arguments) for question in QUESTIONS),
    *((verb.name, verb.arguments) for verb in VERBS.values()),
]


@pytest.mark.clause("HIST-5", "FIND-2")
@pytest.mark.parametrize(("name", "arguments"), ARGUMENTS)
def test_every_field_is_asked_here(name: str, arguments: type[msgspec.Struct]) -> None:
    asked = set[str]().union(*ASKED[name])

    assert {field.encode_name for field in msgspec.structs.fields(arguments)} <= asked


@pytest.mark.clause("HIST-5", "FIND-2")
@pytest.mark.parametrize("token", every_day({"operator": TOKEN, "limited": READER}, "limited"))
@pytest.mark.parametrize("name", ASKED)
def test_no_question_of_the_page_tells_a_part_of_one(told: Told, name: str, token: str) -> None:
    with told.live.http(token) as client:
        answers = [client.get(f"/debug/api/{name}", params=given).text for given in asked_of(told, name)]

    assert told_of("".join(answers)) == []


@pytest.mark.clause("HIST-5", "FIND-2")
@pytest.mark.parametrize("name", VERBS)
def test_no_verb_tells_a_limited_caller_a_part_of_one(told: Told, name: str) -> None:
    with told.live.client(READER) as client:
        answers = [
            json.dumps(client.request(f"debug.{name}", given), ensure_ascii=False)
            for given in asked_of(told, name)
        ]

    assert told_of("".join(answers)) == []


TOOLS: Final[list[tuple[str, dict[str, Any]]]] = [
    ("sessions_list", {"messageLimit": 20}),
    ("sessions_history", {"sessionKey": MAIN, "includeTools": True}),
    ("sessions_search", {"query": "password"}),
    ("sessions_search", {"query": "call"}),
    ("sessions_search", {"query": "word"}),
    ("agents_list", {}),
]


@pytest.mark.clause("HIST-5", "FIND-2")
@pytest.mark.parametrize(("tool", "args"), TOOLS)
def test_no_tool_tells_a_limited_caller_a_part_of_one_that_another_session_has(
    told: Told, tool: str, args: dict[str, Any]
) -> None:
    answer = told.live.invoke(tool, args, token=BESIDE, sessionKey=OPS)

    assert answer.status_code == 200, answer.text
    # One was said to ops, so it stands in its own history, too.
    assert [name for name in told_of(answer.text) if name != "in what the system says"] == []


@pytest.mark.clause("HIST-5", "LIST-5")
def test_whoever_sees_a_session_is_shown_its_label_without_secrets(told: Told) -> None:
    sees = told.live.invoke("sessions_list", {}, token=BESIDE, sessionKey=OPS).json()["result"]["details"]

    assert [row["label"] for row in sees["sessions"] if "label" in row] == ["sk-lab…2Df4"]


@pytest.mark.clause("HIST-5", "LIST-4")
def test_a_label_is_found_by_what_is_shown_of_it(told: Told) -> None:
    def found(**asked: str) -> list[str]:
        answer = told.live.invoke("sessions_list", asked, token=BESIDE, sessionKey=OPS)
        return [row["key"] for row in answer.json()["result"]["details"]["sessions"]]

    label = SECRETS["in a label"]
    assert [found(search=label[: number + 11]) for number in (0, 1, 2)] == [[], [], []]
    assert found(search="sk-lab") == [MAIN]
    assert found(label=label) == [MAIN], "who knows all of it can name the session by it"


@pytest.mark.clause("FIND-1", "HIST-5")
@pytest.mark.parametrize("secret", SECRETS.values(), ids=SECRETS.keys())
@pytest.mark.parametrize("token", [TOKEN, READER], ids=["operator", "limited"])
def test_none_is_found_by_itself_or_letter_by_letter(told: Told, secret: str, token: str) -> None:
    letters = [f"{secret.rpartition('-')[2].rpartition('_')[2][: number + 7]}*" for number in (0, 1, 2)]
    with told.live.http(token) as client:
        found = [
            client.get("/debug/api/search", params={"words": words}).json()["hits"]
            for words in (secret, *letters)
        ]
        listed = [
            client.get("/debug/api/sessions", params={"search": secret[: number + 11]}).json()["sessions"]
            for number in (0, 1, 2)
        ]
        runs = client.get("/debug/api/runs", params={"words": secret}).json().get("runs", [])

    assert found + listed + [runs] == [[]] * 8


@pytest.mark.clause("FIND-1")
def test_the_operator_finds_them_where_nothing_is_hidden(told: Told) -> None:
    assert told.system.debug.search(CUT)["hits"] != []

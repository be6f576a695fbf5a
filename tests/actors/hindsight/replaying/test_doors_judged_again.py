"""What doors refused and let in is judged again from its decision record: by other rules it comes out otherwise, and a doctored
record is named."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import msgspec
import pytest

from intersession import SessionSystem, Turn, open_log, replay_file
from intersession_actors.calls.service.callers import Caller
from intersession_actors.hindsight.explaining.explained import Explaining
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy import access, chain, sending, spawning, tools
from intersession_events import facts
from intersession_events.log.recorded import Recorded
from support.doors.command_line import ran
from support.rewritten import rewritten
from support.running import wait_for_number

MAIN, DESK, LAB = "agent:main:main", "agent:desk:main", "agent:lab:main"
WORDS = "the words of nobody else"
ALL = {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}
OPEN: dict[str, Any] = {
    "agents": {
        "defaults": {"models": {"some/model": {}}},
        "list": [
            {"id": "main", "default": True, "subagents": {"allowAgents": ["desk"]}},
            {"id": "desk", "tools": {"deny": ["sessions_list"]}},
            {"id": "lab"},
            {"id": "quiet"},
        ],
    },
    "tools": ALL | {"subagents": {"tools": {"alsoAllow": ["sessions_spawn", "sessions_send"]}}},
    "session": {
        "agentToAgent": {"maxPingPongTurns": 0, "limits": {"hops": 2, "revisits": 1}},
        "sendPolicy": {"rules": [{"action": "deny", "match": {"keyPrefix": "agent:quiet:"}}]},
    },
}
THEIRS = [f"one-of-the-others-{number}" for number in range(20)]
CLOSED: dict[str, Any] = OPEN | {
    "tools": {
        "sessions": {"visibility": "all"},
        "agentToAgent": {"enabled": True, "allow": ["main", *THEIRS]},
    }
}


def calls(turn: Turn) -> str:
    """Do what a message says: `TOOL {ARGUMENTS}` a line, and say how it was answered."""
    if turn.step != "message":
        return "ANNOUNCE_SKIP"
    answers: list[str] = []
    for line in turn.message.splitlines():
        name, _, arguments = line.partition(" ")
        if arguments.startswith("{"):
            answer = turn.tools.call(name, msgspec.json.decode(arguments))
            answers.append(str(answer.get("code", answer["status"])))
    return " ".join(answers) or "nothing to do"


def told(system: SessionSystem, agent_id: str, *asked: tuple[str, dict[str, Any]]) -> str:
    text = "\n".join(map(line, asked)) or "hi"
    answer = system.inbound(
        channel="x", chat_id=agent_id, text=text, sender="ann", agent_id=agent_id, wait=20
    )
    return str(answer["reply"])


def send(to: str, message: str = WORDS, **more: Any) -> tuple[str, dict[str, Any]]:
    return "sessions_send", {"sessionKey": to, "message": message, "timeoutSeconds": 20} | more


def spawn(**more: Any) -> tuple[str, dict[str, Any]]:
    return "sessions_spawn", {"task": WORDS} | more


def line(call: tuple[str, dict[str, Any]]) -> str:
    return f"{call[0]} {msgspec.json.encode(call[1]).decode()}"


class Kept(NamedTuple):
    """A log of a host that refused for each of its reasons, and let in, too."""

    path: Path
    log_id: str
    events: list[Recorded]
    explained: list[tuple[str, Explanation]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    path = tmp_path_factory.mktemp("doors") / "log.db"
    agents = dict.fromkeys(("main", "desk", "lab", "quiet"), calls)
    with SessionSystem(path, agents=agents, config=OPEN) as system:
        for name in agents:
            assert told(system, name) == "nothing to do"
        old = system.tools().call("sessions_list", {})["sessions"]
        ids = {row["key"]: row["sessionId"] for row in old}
        system.gateway.call("sessions.reset", {"key": LAB})
        system.gateway.call("sessions.patch", {"key": DESK, "label": "twin"})
        system.gateway.call("agent", {"sessionKey": "agent:lab:notes", "message": "hi", "deliver": False})
        system.gateway.call("sessions.patch", {"key": "agent:lab:notes", "label": "twin"})

        assert told(system, "main", send(DESK), spawn()) == "ok accepted"
        assert told(system, "main", send("nobody-here"), send("agent:main:none")) == "not_visible not_visible"
        assert told(system, "main", send(MAIN), send(ids[LAB])) == "self_send old_generation"
        assert (
            told(system, "main", ("sessions_send", {"label": "twin", "message": WORDS})) == "ambiguous_label"
        )
        assert told(system, "main", send("agent:quiet:main")) == "policy_denied"
        assert told(system, "main", spawn(agentId="lab"), spawn(model="no/model")) == (
            "agent_not_allowed invalid_model"
        )
        assert told(system, "main", spawn(sandbox="require")) == "sandbox_required"
        assert told(system, "desk", ("sessions_list", {})) == "not_supported"
        # Who waits for whom: the desk for the lab, which waits for the desk.
        assert told(system, "desk", send(LAB, line(send(DESK)))) == "ok"
        # Two hops at most, and back to a session once at most.
        far = line(send(LAB, line(send(MAIN, timeoutSeconds=0))))
        assert told(system, "main", send(DESK, far)) == "ok"
        deep = system.tools(MAIN).call("sessions_spawn", {"task": line(spawn())})
        assert deep["status"] == "accepted"
        wait_for_number(system, facts.SpawnClosed, 2)
        reader = Caller.by_credential("reader", ("agent:desk:*",))
        with pytest.raises(ToolRefused):
            system.gateway.perform("chat.history", {"sessionKey": MAIN}, caller=reader)
    with SessionSystem(path, agents=agents, config=CLOSED) as system:
        assert told(system, "main", send(DESK), send(LAB)) == "forbidden forbidden"
        assert system.tools(MAIN).call("sessions_history", {"sessionKey": DESK})["code"] == "forbidden"
        recorded, explaining = list(system.log.all()), Explaining(system.service.reader)
        explained = [
            (type(one.event).__name__, why)
            for one in recorded
            for why in explaining.of(one)
            if why.about == "refusal"
        ]
    return Kept(path, system.log.log_id, recorded, explained)


def different(kept: Kept, events: list[Recorded] | None = None) -> list[str]:
    sources = Sources(kept.log_id, kept.events if events is None else events)
    return [one.problem or "" for one in redecided_all(sources) if not one.is_same]


def judged(events: list[Recorded]) -> Iterator[tuple[Recorded, dict[str, Any]]]:
    """Yield the events that have the record of a judgement at a door, and that record."""
    for one in events:
        record: dict[str, Any] = msgspec.json.decode(one.decision) if one.decision else {}
        inputs, knew = record.get("with", {}), record.get("knew", {})
        if (
            one.stream.startswith("access:")
            or ("judged" in inputs and one.stream.startswith("session:"))
            or "door" in knew
        ):
            yield one, record


@pytest.mark.clause("C7", "VIS-4")
def test_what_doors_said_is_judged_again_as_it_was(kept: Kept) -> None:
    assert different(kept) == []
    refused: set[str] = set()
    for one, _ in judged(kept.events):
        match one.event:
            case facts.AccessRecorded(denied=denied):
                refused |= {code for _, code in denied}
            case facts.SendRefused(code=code):
                refused.add(code)
            case facts.MessageRecorded(message=message):
                refused.add(msgspec.json.decode(facts.text_of(message))["code"])
            case _:
                pass
    assert refused == {
        *("not_visible", "self_send", "old_generation", "ambiguous_label", "policy_denied", "forbidden"),
        *("agent_not_allowed", "invalid_model", "sandbox_required", "not_supported", "cycle", "limit"),
        "subagent_spawn",
    }


OTHERWISE = {
    "another agent is seen": (access, "return patterns is None or any(", "return True or any("),
    "nobody is seen": (access, "return self.everything or (", "return self.everything and ("),
    "a channel is heard": (sending, "text.startswith(_folded(prefix))", "False"),
    "one hop more": (chain, "used < allowed", "used <= allowed"),
    "no hop": (chain, "if allowed == 0 or used < allowed:", "if allowed == 0:"),
    "all may be started": (spawning, 'or "*" in allowed', 'or "*" not in allowed'),
    "none has to be sandboxed": (
        spawning,
        "return known.own_sandboxed if",
        "return True if",
    ),
    "a child starts more": (
        tools,
        "known.subagent and known.spawn_depth",
        "not known.subagent and known.spawn_depth",
    ),
    "what is denied is given": (
        tools,
        "if names_tool(rules.deny, tool):\n        return False\n    lists",
        "lists",
    ),
}
"""Rules of doors that say something else: where the rule is, what it says, and what it would say."""


@pytest.mark.clause("C7", "SEAL-2")
@pytest.mark.parametrize(("module", "rule", "now"), OTHERWISE.values(), ids=OTHERWISE)
def test_a_door_that_would_say_something_else_today_is_named(
    kept: Kept, module: ModuleType, rule: str, now: str
) -> None:
    with rewritten(module, rule, now):
        assert different(kept) != []


DOCTORED = (
    *("SeeSession knew visibility", "SeeSession knew agentToAgent", "SeeSession knew allow"),
    *("SeeSession knew exists", "SeeSession knew earlier", "SeeSession knew labelled", "SeeSession with key"),
    *("SeeSession knew requester", "SeeSession with operation", "SeeSession knew within"),
    *(
        "Speak knew rules",
        "Speak with key",
        "CarryOn knew hops",
        "CarryOn knew limits",
    ),
    *("WaitFor knew waits", "WaitFor with requester", "WaitFor with target"),
    *("StartSubagent knew allow", "StartSubagent with agentId", "StartSubagent with sandbox"),
    *("StartSubagent knew noModel", "StartSubagent knew own", "UseTool knew own", "UseTool knew spawnDepth"),
    "UseTool knew subagent",
)
"""What the record of a judgement can say otherwise, by what was asked: each is seen."""


def _others(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value]
        case int():
            return [value + 1_000_000, 0]
        case str():
            return [
                f"{value}x",
                "agent:desk:main",
                "agent:main:main",
                "send",
                "history",
                "self",
                "desk",
                "lab",
            ]
        case _:
            return [type(value)(), None]


def _doctored(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is doctored, and a record in which one field of one judgement says something else."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            for name, other in _doctored(one):
                yield name, [*value[:number], other, *value[number + 1 :]]
    if not isinstance(value, dict):
        return
    for part in ("with", "knew"):
        for name, given in value.get(part, {}).items():
            if name in {"judged", "door"}:
                inner = ((said, {**value[part], name: other}) for said, other in _doctored(given))
            else:
                said = f"{value['asked']} {part} {name}"
                inner = ((said, {**value[part], name: other}) for other in _others(given))
            yield from ((said, {**value, part: changed}) for said, changed in inner)


@pytest.mark.clause("C7")
def test_a_record_of_a_door_that_was_doctored_is_not_judged_as_it_was(kept: Kept) -> None:
    seen: set[str] = set()
    loaded = [one for one in kept.events if one.stream == "log"]
    for one, record in judged(kept.events):
        for name, changed in _doctored(record):
            decision = msgspec.json.encode(changed, order="sorted").decode()
            doctored = msgspec.structs.replace(one, decision=decision)
            if name not in seen and different(kept, [*loaded, doctored]):
                seen.add(name)

    assert len(DOCTORED) > 20
    assert seen >= {*DOCTORED}


@pytest.mark.clause("C7")
def test_no_record_of_a_door_holds_words(kept: Kept) -> None:
    assert [record for _, record in judged(kept.events) if WORDS in str(record)] == []


@pytest.mark.clause("SEAL-2")
def test_a_replay_judges_refusals_again(kept: Kept, tmp_path: Path) -> None:
    run = next(
        one.event.message.run_id
        for one, _ in judged(kept.events)
        if isinstance(one.event, facts.MessageRecorded)
    )
    rule, now = "return patterns is None or any(", "return True or any("
    with open_log(kept.path) as log:
        assert log.debug.replay()["firstDifference"] is None
        with rewritten(access, rule, now):
            differs = log.debug.replay()["firstDifference"]
    ran("export-test", run, "-o", tmp_path / "test_it.py", "--store", kept.path)
    of_run = replay_file(tmp_path / "test_it.jsonl")

    assert differs is not None
    assert (differs["kind"], differs["now"]) == ("judged", None)
    assert differs["text"].endswith("it was refused (forbidden), and today it would be allowed")
    assert (of_run["same"], of_run["notJudged"]) == (True, [])


@pytest.mark.clause("C7", "ERASE-1")
def test_what_was_refused_in_words_that_are_erased_is_judged_again(kept: Kept, tmp_path: Path) -> None:
    copied = Path(shutil.copy(kept.path, tmp_path / "copied.db"))
    with SessionSystem(copied, agents={"main": calls}, config=CLOSED) as system:
        asked = {"key": MAIN, "reason": "asked for", "unsent": "giveUp"}
        assert "error" not in system.gateway.call("sessions.erase", asked)
        erased = list(system.log.all())

    answers = [
        facts.text_of(one.event.message)
        for one, _ in judged(erased)
        if isinstance(one.event, facts.MessageRecorded)
    ]
    assert facts.ERASED in answers
    assert {*different(kept, erased)} <= {"words that it was decided upon were erased"}
    with rewritten(access, "return patterns is None or any(", "return True or any("):
        assert "it was refused (erased), and today it would be allowed" in different(kept, erased)


WHY = {
    "forbidden": ["tools.agentToAgent.allow is not given, or matches both agents"],
    "not_visible": ["a session that is there: no setting would show this one"],
    "policy_denied": ["the session's own sendPolicy is allow", "session.sendPolicy.rules[0] is not there"],
    "limit": ["session.agentToAgent.limits.hops is at least 3, or 0 for none"],
    "cycle": ["timeoutSeconds 0, which waits for nobody"],
    "sandbox_required": ['sandbox is "inherit"', "agents.defaults.sandbox.mode is all"],
    "invalid_model": ["model is left out"],
    "not_supported": ["agents.list[].tools.deny is not there, or has sessions_list"],
    "subagent_spawn": ["agents.defaults.subagents.maxSpawnDepth is 2"],
}
"""What would have led to something else, by the code of the refusal."""


@pytest.mark.clause("WHY-2")
@pytest.mark.parametrize("code", WHY)
def test_why_of_a_refusal_says_by_its_record_what_would_have_helped(kept: Kept, code: str) -> None:
    found = [(kind, why) for kind, why in kept.explained if why.code == code]

    assert "MessageRecorded" in {kind for kind, _ in found}
    assert {why.as_decided for _, why in found} == {True}
    assert [one.change for one in found[0][1].instead] == WHY[code]

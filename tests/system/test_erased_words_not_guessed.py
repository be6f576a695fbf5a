"""ERASE-4: what stays of two logs that differ in one short word alone is the same, once it is erased: so nothing tells a guess of it.

Both systems are simulated by one seed, with the same ids, times and salts. What differs is made of the words, but for hashes under
a salt that went with them.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from intersession import MemoryChannel, Outbound, SessionSystem, Turn
from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.facts import TextBlock
from intersession_events.log.row_state import opened
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.opened import open_log
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from support.running import SEES_ALL, merged

A, B = "agent:a:main", "agent:b:main"
CONFIG = merged(
    SEES_ALL,
    {
        "tools": {"ask": ["pay"]},
        "agents": {"defaults": {"subagents": {"allowAgents": ["b"]}}},
        "session": {"agentToAgent": {"maxPingPongTurns": 2, "hold": "every-turn"}},
    },
)

SALTED = {"digest", "hash", "prev"}
"""Made of a payload and its salt, which went with it."""
LEFT_OUT = {
    "checkpoint_taken.1": {"rolling", "eventsRoot", "peaks", "previous", "headsRoot"},
    "run_started.1": {"used"},
}
"""Hashes of such hashes; and how many tokens there were: numbers stay, and tell what they tell."""


class Played:
    """A system in which one word is said in every way, and the sessions that have it are erased."""

    def __init__(self, folder: Path, word: str) -> None:
        folder.mkdir()
        self.path = folder / "log.db"
        self.word = word
        self.children: list[Any] = []
        self.runtime = SimulatedRuntime(3)
        with SessionSystem(
            self.path,
            runtime=self.runtime,
            agents={"a": self._answers, "b": self._answers},
            channels={"chat": MemoryChannel(), "bad": self._fails},
            config=CONFIG,
        ) as system:
            self.system = system
            self._say()
            self._erase()
            self.again = [self._told("k1", "maybe"), self._inbound("maybe", message_id="m1")["runId"]]
            self._inbound("maybe", message_id="m2", deliver=False)

    def _answers(self, turn: Turn) -> str:
        if "fail" in turn.message:
            raise RuntimeError(self.word)
        if turn.message == "act":
            self._acts(turn)
        return self.word if turn.step == "message" else "REPLY_SKIP"

    def _acts(self, turn: Turn) -> None:
        """Say the word in all that an agent does in its run."""
        word, given = self.word, {"text": self.word}
        turn.recorder.said([TextBlock(text=word)])
        called = turn.record_call("pay", given)
        for new in (False, True):
            turn.recorder.approval(called, "pay", given, is_new=new)
        turn.record_result(called, "pay", word)
        turn.tools.call("sessions_search", {"query": word})
        turn.tools.call("sessions_send", {"sessionKey": B, "message": word, "timeoutSeconds": 0})
        self.children.append(turn.tools.call("sessions_spawn", {"task": word, "agentId": "b"}))
        # By other doors, from within the run.
        inbound: Any = {"channel": "chat", "chat_id": "v", "sender": "v", "agent_id": "b", "text": word}
        self.system.inbound(**inbound)
        self.system.inbound(**inbound, deliver=False)
        self.system.gateway.perform("chat.inject", {"sessionKey": B, "message": word})
        tools = self.system.tools(A)
        tools.call("sessions_send", {"sessionKey": B, "message": word, "timeoutSeconds": 0})
        self.children.append(tools.call("sessions_spawn", {"task": word, "agentId": "b"}))

    def _fails(self, _out: Outbound) -> None:
        raise RuntimeError(self.word)

    def _inbound(self, text: str, **more: Any) -> Any:
        said = {"channel": "chat", "chat_id": "u", "sender": "u", "agent_id": "a", "text": text} | more
        answer = self.system.inbound(**said)
        self.runtime.run_for(60)
        return answer

    def _call(self, method: str, **given: Any) -> Any:
        answer = self.system.gateway.perform(method, given)
        self.runtime.run_for(60)
        return answer

    def _told(self, key: str, text: str) -> str:
        run: str = self._call("chat.send", sessionKey=A, message=text, idempotencyKey=key)["runId"]
        return run

    def _say(self) -> None:
        word, tools = self.word, self.system.tools(A)
        self.runs = [self._told("k1", word), self._inbound(word, message_id="m1")["runId"]]
        self._inbound(word, message_id="m2", deliver=False)
        self._inbound("fail")
        with pytest.raises(ToolRefused, match="used"):
            self._told("k1", "another")
        refused = self._inbound("another", message_id="m2", deliver=False)
        assert refused["code"] == "idempotency_conflict", refused
        self._call("agent", sessionKey=A, message=word, idempotencyKey="k2", extraSystemPrompt=word)
        self._call("chat.inject", sessionKey=A, message=word)
        self._call("send", channel="chat", to="u", message=word, sessionKey=A, idempotencyKey="k3")
        self._call("send", channel="bad", to="u", message=word, sessionKey=A, idempotencyKey="k6")
        self._call("notes.pin", run=self.runs[0], text=word)
        sent = {"sessionKey": B, "message": word, "timeoutSeconds": 0, "idempotencyKey": "k4"}
        assert tools.call("sessions_send", sent)["status"] == "accepted"
        self.runtime.run_for(60)
        while held := self._call("exchanges.held")["held"]:
            self._call("exchanges.release", runId=held[0]["runId"], text=word)
        spawned = {"task": word, "agentId": "b", "idempotencyKey": "k5"}
        self.children.append(tools.call("sessions_spawn", spawned))
        self.runtime.run_for(60)
        self._inbound("act")
        assert len(self.children) == 3  # all was said, up to the last of it
        while held := self._call("exchanges.held")["held"]:
            self._call("exchanges.release", runId=held[0]["runId"])
        self._inbound("the last")

    def _erase(self) -> None:
        for key in (A, B, *(child["childSessionKey"] for child in self.children)):
            self._call("sessions.erase", key=key, unsent="giveUp")


def stored(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield all that a log's file has, each with its place, but for what is hashed with salts."""
    with closing(sqlite3.connect(path)) as rows:
        found = rows.execute("SELECT name FROM sqlite_master WHERE type='table' AND sql NOT LIKE '%VIRTUAL%'")
        for (table,) in found.fetchall():
            if table == "stored_events":
                continue
            whole = rows.execute(f"SELECT * FROM {table}").fetchall()  # noqa: S608 - a name of the schema
            for number, row in enumerate(sorted(whole, key=repr)):
                yield f"{table} {number}", row
        events = rows.execute("SELECT rowid, originator_id, topic, state FROM stored_events ORDER BY rowid")
        for position, stream, topic, state in events.fetchall():
            envelope = msgspec.structs.asdict(opened(state, where=stream))
            data = msgspec.json.decode(bytes(envelope.pop("data")))
            yield f"#{position} {topic}", [stream, *(envelope[name] for name in envelope.keys() - SALTED)]
            for name in data.keys() - LEFT_OUT.get(topic, set()):
                yield f"#{position} {topic} {name}", data[name]


@pytest.mark.ci
@pytest.mark.sqlite("what is stored is compared as the file has it")
@pytest.mark.clause("ERASE-4", "SEND-11", "INB-1")
def test_nothing_that_stays_tells_a_guess_of_an_erased_word_from_another(tmp_path: Path) -> None:
    yes, nay = (Played(tmp_path / word, word) for word in ("yes", "nay"))

    here, there = dict(stored(yes.path)), dict(stored(nay.path))

    assert len(here) > 500
    assert here.keys() == there.keys()
    assert {place: (said, there[place]) for place, said in here.items() if said != there[place]} == {}
    assert not any('"yes"' in repr(said) for said in here.values())
    # Known by their keys alone, which were used: nothing is said twice.
    assert yes.again == yes.runs
    with open_log(f"sqlite:///{yes.path}", inline=inline_views()) as log:
        assert verify_log(log).ok
        assert views_proven(log, inline_views())[0] == []
        records = [one.decision for one in log.all() if one.decision]
        assert any('"asked":"ReleaseExchange"' in one and '"text":' in one for one in records)
        assert any('"asked":"DeliveryReturned"' in one and '"error":0' in one for one in records)
        again = [*redecided_all(Sources(log.log_id, log.all()))]
        assert {one.problem for one in again if not one.is_same} <= {
            "words that it was decided upon were erased"
        }

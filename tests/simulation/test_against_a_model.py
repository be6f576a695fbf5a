"""A system does what a page of Python says that it should, whatever it is asked, held, reset and crashed for (C4)."""

import gc
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, ClassVar, Final
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from intersession import Channel, Outbound, Reply, SessionSystem, Turn
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.stores.database import MEMORY
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_projections.views.inline_views import inline_views
from simulation.bugs import BUGS
from simulation.model import MOST_TURNS, PROMPT, Action, Before, Model, Mood, says
from simulation.people import MAINS
from simulation.store import SIMULATED, STORE
from support.history import Evidence, broken, check_views, check_whole
from support.running import SEES_ALL, merged

CONFIG: Final = merged(
    SEES_ALL,
    {
        "agents": {
            "list": [{"id": key.split(":")[1], "default": key == MAINS[0]} for key in MAINS],
            "defaults": {"subagents": {"archiveAfterMinutes": 0}},
        },
        "session": {"agentToAgent": {"maxPingPongTurns": MOST_TURNS}},
        "runs": {"retryInterrupted": 3, "failureText": ""},
    },
)
LOG_ID: Final = str(UUID(int=4))
SETTLED_S: Final = 5.0
"""Whatever is to be done is done after so long a while in which nothing is asked."""

mains = st.sampled_from(MAINS)
moods = st.sampled_from(["talks", "talks", "skips", "is silent", "fails"])
befores = st.sampled_from(["next", "reply", "every-turn", "announce"])
actions = st.sampled_from(["go_on", "edit", "drop", "end"])
crashes = st.none() | st.integers(0, 60)
"""After how many steps the process ends, if it does."""


class Against(RuleBasedStateMachine):
    """The system, and the model beside it."""

    steps: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self._open = ExitStack()
        gc.disable()
        self._open.callback(gc.enable)
        self._open.enter_context(STORE.of(lambda _: None, LOG_ID))
        self._boots = self._names = 0
        self._is_well = True
        """Whether what was asked last did what it should."""
        self._shown: dict[str, str] = {}
        self._runs: dict[str, str] = {}
        self._children: list[str] = []
        self._boot()

    def _boot(self) -> None:
        self._boots += 1
        self.runtime = SimulatedRuntime(seed=self._boots)
        self.log = SqliteLog(
            MEMORY,
            inline=inline_views(),
            threads=False,
            clock=self.runtime.clock.now_ms,
            monotonic=self.runtime.clock.monotonic,
            entropy=self.runtime.entropy,
            new_log_id=lambda: LOG_ID,
            environment=SIMULATED,
        )
        self.system = SessionSystem(
            self.log,
            agents=dict.fromkeys((key.split(":")[1] for key in MAINS), self._answer),
            channels={"chat": Channel(deliver=self._show, idempotent=True)},
            config=CONFIG,
            clock=self.runtime.clock,
            new_id=self.runtime.new_id,
            runtime=self.runtime,
        )

    def _answer(self, turn: Turn) -> object:
        match self.model.moods.get(turn.agent_id, "talks"):
            case "talks":
                return says(turn.agent_id, _short(turn.message), turn.step)
            case "skips":
                return Reply.skip()
            case "is silent":
                return None
            case "fails":
                raise RuntimeError("the model is down")

    def _show(self, outbound: Outbound) -> None:
        self._shown.setdefault(outbound.key, _short(outbound.text))

    def _asks(self, call: Callable[[], Mapping[str, Any]], crash: int | None) -> Mapping[str, Any]:
        """Ask for something, again if the process ends meanwhile, and wait until nothing more comes of it."""
        Against.steps += 1
        self._is_well = False
        asked = self.runtime.spawn(call)
        if crash is not None:
            for _ in range(crash):
                self.runtime.step()
            self.log.crash()
            self.runtime.crash()
            self._boot()
            if not asked.done() or asked.exception() is not None:
                asked = self.runtime.spawn(call)
        self.runtime.run_until(asked.done)
        self.runtime.run_for(SETTLED_S)
        return asked.result()

    def _name(self) -> str:
        self._names += 1
        return f"{self._names}"

    # --- what is asked

    @initialize()
    def opens(self) -> None:
        """The operator has opened the main sessions."""
        for key in MAINS:
            asked = {"sessionKey": key, "message": "begin", "idempotencyKey": f"begin {key}"}
            self._asks(partial(self.system.gateway.call, "agent", asked), None)
            self.model.opens(key, "begin")

    @rule(key=mains, mood=moods)
    def changes(self, key: str, mood: Mood) -> None:
        """An agent is in another mood from now on."""
        self.model.moods[key.split(":")[1]] = mood

    @rule(key=st.sampled_from(MAINS[:2]), crash=crashes)
    def says(self, key: str, crash: int | None) -> None:
        """A person speaks, of whom the third session never hears."""
        text = self._name()
        said: dict[str, Any] = {
            "channel": "chat",
            "chat_id": "1",
            "sender": "ada",
            "text": text,
            "message_id": text,
        }
        answer = self._asks(lambda: self.system.inbound(**said, agent_id=key.split(":")[1]), crash)
        assert answer["status"] == "accepted"
        self.model.says(key, text)

    @rule(data=st.data(), requester=mains, crash=crashes)
    def sends(self, data: st.DataObject, requester: str, crash: int | None) -> None:
        """A session sends something to another one, or to a child."""
        targets = [key for key in self.model.sessions if key != requester]
        target, name = data.draw(st.sampled_from(targets)), self._name()
        asked = {"sessionKey": target, "message": name, "timeoutSeconds": 0, "idempotencyKey": name}
        answer = self._asks(lambda: self.system.tools(requester).call("sessions_send", asked), crash)
        if not self.model.sessions[target].is_there:
            assert answer["code"] == "not_visible"
            return
        assert answer["status"] == "accepted", answer
        self._runs[name] = answer["runId"]
        self.model.sends(name, requester, target, name)

    @precondition(lambda self: len(self._children) < 4)
    @rule(requester=mains, cleanup=st.sampled_from(["keep", "keep", "delete"]), crash=crashes)
    def spawns(self, requester: str, cleanup: str, crash: int | None) -> None:
        """A session has a child do something."""
        name = self._name()
        asked = {"task": name, "cleanup": cleanup, "idempotencyKey": name}
        answer = self._asks(lambda: self.system.tools(requester).call("sessions_spawn", asked), crash)
        assert answer["status"] == "accepted", answer
        self._children.append(answer["childSessionKey"])
        self.model.spawns(requester, answer["childSessionKey"], name, cleanup=cleanup)

    @rule(data=st.data(), crash=crashes)
    def resets(self, data: st.DataObject, crash: int | None) -> None:
        """The operator begins a session anew."""
        there = [key for key, session in self.model.sessions.items() if session.is_there]
        key = data.draw(st.sampled_from(there))
        answer = self._asks(lambda: self.system.gateway.call("sessions.reset", {"key": key}), crash)
        assert answer.get("ok") is True, answer
        self.model.resets(key)

    @precondition(lambda self: any(self.model.sessions[key].is_there for key in self._children))
    @rule(data=st.data(), crash=crashes)
    def deletes(self, data: st.DataObject, crash: int | None) -> None:
        """The operator deletes a child."""
        key = data.draw(st.sampled_from([key for key in self._children if self.model.sessions[key].is_there]))
        answer = self._asks(lambda: self.system.gateway.call("sessions.delete", {"key": key}), crash)
        assert crash is not None or answer.get("ok") is True, answer
        self.model.deletes(key)

    @rule(key=mains, before=befores, crash=crashes)
    def holds_session(self, key: str, before: Before, crash: int | None) -> None:
        """The operator holds all that goes on in the exchanges of a session."""
        asked = {"sessionKey": key, "before": before}
        assert self._asks(lambda: self.system.gateway.call("exchanges.hold", asked), crash)["status"] == "ok"
        self.model.holds_session(key, before)

    @rule(key=mains, action=st.sampled_from(["go_on", "go_on", "drop", "end"]), crash=crashes)
    def releases_session(self, key: str, action: Action, crash: int | None) -> None:
        """The operator lets a session go on; where two are held, they would go on side by side."""
        if len(self.model.held_of(key)) > 1:
            return
        asked = {"sessionKey": key, "action": action}
        answer = self._asks(lambda: self.system.gateway.call("exchanges.release", asked), crash)
        assert answer["status"] == "released", answer
        self.model.releases_session(key, action)

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), before=befores, crash=crashes)
    def holds(self, data: st.DataObject, before: Before, crash: int | None) -> None:
        """The operator has an exchange that is held stop once more."""
        name = data.draw(st.sampled_from(sorted(self.model.held)))
        asked = {"runId": self._runs[name], "before": before}
        answer = self._asks(lambda: self.system.gateway.call("exchanges.hold", asked), crash)
        can = self.model.holds(name, before)
        assert (answer.get("code"), answer.get("status")) == (
            (None, "ok") if can else ("invalid_request", "error")
        )

    @precondition(lambda self: self.model.held)
    @rule(data=st.data(), action=actions, crash=crashes)
    def releases(self, data: st.DataObject, action: Action, crash: int | None) -> None:
        """The operator lets one exchange go on, in one way or another."""
        name = data.draw(st.sampled_from(sorted(self.model.held)))
        text = f"edited {self._name()}" if action == "edit" else None
        if self.model.held[name].asked is not None:
            crash = None  # asked a second time, it would take back what the exchange is to stop for next
        asked = {"runId": self._runs[name], "action": action} | ({"text": text} if text else {})
        answer = self._asks(lambda: self.system.gateway.call("exchanges.release", asked), crash)
        assert answer["status"] == "released", answer
        self.model.releases(name, action, text)

    # --- what has to hold

    @invariant()
    def all_is_as_the_model_has_it(self) -> None:
        """Compare what can be seen."""
        call, model = self.system.gateway.call, self.model
        there = {key for key, session in model.sessions.items() if session.is_there}
        assert {row["key"] for row in call("sessions.list", {"limit": 200})["sessions"]} == there
        for key in there:
            messages = call("chat.history", {"sessionKey": key, "limit": 1000})["messages"]
            assert [(message["role"], _said(message)) for message in messages] == model.sessions[key].said, (
                key
            )
        assert sorted(self._shown.values()) == sorted(model.shown)
        held = {(one["runId"], one["step"], one["text"]) for one in call("exchanges.held", {})["held"]}
        assert held == {(self._runs[name], one.held, one.latest) for name, one in model.held.items()}
        self._is_well = True

    def teardown(self) -> None:
        """Let go on what is held, and look at the history as a whole."""
        try:
            if self._is_well:
                self._ends()
        finally:
            self.system.close()
            self.log.close()
            self._open.close()

    def _ends(self) -> None:
        for key in MAINS:
            self.system.gateway.call("exchanges.release", {"sessionKey": key})
        self.runtime.run_for(SETTLED_S)
        for one in self.system.gateway.call("exchanges.held", {})["held"]:
            self.system.gateway.call("exchanges.release", {"runId": one["runId"], "forGood": True})
        self.runtime.run_for(SETTLED_S)
        assert broken(Evidence(events=list(self.log.all()), attempts=4, ended=True)) == []
        assert check_whole(self.log) == []
        assert check_views(self.log, [view.name for view in inline_views()]) == []


def _said(message: Mapping[str, Any]) -> str:
    if message.get("provenance", {}).get("kind") == "internal_system":
        return PROMPT
    content = message["content"]
    return _short(content if isinstance(content, str) else content[0]["text"])


def _short(text: str) -> str:
    """Return the first two lines of what came of a child; what else it says are times and names."""
    return "\n".join(text.splitlines()[:2]) if text.startswith("Status: ") else text


EVERY_DAY: Final = settings(max_examples=5, stateful_step_count=12)
EVERY_NIGHT: Final = settings(
    max_examples=2_000, stateful_step_count=50, suppress_health_check=list(HealthCheck)
)


@pytest.mark.clause("C4")
def test_a_system_does_what_the_model_says() -> None:
    run_state_machine_as_test(Against, settings=EVERY_DAY)


@pytest.mark.nightly
@pytest.mark.clause("C4")
@pytest.mark.timeout(7_200)
def test_a_system_does_what_the_model_says_for_many_thousand_steps() -> None:
    before = Against.steps
    run_state_machine_as_test(Against, settings=EVERY_NIGHT)

    assert Against.steps - before > 10_000


@pytest.mark.nightly
@pytest.mark.clause("C4")
@pytest.mark.parametrize("bug", ["a6_turns_come_to_whoever_has_the_key", "draws_delivery_keys"])
def test_a_fault_that_is_planted_is_not_what_the_model_says(bug: str) -> None:
    found = settings(EVERY_NIGHT, max_examples=200, phases=[Phase.generate], derandomize=True, database=None)
    with BUGS[bug](), pytest.raises(AssertionError):
        run_state_machine_as_test(Against, settings=found)

"""A log that is a fork: its channels are sealed, only what was forked goes on, and its agents are told."""

import pytest

from intersession import MemoryChannel, Turn
from intersession_events.facts import (
    ChildArchived,
    DeliveryDone,
    DeliveryStarted,
    DeliveryWithheld,
    ExchangeAccepted,
    ExchangeClosed,
    ForkedFrom,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SpawnClosed,
)
from intersession_events.log.log import HostLog
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.stores.opened import open_log
from intersession_projections.views.inline_views import inline_views
from support.doors.command_line import ran
from support.fakes import ManualClock
from support.running import (
    QUIET,
    Booth,
    Gate,
    exchange_of,
    merged,
    pass_time,
    recorded,
    wait_for,
    wait_for_number,
)

DESK, RESEARCH = "agent:desk:main", "agent:research:main"
AGENTS = {"agents": {"list": [{"id": "main", "default": True}, {"id": "desk"}, {"id": "research"}]}}
CONFIG = merged(AGENTS, QUIET, {"session": {"agentToAgent": {"announce": "always"}}})


def declare_fork(url: str, flow: str) -> None:
    """Have a log say that it is a fork of itself: all that is in it is from before the cut."""
    log: HostLog = open_log(url, inline=inline_views())
    forked = ForkedFrom(log_id=log.log_id, position=log.head(), flow=flow, heads=())
    draft = Draft(event=forked, id=f"fork of {flow}", time=0)
    log.append_now((StreamAppend(stream="log", expected=ANY_VERSION, drafts=(draft,)),))
    log.close()


class Forked(Booth):
    """A log that was cut while three agents were at work: research on a send, desk on a send, main on a person's message."""

    def cut(self, flow_of: str = RESEARCH) -> str:
        gate = Gate()
        stops = dict.fromkeys(("main", "desk", "research"), gate.stop)
        system = self.start(stops, {"x": MemoryChannel()}, CONFIG)
        for agent in ("desk", "research"):
            system.inbound(
                channel="x", chat_id=agent, text="hello", sender="ann", agent_id=agent, deliver=False
            )
        sent = {
            key: system.tools().call(
                "sessions_send", {"sessionKey": key, "message": "go", "timeoutSeconds": 0}
            )
            for key in (DESK, RESEARCH)
        }
        system.inbound(channel="x", chat_id="1", text="hi", sender="ann")
        wait_for_number(system, RunStarted, 3)
        self.flow = exchange_of(system, sent[flow_of]["runId"])
        self.source_runs = {item.run_id for item in recorded(system, RunQueued)}
        system.close(grace=0)
        gate.open()
        declare_fork(self.url, self.flow.partition(":")[2])
        return self.flow


@pytest.mark.clause("FORK-5")
def test_the_channels_of_a_fork_are_sealed_and_what_it_would_send_is_an_event(log_url: str) -> None:
    seen: list[bool] = []

    def agent(turn: Turn) -> str:
        seen.append(turn.forked)
        return f"{turn.agent_id} says {turn.step}"

    with Forked(log_url) as booth:
        flow = booth.cut()
        channel = MemoryChannel()
        system = booth.start({"research": agent}, {"x": channel}, CONFIG)
        closed = wait_for(system, ExchangeClosed)
        assert closed.reason == "withheld"
        (withheld,) = recorded(system, DeliveryWithheld)
        assert withheld.channel == "x"
        assert [*recorded(system, DeliveryStarted), *recorded(system, DeliveryDone)] == []
        assert channel.delivered == ()
        assert set(seen) == {True}
        (row,) = [system.service.flows.delivery(withheld.delivery_id)]
        assert row is not None
        assert (row.state, row.is_open) == ("withheld", False)
        assert "would be delivered" in str(system.debug.why(f"{flow.partition(':')[2]}@end"))


@pytest.mark.clause("FORK-5")
def test_a_channel_that_is_named_is_not_sealed(log_url: str) -> None:
    with Forked(log_url) as booth:
        booth.cut()
        channel = MemoryChannel()
        system = booth.start({"research": lambda turn: turn.step}, {"x": channel}, CONFIG, deliver=["x"])
        assert wait_for(system, ExchangeClosed).reason == "announced"
        assert [one.text for one in channel.delivered] == ["announce"]


@pytest.mark.clause("FORK-6")
def test_only_what_was_forked_goes_on_also_after_a_restart(log_url: str) -> None:
    with Forked(log_url) as booth:
        flow, other = booth.cut(), ""
        agents = {agent: lambda turn: turn.agent_id for agent in ("main", "desk", "research")}
        for _ in range(2):
            system = booth.start(agents, {"x": MemoryChannel()}, CONFIG)
            wait_for(system, ExchangeClosed)
            fork = system.status()["fork"]
            rows = [system.service.runs.get(run) for run in fork["frozen"]["runs"]]
            frozen = {row.session_key for row in rows if row is not None}
            assert frozen == {DESK, "agent:main:main"}
            (other,) = fork["frozen"]["flows"]
            assert other != flow
            assert system.status()["parkedRuns"] == {}
            ended = {item.run_id for item in recorded(system, RunCompleted)}
            assert ended.isdisjoint(fork["frozen"]["runs"])
            state = system.debug.state()
            stays = [run["runId"] for run in state["runs"] if run.get("frozen")]
            stays += [f"exchange:{one['exchangeId']}" for one in state["exchanges"] if one.get("frozen")]
            assert sorted(stays) == sorted([*fork["frozen"]["runs"], other])
            assert system.log.forked is not None
            before = system.debug.state(at=system.log.forked.position)
            assert [run for run in before["runs"] if run.get("frozen")] == []
            system.close()
        listed = ran("runs", "--kind", "exchange", "--store", booth.url, "--json").json["runs"]
        assert [f"exchange:{row['id']}" for row in listed if row.get("frozen")] == [other]
        words = " ".join(ran("runs", "--kind", "exchange", "--store", booth.url).out.split())
        assert "not over yet; FROZEN in this fork" in words
        assert ", FROZEN in this fork" in ran("state", "--store", booth.url).out


@pytest.mark.clause("FORK-6")
def test_a_session_with_a_frozen_run_answers_what_comes_in_the_fork(log_url: str) -> None:
    with Forked(log_url) as booth:
        booth.cut()
        agents = {
            agent: lambda turn: f"{turn.agent_id}: {turn.message}" for agent in ("main", "desk", "research")
        }
        system = booth.start(agents, {"x": MemoryChannel()}, CONFIG)
        given = {"sessionKey": DESK, "message": "and now?", "timeoutSeconds": 20}
        assert system.tools().call("sessions_send", given)["reply"] == "desk: and now?"
        assert len(recorded(system, ExchangeAccepted)) == 3


@pytest.mark.clause("FORK-6", "SPAWN-11")
def test_a_fork_archives_no_child_of_its_source(log_url: str) -> None:
    """A child's time to be archived comes in its own log; here it would be another one's."""
    clock = ManualClock()
    config = merged(AGENTS, QUIET, {"agents": {"defaults": {"subagents": {"archiveAfterMinutes": 10}}}})
    agents = {"main": lambda _: "done"}
    with Booth(log_url) as booth:
        system = booth.start(agents, {"x": MemoryChannel()}, config, clock=clock)
        system.inbound(channel="x", chat_id="1", text="hi", sender="ann", wait=20, deliver=False)
        answer = system.tools("agent:main:main").call("sessions_spawn", {"task": "count"})
        wait_for(system, SpawnClosed)
        system.close()
        declare_fork(booth.url, answer["runId"])
        clock.advance(3_600_000)
        system = booth.start(agents, {"x": MemoryChannel()}, config, clock=clock)
        pass_time(system, clock, 3_600_000)
        system.inbound(channel="x", chat_id="1", text="still here?", sender="ann", wait=20)
        assert recorded(system, SessionArchived) == []
        assert recorded(system, ChildArchived) == []

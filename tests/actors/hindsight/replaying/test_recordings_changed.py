"""What a sealed replay says of a recording that somebody changed: each field of each event once, and whole events at random."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs

from intersession import CorruptEvent, MemoryChannel, SessionSystem, open_log, replay_file
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_actors.hindsight.replaying.replayed import replay_events
from intersession_actors.outside.agents.turn import Turn
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events import facts
from intersession_events.facts import ForkEdit
from intersession_events.log.recorded import Recorded
from support.branching_chain import branches
from support.changed_once import Change, changes, lessened
from support.every_day import every_day
from support.forks_played import conversation, play
from support.resealed import read_lines, write_resealed
from support.simulated_runs import CONFIG, run_of

Events = tuple[str, Sequence[Recorded]]

INPUTS: Final = {
    # Nothing decides these: they are what somebody outside said, did or was, or what a clock said.
    "*.(time)": "the log's time",
    "log_opened.*": "a process began",
    "config_loaded.*": "the settings that somebody gave",
    "access_recorded.*": "what somebody looked at",
    "checkpoint_taken.*": "`verify` proves checkpoints",
    "forked_from.*": "`verify` proves a fork's beginning",
    "fork_edited.*": "what whoever made the fork wanted",
    "session_opened.(causation)": "what a caller outside was at",
    "session_opened.channel*": "where a person wrote from",
    "session_opened.chatType*": "where a person wrote from",
    "session_opened.openedBy": "who opened it",
    "session_patched.values.*": "what somebody wanted of a session",
    "session_patched.cleared*": "what somebody wanted of a session",
    "session_patched.by*": "who wanted it",
    "session_patched.(causation)": "what a caller outside was at",
    "session_reset.by*": "who wanted it",
    "session_reset.sessionId": "an id that was drawn",
    "session_reset.(causation)": "what a caller outside was at",
    "route_changed.(causation)": "what a caller outside was at",
    "route_changed.route.*": "where a person wrote from",
    "route_changed.chatType*": "where a person wrote from",
    "message_recorded.(causation)": "what a caller outside was at",
    "message_recorded.message.*": "what a person said, and what an agent called and was told: it answers for that itself",
    "run_queued.caller*": "by which door a message came",
    "run_queued.message.content*": "what a person said",
    "run_queued.step": "for what a message was given in at a door",
    "run_queued.route*": "where a person wrote from",
    "run_queued.timeoutMs*": "how long a caller gave a run",
    "run_queued.budget.startedMs": "what the clock said when a chain of messages began",
    "run_queued.budget.heldMs": "for how long a chain had been held when a door looked",
    "run_started.contextTokens*": "how much the agent's model takes, as the agent says it",
    "run_completed.*": "what an agent answered",
    "exchange_accepted.(causation)": "what a caller outside was at",
    "exchange_accepted.requesterRunId-": "that a caller was at a run of its own",
    "exchange_accepted.requesterSessionId*": "how a caller's session stood when a door looked",
    "exchange_accepted.targetChannel-": "how the target stood when a door looked",
    "exchange_accepted.targetVersion*": "how the target stood when a door looked",
    "exchange_accepted.timeoutMs*": "how long a caller wanted to wait",
    "exchange_held.sinceMs": "what the clock said",
    "exchange_released.by": "who let it go on",
    "exchange_released.heldMs": "for how long it was held: the clock",
    "child_ended.endedMs": "what the clock said",
    "spawn_accepted.(causation)": "what a caller outside was at",
    "spawn_accepted.requesterSessionId*": "how a caller's session stood when a door looked",
    "spawn_accepted.resultTimeoutMs*": "how long a run may take",
    "delivery_done.receipt*": "what a channel answered",
    "delivery_failed.retryAtMs": "what the clock said",
    "run_failed.error": "what an agent failed with",
    "run_failed.traceback*": "what an agent failed with",
}
"""The fields that a sealed replay takes as they are, each with what it is: docs/howto/time-travel.md says the same."""


def asks(turn: Turn) -> str:
    """Sends once, and waits for the answer."""
    if turn.step == "message":
        sent = {"sessionKey": "agent:b:main", "message": "how is it?", "timeoutSeconds": 30}
        return f"b says {turn.tools.call('sessions_send', sent).get('reply')}"
    return f"a in {turn.step}"


def answers(turn: Turn) -> str:
    return f"b in {turn.step}"


def events_of(file: Path) -> Events:
    with open_log(file) as log:
        return log.log.log_id, list(log.log.all())


def sent(folder: Path, **config: Any) -> Events:
    """Return a log of one send with two turns, an announce and deliveries."""
    runtime = SimulatedRuntime(3)
    session = {"maxPingPongTurns": 2} | config
    system = SessionSystem(
        folder / "log.db",
        runtime=runtime,
        agents={"a": asks, "b": answers},
        channels={"chat": MemoryChannel()},
        config=CONFIG | {"session": {"agentToAgent": session}},
    )
    with system:
        for who, text in (("b", "hello"), ("a", "ask")):
            system.inbound(channel="chat", chat_id=who, sender="u", agent_id=who, text=text)
            runtime.run_for(40)
        for how in ({}, {"text": "said by a person"}, {}, {}, {}):
            for one in system.gateway.call("exchanges.held", {})["held"][:1]:
                system.gateway.call("exchanges.release", {"runId": one["runId"]} | how)
            runtime.run_for(60)
    return events_of(folder / "log.db")


def held(folder: Path) -> Events:
    return sent(folder, hold="every-turn")


def guarded(folder: Path) -> Events:
    log_id, recorded = branches(folder / "log.db", 0, {"tokens": 5})
    return log_id, recorded


def spawned(folder: Path) -> Events:
    """Return a log of a sub-agent that is removed once it is over, in a session that is patched and begun anew."""
    runtime = SimulatedRuntime()
    agents = {"main": lambda turn: "told" if turn.step == "announce" else "done"}
    system = SessionSystem(
        folder / "log.db", runtime=runtime, agents=agents, channels={"chat": MemoryChannel()}
    )
    with system:
        system.inbound(channel="chat", chat_id="7", sender="ann", text="hello", agent_id="main")
        runtime.run_for(10)
        system.tools("agent:main:main").call("sessions_spawn", {"task": "dig", "cleanup": "delete"})
        runtime.run_for(60)
        system.gateway.call("sessions.patch", {"key": "agent:main:main", "label": "x"})
        system.gateway.call("sessions.reset", {"key": "agent:main:main"})
        runtime.run_for(7200)
    return events_of(folder / "log.db")


def simulated(folder: Path) -> Events:
    run_of(f"sqlite:///{folder / 'log.db'}", 5)
    return events_of(folder / "log.db")


def changed_unnoticed(log: Events, *, fitting: bool, each: int) -> dict[str, int]:
    """Return which fields can be changed and all comes out the same, and where; each is tried so many times."""
    log_id, recorded = log
    found, tried = unnoticed(log_id, changes(log_id, recorded, fitting=fitting), each)
    assert tried > 100
    return found


def unnoticed(log_id: str, changed: Iterable[Change], each: int) -> tuple[dict[str, int], int]:
    """Return where all comes out the same, by field, and how many fields there were; each is tried so many times."""
    tried = Counter[str]()
    found: dict[str, int] = {}
    for change in changed:
        tried[change.name] += 1
        if tried[change.name] > each or any(fnmatchcase(change.name, name) for name in INPUTS):
            continue
        try:
            is_same = replay_events(log_id, change.events)["same"]
        except CorruptEvent:
            is_same = False
        if is_same:
            found[change.name] = change.at.position
    return found, len(tried)


@pytest.mark.clause("SEAL-1", "SEAL-2")
@pytest.mark.parametrize(
    "fitting", every_day({"ids made to fit": True, "ids as they were": False}, "ids made to fit")
)
@pytest.mark.parametrize("log", [sent, pytest.param(spawned, marks=pytest.mark.ci)])
def test_a_field_that_is_changed_is_told_unless_it_is_an_input(
    tmp_path: Path, log: Any, fitting: bool
) -> None:
    assert changed_unnoticed(log(tmp_path), fitting=fitting, each=1) == {}


@pytest.mark.clause("SEAL-1", "SEAL-2", "LOOP-5")
@pytest.mark.parametrize(
    "log", [guarded, *(pytest.param(log, marks=pytest.mark.ci) for log in (held, spawned))]
)
def test_a_number_that_is_made_less_is_told_unless_it_is_an_input(tmp_path: Path, log: Any) -> None:
    log_id, recorded = log(tmp_path)
    found, tried = unnoticed(log_id, lessened(log_id, recorded), 2)

    assert found == {}
    assert tried > 10


@pytest.mark.ci
@pytest.mark.clause("SEAL-1", "SEAL-2")
@pytest.mark.parametrize("log", [held, guarded, simulated])
def test_a_field_that_is_changed_is_told_in_logs_of_other_kinds(tmp_path: Path, log: Any) -> None:
    assert changed_unnoticed(log(tmp_path), fitting=True, each=2) == {}


@pytest.mark.nightly
@pytest.mark.clause("SEAL-1", "SEAL-2")
@pytest.mark.parametrize("log", [sent, spawned, held, guarded, simulated])
def test_each_field_of_each_event_that_is_changed_is_told(tmp_path: Path, log: Any) -> None:
    assert changed_unnoticed(log(tmp_path), fitting=True, each=10_000) == {}


@pytest.mark.clause("SEAL-2", "FORK-4")
def test_a_field_that_is_changed_in_a_fork_is_told(tmp_path: Path) -> None:
    talk = conversation(tmp_path)
    with talk.system:
        edit = ForkEdit(kind="reply", value="it was cancelled")
        fork = play(talk, talk.exchange, "turn:2", edit, agents={"main": "asks", "desk": "answers"}).made.path
    for topic, field, value in (
        ("turn_ended.1", "text", "forged"),
        ("delivery_withheld.1", "channel", "forged"),
        ("announce_decided.1", "text", "forged"),
        ("run_started.1", "context_hash", "0" * 64),
    ):
        file = tmp_path / f"{topic}.jsonl"
        with open_log(fork) as log:
            begins = log.log.forked.position  # type: ignore[union-attr]  # it is a fork
            flow = log.debug.view.flow(talk.exchange)
            Recordings(log.log).write(flow, file)
        assert replay_file(file)["same"]
        lines = read_lines(file)
        line = next(
            line for line in reversed(lines) if line.get("topic") == topic and line["position"] > begins
        )
        name = "contextHash" if field == "context_hash" else field
        line["event"][name] = value
        write_resealed(file, lines)
        differs = replay_file(file)["firstDifference"]

        assert differs is not None
        assert (topic, differs["position"]) == (topic, line["position"])
        assert name in {field["path"] for field in differs["fields"]}


def damaged(recorded: Sequence[Recorded], chance: random.Random) -> list[Recorded]:  # noqa: C901 - one case a kind
    """Return events out of order, dropped, doubled, of other streams, with other ids and causes."""
    events = list(recorded)
    for _ in range(chance.randint(1, 3)):
        one, other = chance.randrange(len(events)), chance.randrange(len(events))
        match chance.randrange(9):
            case 0:
                del events[one]
            case 1:
                events.insert(other, events[one])
            case 2:
                events[one], events[other] = events[other], events[one]
            case 3:
                events[one] = structs.replace(
                    events[one], event=events[other].event, topic=events[other].topic
                )
            case 4:
                events[one] = structs.replace(events[one], id=events[other].id)
            case 5:
                cause = chance.choice((None, events[other].id, events[one].id, "x"))
                events[one] = structs.replace(events[one], causation=cause)
            case 6:
                events[one] = structs.replace(events[one], stream=events[other].stream)
            case 7:
                was, now = events[one].stream, events[other].stream
                swapped = {was: now, now: was}
                events = [
                    structs.replace(item, stream=swapped.get(item.stream, item.stream)) for item in events
                ]
            case _:
                some = events[one : one + 8]
                chance.shuffle(some)
                events[one : one + 8] = some
    if chance.random() < 0.2:
        return events
    versions = Counter[str]()
    numbered: list[Recorded] = []
    for position, item in enumerate(events, 1):
        versions[item.stream] += 1
        numbered.append(structs.replace(item, position=position, version=versions[item.stream]))
    return numbered


def ends(log: Events, seeds: range) -> Counter[str]:
    """Replay as many damaged recordings, and return how each ended: none may go on for ever."""
    log_id, recorded = log
    found = Counter[str]()
    for seed in seeds:
        try:
            differs = replay_events(log_id, damaged(recorded, random.Random(seed)))["firstDifference"]  # noqa: S311
        except CorruptEvent:
            found["refused"] += 1
        else:
            found["same" if differs is None else differs["kind"]] += 1
            assert differs is None or differs["text"]
    return found


@pytest.mark.clause("SEAL-2")
def test_recordings_that_were_damaged_at_random_come_to_an_end(tmp_path: Path) -> None:
    found = ends(sent(tmp_path), range(60))

    assert found.total() == 60
    assert found["changed"] + found["missing"] + found["refused"] + found["failed"] > 30


@pytest.mark.nightly
@pytest.mark.clause("SEAL-2")
@pytest.mark.parametrize("log", [spawned, held, guarded, simulated])
def test_recordings_of_all_kinds_that_were_damaged_come_to_an_end(tmp_path: Path, log: Any) -> None:
    assert ends(log(tmp_path), range(1000)).total() == 1000


@pytest.mark.clause("SEAL-2")
@pytest.mark.parametrize("event", [facts.RunStarted, facts.RunQueued, facts.RunCompleted])
def test_a_run_of_another_name_is_told(tmp_path: Path, event: type[facts.RunStarted]) -> None:
    log_id, recorded = sent(tmp_path)
    named = next(item for item in recorded if isinstance(item.event, event))
    other = structs.replace(named, event=structs.replace(named.event, run_id="another"))
    differs = replay_events(log_id, [other if item is named else item for item in recorded])[
        "firstDifference"
    ]

    assert differs is not None
    assert differs["kind"] in {"changed", "failed", "missing"}
    # A message that comes from outside is taken as it is: what follows from it tells.
    assert (differs["position"] or 0) <= named.position + 1


@pytest.mark.clause("SEAL-2", "SEAL-3")
def test_an_event_of_a_recording_that_is_not_there_is_refused(tmp_path: Path) -> None:
    sent(tmp_path)
    file = tmp_path / "kept.jsonl"
    with open_log(tmp_path / "log.db") as log:
        run = next(
            item.event.run_id for item in log.log.all() if isinstance(item.event, facts.ExchangeAccepted)
        )
        Recordings(log.log).write(log.debug.view.flow(run), file)
    lines = read_lines(file)
    write_resealed(file, lines[:12] + lines[13:])

    with pytest.raises(CorruptEvent, match="follows"):
        replay_file(file)


@pytest.mark.clause("SEAL-2", "ERASE-1")
@pytest.mark.parametrize("key", ["agent:main:main", "agent:desk:main"])
def test_what_was_erased_is_counted_and_all_else_is_compared(tmp_path: Path, key: str) -> None:
    talk = conversation(tmp_path)
    with talk.system:
        talk.system.erase(key, reason="asked for")
    with open_log(tmp_path / "source.db") as log:
        found = log.debug.replay(talk.exchange)
        events = list(log.log.all())
        recorded = next(item for item in reversed(events) if isinstance(item.event, facts.TurnEnded))
        other = structs.replace(recorded, event=structs.replace(recorded.event, turn=9))
        forged = replay_events(log.log.log_id, [other if item is recorded else item for item in events])

    assert (found["same"], found["firstDifference"]) == (True, None)
    assert [words.partition(",")[0] for words in found["notJudged"]] == ["erased text"]
    assert forged["firstDifference"] is not None
    assert forged["firstDifference"]["kind"] == "erased"
    assert forged["firstDifference"]["text"].startswith("can't be compared: erased")

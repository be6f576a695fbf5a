"""Notes beside runs: who may pin one, where it stands, and that it is an event with its author."""

from collections.abc import Iterator

import pytest

from intersession import SessionSystem, echo
from intersession_actors.calls.service.callers import Caller
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.ids import notes_stream
from intersession_events.facts import NotePinned, RunQueued, SessionOpened
from support.any_log import written
from support.running import SEES_ALL, WAIT, closed_exchange


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SessionSystem]:
    with SessionSystem(
        tmp_path_factory.mktemp("notes") / "log.db", agents={"main": echo(), "ops": echo()}
    ) as made:
        for agent in ("main", "ops"):
            made.inbound(channel="cli", chat_id="me", text="hello", sender="me", agent_id=agent, wait=WAIT)
        yield made


def run_of(system: SessionSystem, agent: str) -> str:
    return next(
        recorded.event.run_id
        for recorded in system.log.all()
        if isinstance(recorded.event, RunQueued) and recorded.stream.startswith(f"session:agent:{agent}:")
    )


def test_a_note_is_an_event_at_a_place_of_a_run_with_its_author(system: SessionSystem) -> None:
    run = run_of(system, "main")

    answer = system.gateway.perform("notes.pin", {"run": run[:12], "at": f"{run}@reply", "text": "Why this?"})

    (note,) = [one.event for one in system.log.stream(notes_stream(run))]
    assert note == NotePinned(flow=run, position=answer["place"]["position"], text="Why this?", by="operator")


def test_a_limited_credential_notes_beside_its_own_runs_alone(system: SessionSystem) -> None:
    bot = Caller.by_credential("bot", ("agent:ops:*",))
    system.gateway.perform("notes.pin", {"run": run_of(system, "ops"), "text": "Mine"}, caller=bot)

    with pytest.raises(ToolRefused, match="no exchange, spawn or run"):
        system.gateway.perform("notes.pin", {"run": run_of(system, "main"), "text": "Not mine"}, caller=bot)
    events = [one.event for one in system.log.stream(notes_stream(run_of(system, "ops")))]
    assert [event.by for event in events if isinstance(event, NotePinned)] == ["credential:bot"]


@pytest.mark.parametrize(
    ("given", "said"),
    [({"text": " "}, "text: it is blank"), ({"text": "x", "at": "noon"}, "at: 'noon'"), ({}, "text")],
)
def test_a_note_that_is_none_is_refused(system: SessionSystem, given: dict[str, str], said: str) -> None:
    with pytest.raises(ToolRefused, match=said):
        system.gateway.perform("notes.pin", {"run": run_of(system, "main"), **given})


@pytest.mark.clause("ERASE-1")
@pytest.mark.parametrize("messages", [False, True], ids=["the whole session", "one message"])
def test_notes_beside_the_runs_of_a_session_are_erased_with_its_words(log_url: str, messages: bool) -> None:
    """A note may repeat what was said: of a run of its own, and of an exchange that it took part in."""
    said = "my card is 4111 1111 1111 1111"
    with SessionSystem(log_url, agents={"main": echo(), "ops": echo()}, config=SEES_ALL) as system:
        system.inbound(
            channel="cli", chat_id="me", deliver=False, text=said, sender="me", agent_id="main", wait=WAIT
        )
        sent = system.tools("agent:main:main").call(
            "sessions_send", {"sessionKey": "agent:ops:main", "message": f"Look: {said}"}
        )
        closed_exchange(system, sent["runId"])
        first = next(one.event for one in system.log.all() if isinstance(one.event, RunQueued))
        for run in (first.run_id, sent["runId"]):
            system.gateway.perform("notes.pin", {"run": run, "text": f"He says: {said}"})
        key = next(one.event.key for one in system.log.all() if isinstance(one.event, SessionOpened))
        history = system.tools().call("sessions_history", {"sessionKey": key})["messages"]
        ids = (
            {"messageIds": [one["id"] for one in history if said in str(one["content"])]} if messages else {}
        )
        erased = system.gateway.call("sessions.erase", {"key": key, "unsent": "giveUp", **ids})
        notes = [one.event for one in system.log.all() if isinstance(one.event, NotePinned)]

    assert erased["ok"] is True
    assert [note.text for note in notes] == ["[erased]"] * 2
    assert said.encode() not in written(log_url)

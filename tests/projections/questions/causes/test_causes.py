"""Why an event is there, and what it led to (WHY-1)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession_events.facts import (
    AccessRecorded,
    ConfigLoaded,
    DeliveryDecided,
    DeliveryDone,
    ExchangeAccepted,
    LogOpened,
    Message,
    MessageRecorded,
    Provenance,
    Route,
    RunCompleted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionOpened,
    TurnEnded,
)
from intersession_events.log.log import Log
from intersession_events.log.recorded import ANY_VERSION, Draft, StreamAppend
from intersession_events.log.sql import Row
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.questions.causes.causes import Causes
from intersession_projections.questions.causes.effects import Effect, Effects
from intersession_projections.views.inline_views import inline_views
from support.golden_logs import GoldenLog
from support.story import MAIN, Story

OPS = "agent:ops:main"
OPENED = SessionOpened(key=MAIN, session_id="s", agent_id="main", opened_by="operator")


def positions(effects: tuple[Effect, ...]) -> Iterator[int]:
    """Yield the positions of a whole tree."""
    left = list(effects)
    while left:
        effect = left.pop()
        yield effect.position
        left.extend(effect.effects)


def golden(name: str, folder: Path) -> PortableLog:
    return open_log(
        f"sqlite:///{GoldenLog('0.1.0', name).unpack(folder)}", read_only=True, inline=inline_views()
    )


def asked_by_ada(story: Story) -> list[int]:
    """Tell how Ada's question went to another session, and what came of it; return the positions, in order."""
    person = Provenance(kind="external_user", source_channel="telegram", sender="ada")
    said = Message(id="m1", role="user", content="Is it warm?", timestamp=0, provenance=person)
    opened = story.put(
        f"session:{MAIN}", SessionOpened(key=MAIN, session_id="s", agent_id="main", opened_by="person")
    )
    asked = story.put(
        f"session:{MAIN}",
        RunQueued(run_id="r1", session_id="s", step="message", message=said),
        causation=opened.id,
        correlation="r1",
    )
    started = story.put(
        f"session:{MAIN}",
        RunStarted(run_id="r1", attempt=1, context_hash="h"),
        causation=asked.id,
        correlation="r1",
    )
    accepted = story.put(
        "exchange:x",
        ExchangeAccepted(
            exchange_id="x",
            run_id="r2",
            target=OPS,
            target_session_id="t",
            message_id="m2",
            message="warm?",
            requester=MAIN,
        ),
        causation=started.id,
        correlation="r1",
    )
    ended = story.put(
        "exchange:x",
        TurnEnded(turn=0, speaker=OPS, run_id="r2", status="ok", text="20 degrees"),
        causation=accepted.id,
        correlation="r1",
    )
    return [one.position for one in (opened, asked, started, accepted, ended)]


@pytest.mark.clause("WHY-1")
def test_why_goes_back_over_sessions_to_the_words_of_a_person(story: Story) -> None:
    opened, asked, started, accepted, ended = asked_by_ada(story)

    why = Causes(story.log).why(ended)

    assert why is not None
    assert [cause.position for cause in why.causes] == [accepted, started, asked]
    assert (why.event.who, why.event.to, why.event.text) == (OPS, MAIN, "20 degrees")
    assert (why.causes[0].who, why.causes[0].to, why.causes[0].text) == (MAIN, OPS, "warm?")
    assert (why.root_kind, why.root.position, why.root.who, why.root.text) == (
        "person",
        asked,
        "ada on telegram",
        "Is it warm?",
    )
    assert opened not in {cause.position for cause in why.causes}


@pytest.mark.clause("WHY-1")
def test_a_session_that_a_person_opened_is_there_for_the_words_behind_it(story: Story) -> None:
    person = Provenance(kind="external_user", sender="ada")
    story.put(
        f"session:{MAIN}",
        SessionOpened(key=MAIN, session_id="s", agent_id="main", opened_by="person"),
        MessageRecorded(
            session_id="s",
            message=Message(id="m", role="user", content="Hello.", timestamp=0, provenance=person),
        ),
    )

    why = Causes(story.log).why(1)

    assert why is not None
    assert (why.root_kind, why.root.position, why.root.text) == ("person", 2, "Hello.")


@pytest.mark.clause("WHY-1")
def test_a_receipt_is_of_the_run_that_asked(story: Story) -> None:
    *_, started, _accepted, _ended = asked_by_ada(story)
    receipt = story.put(
        f"access:{MAIN}", AccessRecorded(requester=MAIN, tool="sessions_list"), correlation="r1"
    )

    why = Causes(story.log).why(receipt.position)

    assert why is not None
    assert why.causes[0].position == started
    led = Effects(story.log).of(started)
    assert led is not None
    assert receipt.position in set(positions(led.effects))


@pytest.mark.clause("WHY-1")
def test_timers_starts_and_calls_are_roots(story: Story) -> None:
    story.put("log", LogOpened(epoch=1, version="1"))
    story.put("log", ConfigLoaded(digest="d", config="{}"))
    story.open(opened_by="operator")
    story.put(f"session:{MAIN}", SessionArchived(session_id="s", reason="expired"))
    cron = Provenance(kind="external_user")
    message = Message(id="m", role="user", content="Tick.", timestamp=0, provenance=cron)
    story.put("session:agent:main:cron:daily", MessageRecorded(session_id="c", message=message))
    causes = Causes(story.log)

    found = [causes.why(position) for position in range(1, 6)]

    assert [why and why.root_kind for why in found] == ["start", "start", "operator", "timer", "timer"]
    assert found[1] is not None
    assert [cause.position for cause in found[1].causes] == [1]


@pytest.mark.clause("WHY-1")
def test_effects_are_a_tree_and_say_what_is_still_open(story: Story) -> None:
    opened, asked, started, accepted, ended = asked_by_ada(story)
    decided = story.put(
        "delivery:d",
        DeliveryDecided(
            delivery_id="d",
            session_key=MAIN,
            route=Route(channel="c", to="t"),
            text="warm",
            key="d",
            purpose="auto_reply",
        ),
        causation=story.log.stream("exchange:x")[-1].id,
    )

    led = Effects(story.log).of(asked)

    assert led is not None
    assert list(positions(led.effects)) == [started, accepted, ended, decided.position]
    assert led.effects[0].effects[0].position == accepted
    assert [(one.kind, one.id) for one in led.open] == [("run", "r1"), ("exchange", "x"), ("delivery", "d")]
    story.put("delivery:d", DeliveryDone(delivery_id="d", attempt=1), causation=decided.id)
    story.put(
        f"session:{MAIN}",
        RunCompleted(run_id="r1", attempt=1),
        causation=story.log.stream(f"session:{MAIN}")[-1].id,
    )
    then, now = Effects(story.log).of(asked, to=decided.position), Effects(story.log).of(asked)
    assert then is not None
    assert now is not None
    assert [one.kind for one in then.open] == ["run", "exchange", "delivery"]
    assert [one.kind for one in now.open] == ["exchange"]
    assert opened not in set(positions(now.effects))


def test_a_position_without_an_event_has_no_why(story: Story) -> None:
    assert Causes(story.log).why(7) is None
    assert Effects(story.log).of(7) is None


def test_a_cause_that_is_not_in_the_log_ends_the_way_back(story: Story) -> None:
    found = story.put(f"session:{MAIN}", OPENED, causation="nowhere")

    why = Causes(story.log).why(found.position)

    assert why is not None
    assert why.causes == ()
    assert why.root.position == found.position


def test_causes_in_a_circle_are_told_once(story: Story) -> None:
    drafts = tuple(
        Draft(event=OPENED, id=name, time=1, causation=cause) for name, cause in (("a", "b"), ("b", "a"))
    )
    story.log.append_now((StreamAppend(stream=f"session:{MAIN}", expected=ANY_VERSION, drafts=drafts),))

    why = Causes(story.log).why(2)

    assert why is not None
    assert [cause.position for cause in why.causes] == [1]


@pytest.mark.clause("WHY-1")
def test_a_tree_that_would_be_too_deep_is_cut_and_says_so(story: Story) -> None:
    drafts = tuple(
        Draft(event=OPENED, id=f"n{number}", time=1, causation=f"n{number - 1}") for number in range(300)
    )
    story.log.append_now((StreamAppend(stream=f"session:{MAIN}", expected=ANY_VERSION, drafts=drafts),))

    led = Effects(story.log).of(1)

    assert led is not None
    found = list(positions(led.effects))
    assert len(found) == 200
    deepest = led.effects
    while deepest[0].effects:
        deepest = deepest[0].effects
    assert deepest[0].more == 99


@pytest.mark.clause("WHY-1")
@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=30), min_size=1, max_size=12))
def test_effects_of_a_root_hold_each_event_whose_why_passes_it(caused: list[int]) -> None:
    story = Story()
    try:
        ids: list[str] = []
        for number, cause in enumerate(caused):
            causation = ids[cause % number] if number and cause % (number + 1) else None
            ids.append(story.put(f"session:agent:main:s{number % 3}", OPENED, causation=causation).id)
        causes, effects = Causes(story.log), Effects(story.log)
        passed: dict[int, set[int]] = {}
        for position in range(1, len(caused) + 1):
            path = [recorded.position for recorded in causes.path(position)]
            why = causes.why(position)
            assert why is not None
            assert why.root.position == path[-1]
            for cause in path[1:]:
                passed.setdefault(cause, set()).add(position)
        for position in range(1, len(caused) + 1):
            led = effects.of(position)
            assert led is not None
            assert sorted(positions(led.effects)) == sorted(passed.get(position, set()))
    finally:
        story.close()


@pytest.mark.clause("WHY-1")
@pytest.mark.parametrize("name", ["demo", "restricted", "base"])
def test_every_event_of_a_recorded_log_has_a_root_that_leads_to_it(name: str, tmp_path: Path) -> None:
    log = golden(name, tmp_path)
    with log:
        causes, roots = Causes(log), dict[int, set[int]]()
        # Of the long one some are enough: the ways go through the others.
        for position in range(1, log.head() + 1, 37 if name == "base" else 1):
            path = causes.path(position)
            assert path, position
            roots.setdefault(path[-1].position, set()).add(position)
            assert path[-1].causation is None or isinstance(path[-1].event, RunQueued)
        effects = Effects(log)
        for root in sorted(roots)[:20]:
            led = effects.of(root)
            assert led is not None
            assert roots[root] - {root} <= set(positions(led.effects))


class Counted:
    """A log that says how far its rows were read."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.farthest = 0

    def rows(self, *, after: int | None = 0, limit: int = 1000) -> Sequence[Row]:
        self.farthest = max(self.farthest, (after or 0) + limit)
        return self._log.rows(after=after, limit=limit)

    def __getattr__(self, name: str) -> object:
        return getattr(self._log, name)


@pytest.mark.clause("WHY-1", "PLACE-4")
@pytest.mark.parametrize("name", ["demo", "base"])
def test_effects_are_looked_for_no_farther_than_something_can_come_of_them(name: str, tmp_path: Path) -> None:
    """All rows up to the end of the log were read for the effects of an event, however long ago all of it had ended."""
    with golden(name, tmp_path) as log:
        positions_asked = range(1, log.head() + 1, 1 if name == "demo" else 97)
        short, whole = Effects(log, window=32), Effects(log)
        assert [short.of(asked) for asked in positions_asked] == [
            whole.of(asked) for asked in positions_asked
        ]
        (said,) = [at.position for at in log.all(to=20) if isinstance(at.event, MessageRecorded)][:1]
        counted = Counted(log)
        Effects(cast("Log", counted), window=32).of(said)
        assert (counted.farthest < log.head()) == (name == "demo")  # of an import anything may come

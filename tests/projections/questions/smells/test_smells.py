"""What is seldom meant, each with what smells and what does not (SMELL-1)."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from intersession_events import facts
from intersession_events.facts import Message, MessageRecorded, Provenance, Usage
from intersession_events.log.recorded import Recorded
from intersession_events.stores.opened import open_log
from intersession_projections.questions.places.located import read_flows, steps_of_flow
from intersession_projections.questions.smells.conversation import (
    duplicate_message,
    polite_loop,
    tokens_growing,
)
from intersession_projections.questions.smells.endings import (
    announce_unheard,
    guard_refused,
    late_reply,
    loop_cut,
    retry_changed,
)
from intersession_projections.questions.smells.likeness import likeness
from intersession_projections.questions.smells.smell import Seen, Smell
from intersession_projections.questions.smells.smells import SMELLS, Smells, smells_in
from intersession_projections.questions.work_list import WorkFilter, WorkList
from intersession_projections.views.flows.rows import ExchangeSummary
from intersession_projections.views.inline_views import inline_views
from support.golden_logs import GoldenLog
from support.story import MAIN, Story

X = "exchange:x"


def seen(story: Story, *events: facts.Event, stream: str = X) -> Seen:
    """Return what a rule is shown: events that were put into a log."""
    for event in events:
        story.put(stream, event)
    return Seen(tuple(story.log.all()))


def turns(*texts: str, tokens: Iterable[int] = ()) -> list[facts.Event]:
    used = iter(tokens)
    return [
        facts.TurnEnded(
            turn=number,
            speaker=MAIN,
            run_id=f"r{number}",
            status="ok",
            text=text,
            usage=Usage(total_tokens=next(used, 0)),
        )
        for number, text in enumerate(texts, start=1)
    ]


def codes(rule: Callable[[Seen], Iterable[Smell]], what: Seen) -> list[str]:
    return [smell.code for smell in rule(what)]


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(
    ("texts", "smells"),
    [
        (("Thank you so much!", "Thank you so much.", "thank you so very much"), True),
        (("You're welcome.", "You're welcome!", "You're welcome, too."), True),
        (("\N{THUMBS UP SIGN}", "\N{THUMBS UP SIGN}\n", "\N{THUMBS UP SIGN}"), True),
        (("\N{THUMBS UP SIGN}", "\N{WAVING HAND SIGN}", "\N{THUMBS UP SIGN}"), False),
        (("準備はできています。", "はい、準備はできています", "ええ、準備はできています。"), True),
        (("準備はできていますか", "いいえ、明日の朝です", "では明日また聞きます"), False),
        (("Is it open?", "Yes, until nine.", "And on Sunday?", "Closed."), False),
        (("Thank you!", "Thank you!", "See you on Saturday then, at the bridge."), False),
        # Each says more than the one before: another number, or the same words again and again.
        (tuple(f"So by now the total of the whole order is {3**turn} crates" for turn in range(4)), False),
        (tuple("x" * 70 * 3**turn for turn in range(4)), False),
        (
            tuple("apples pears plums flour eggs milk salt".rsplit(" ", 3 - more)[0] for more in range(4)),
            False,
        ),
        (("apples pears plums flour", *["apples pears plums flour eggs"] * 3), True),
        (("You have 2 seats. Thanks!", "You have 2 seats. Thanks.", "You have 2 seats, thanks"), True),
        (
            ("pingpong turn 1 by requester", "pingpong turn 2 by target", "pingpong turn 3 by requester"),
            False,
        ),
    ],
)
def test_turns_that_repeat_each_other_smell(story: Story, texts: tuple[str, ...], smells: bool) -> None:
    assert codes(polite_loop, seen(story, *turns(*texts))) == (["polite_loop"] if smells else [])


@pytest.mark.clause("SMELL-1", "ERASE-1")
def test_what_was_erased_neither_repeats_nor_changes_anything(story: Story) -> None:
    gone = seen(story, *turns(*[facts.ERASED] * 5))
    between = seen(Story(), *turns("Thank you!", "Thank you!", facts.ERASED, "Thank you!", "Thank you!"))
    retried = seen(
        Story(),
        facts.RunFailed(run_id="r", attempt=1, code="backend", error="cut off", partial=facts.ERASED),
        facts.RunCompleted(run_id="r", attempt=2, text="Only up to 2.8 tonnes."),
    )

    assert codes(polite_loop, gone) == codes(polite_loop, between) == []
    assert codes(retry_changed, retried) == []


@pytest.mark.clause("SMELL-1")
def test_a_late_reply_smells(story: Story) -> None:
    late = facts.LateReplyDropped(run_id="r", attempt=1, reply="too late")

    assert codes(late_reply, seen(story, late)) == ["late_reply"]
    assert codes(late_reply, seen(Story(), facts.RunCompleted(run_id="r", attempt=1, text="in time"))) == []


def asked(story: Story, text: str, time: int, sender: str = "ada") -> Recorded:
    person = Provenance(kind="external_user", sender=sender)
    message = Message(id=f"m{story.log.head()}", role="user", content=text, timestamp=0, provenance=person)
    return story.put(f"session:{MAIN}", MessageRecorded(session_id="s", message=message), time=time)


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(
    ("text", "after_ms", "sender", "smells"),
    [
        ("Is the  bridge open?", 30_000, "ada", True),
        ("Is the bridge open?", 599_000, "ada", True),
        ("Is the bridge open?", 601_000, "ada", False),
        ("Is the bridge open?", 30_000, "ben", False),
        ("Is the road open?", 30_000, "ada", False),
    ],
)
def test_a_message_that_came_twice_smells(
    story: Story, text: str, after_ms: int, sender: str, smells: bool
) -> None:
    first = asked(story, "Is the bridge open?", 1_000_000)
    again = asked(story, text, 1_000_000 + after_ms, sender)

    assert bool(codes(duplicate_message, Seen((again,), (first,)))) is smells


def test_a_short_word_said_twice_is_meant(story: Story) -> None:
    first, again = asked(story, "go on", 1), asked(story, "go on", 2)

    assert codes(duplicate_message, Seen((again,), (first,))) == []


@pytest.mark.clause("SMELL-1")
def test_a_loop_that_a_limit_cut_smells(story: Story) -> None:
    limit = "session.agentToAgent.maxPingPongTurns"

    assert codes(loop_cut, seen(story, facts.LoopEnded(reason="turn_limit", turns=5, limit=limit))) == [
        "loop_cut"
    ]
    assert codes(loop_cut, seen(Story(), facts.LoopEnded(reason="reply_skip", turns=1))) == []


def tool_result(text: str) -> MessageRecorded:
    message = Message(id="m", role="toolResult", content=text, timestamp=0, tool_name="sessions_send")
    return MessageRecorded(session_id="s", message=message)


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(
    ("event", "smells"),
    [
        (tool_result('{"status":"error","code":"limit","error":"hops"}'), True),
        (tool_result('{"status":"error","code":"cycle","error":"a -> b"}'), True),
        (facts.RunFailed(run_id="r", attempt=0, code="limit", error="tokens"), True),
        (facts.SpawnClosed(reason="handed_over", limit="session.agentToAgent.limits.runs"), True),
        (tool_result('{"status":"forbidden","code":"forbidden","error":"closed"}'), False),
        (tool_result('{"code": 7'), False),
        (tool_result("the code is limit"), False),
        (facts.RunFailed(run_id="r", attempt=1, code="backend", error="limit"), False),
    ],
)
def test_a_guard_that_refused_smells(story: Story, event: facts.Event, smells: bool) -> None:
    assert codes(guard_refused, seen(story, event)) == (["guard_refused"] if smells else [])


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(("first", "smells"), [("The bridge is closed.", True), ("it is open!", False)])
def test_a_retry_that_changed_the_answer_smells(story: Story, first: str, smells: bool) -> None:
    events = (
        facts.RunCompleted(run_id="r", attempt=2, text="It is open."),
        facts.LateReplyDropped(run_id="r", attempt=1, reply=first),
        facts.RunCompleted(run_id="other", attempt=1, text="Something else."),
    )

    assert codes(retry_changed, seen(story, *events)) == (["retry_changed"] if smells else [])


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(
    ("text", "reason", "smells"),
    [
        ("open!", "no_route", True),
        ("open!", "announce_denied", True),
        ("open!", "announce_failed", True),
        ("open!", "announced", False),
        ("open!", "delivery_unknown", False),
        (None, "announce_failed", False),
        (None, "silent", False),
        (None, "no_route", False),
    ],
)
def test_an_announce_that_nobody_got_smells(
    story: Story, text: str | None, reason: facts.CloseReason, smells: bool
) -> None:
    events = (facts.AnnounceDecided(text=text, silent=text is None), facts.ExchangeClosed(reason=reason))

    assert codes(announce_unheard, seen(story, *events)).count("announce_unheard") == (1 if smells else 0)


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(
    ("note", "why"),
    [
        (None, "its channel did not take it"),
        ("ConnectionError: refused", "ConnectionError: refused"),
        ("given up by operator", "given up by operator"),
    ],
)
def test_why_nobody_got_an_announce_is_what_its_delivery_ended_with(
    story: Story, note: str | None, why: str
) -> None:
    decided = facts.AnnounceDecided(text="open!", delivery_id="d1")
    what = seen(story, decided, facts.ExchangeClosed(reason="announce_failed", note=note))

    assert [one.text for one in announce_unheard(what)] == [f"nobody got the announce: {why}"]


@pytest.mark.clause("SMELL-1")
def test_an_announce_that_perhaps_somebody_got_is_in_doubt_and_one_that_a_listening_host_got_does_not_smell(
    story: Story,
) -> None:
    decided = facts.AnnounceDecided(text="open!", delivery_id="d1")
    doubt = seen(story, decided, facts.ExchangeClosed(reason="delivery_unknown"))
    assert [(one.code, one.text) for one in announce_unheard(doubt)] == [
        ("announce_in_doubt", "it is not known whether anybody got the announce")
    ]
    story.put("delivery:d1", facts.DeliveryDone(delivery_id="d1", attempt=1))
    heard = seen(story, facts.ExchangeClosed(reason="no_route"))
    assert [one.code for one in announce_unheard(heard)] == ["announce_in_doubt"]  # that of before alone


@pytest.mark.clause("SMELL-1")
def test_a_loop_that_a_limit_ends_before_its_first_turn_is_told_so(story: Story) -> None:
    (smell,) = loop_cut(seen(story, facts.LoopEnded(reason="run_limit", turns=0, limit="limits.runs")))
    assert smell.text == "limits.runs ended the loop before the first turn"


@pytest.mark.clause("SMELL-1")
@pytest.mark.parametrize(
    ("tokens", "smells"),
    [
        ((100, 150, 225, 400), True),
        ((100, 120, 140, 170, 200), False),
        ((8977, 20012, 9087, 20012, 9161), False),
        ((100, 200, 400), False),
    ],
)
def test_tokens_that_grow_turn_by_turn_smell(story: Story, tokens: tuple[int, ...], smells: bool) -> None:
    told = turns(*(f"text {number}" for number in range(len(tokens))), tokens=tokens)

    assert codes(tokens_growing, seen(story, *told)) == (["tokens_growing"] if smells else [])


@pytest.mark.clause("SMELL-1")
def test_the_recorded_states_smell_of_what_happened_in_them_and_of_nothing_else(tmp_path: Path) -> None:
    path = GoldenLog("0.1.0", "base").unpack(tmp_path)
    with open_log(f"sqlite:///{path}", read_only=True, inline=inline_views()) as log:
        smells = Smells(log)
        found = [
            (smell.code, smell.position)
            for each in smells.of_each(read_flows(log, list(WorkList(log).newest(WorkFilter()))))
            for smell in each
        ]

    assert sorted(found) == [
        ("announce_unheard", 542),
        ("announce_unheard", 623),
        ("announce_unheard", 669),
        ("announce_unheard", 758),
        ("announce_unheard", 776),
        ("announce_unheard", 2019),
        ("duplicate_message", 275),
        ("duplicate_message", 734),
        ("loop_cut", 267),
        ("loop_cut", 465),
    ]


def told(recorded: Recorded, *more: facts.Event) -> list[Recorded]:
    """Return an event of a record, and more that might have stood behind it."""
    return [recorded, *(replace(recorded, event=event) for event in more)]


def twice(text: str) -> tuple[facts.Event, facts.Event]:
    failed = facts.RunFailed(
        run_id="r", attempt=1, code="backend", error="it broke", partial="It is open on Saturday."
    )
    return failed, facts.RunCompleted(run_id="r", attempt=1, text=text)


HELD = facts.ExchangeHeld(
    hold_id="h",
    step="reply",
    text="t",
    speaker=MAIN,
    since_ms=0,
    before="reply",
    source="run",
    by="operator",
    order="o",
)
RELEASED = facts.ExchangeReleased(hold_id="h", action="go_on", by="operator")
DOCTORED: dict[str, tuple[Callable[[Recorded], list[Recorded]], Callable[[Recorded], list[Recorded]]]] = {
    "polite_loop": (
        lambda one: [replace(one, event=replace(one.event, text="Thank you, that is all I need."))],
        lambda one: [replace(one, event=replace(one.event, text=f"Number {one.position} says something."))],
    ),
    "tokens_growing": (
        lambda one: [replace(one, event=replace(one.event, usage=Usage(total_tokens=2**one.position)))],
        lambda one: [replace(one, event=replace(one.event, usage=Usage(total_tokens=one.position)))],
    ),
    "late_reply": (
        lambda one: told(one, facts.LateReplyDropped(run_id="r", attempt=1, reply="late")),
        lambda one: told(one, facts.RunCompleted(run_id="r", attempt=1, text="in time")),
    ),
    "retry_changed": (
        lambda one: told(one, *twice("No, the bridge is closed all week.")),
        lambda one: told(one, *twice("It is open on Saturday!")),
    ),
    "guard_refused": (
        lambda one: told(one, facts.RunFailed(run_id="r", attempt=1, code="limit", error="no runs left")),
        lambda one: told(one, facts.RunFailed(run_id="r", attempt=1, code="backend", error="it broke")),
    ),
    "still_held": (lambda one: told(one, HELD), lambda one: told(one, HELD, RELEASED)),
    "text_replaced": (
        lambda one: told(one, HELD, replace(RELEASED, action="edit", text="other")),
        lambda one: told(one, HELD, RELEASED),
    ),
}
"""For smells that no recorded state has: what is done to each turn of a recorded exchange, so that it smells, or nearly does."""


@pytest.mark.clause("SMELL-1")
def test_each_smell_is_found_in_a_recorded_exchange_that_has_it_and_in_none_that_nearly_has_it(
    tmp_path: Path,
) -> None:
    path = GoldenLog("0.1.0", "base").unpack(tmp_path)
    with open_log(f"sqlite:///{path}", read_only=True, inline=inline_views()) as log:
        seen_of = {
            work.exchange_id: tuple(log.at(step.position for step in steps_of_flow(log, work)))
            for work in WorkList(log).newest(WorkFilter(kinds=("exchange",)))
            if isinstance(work, ExchangeSummary)
        }
    found = {name: {smell.code for smell in smells_in(Seen(events))} for name, events in seen_of.items()}
    for code in ("loop_cut", "announce_unheard"):
        assert {code in smells for smells in found.values()} == {True, False}, code
    longest = max(
        seen_of.values(), key=lambda events: sum(isinstance(one.event, facts.TurnEnded) for one in events)
    )
    assert not {smell.code for smell in smells_in(Seen(longest))} & DOCTORED.keys()
    for code, doctors in DOCTORED.items():
        for smells, doctor in zip((True, False), doctors, strict=True):
            events = [
                other
                for one in longest
                for other in (doctor(one) if isinstance(one.event, facts.TurnEnded) else [one])
            ]
            assert (code in {smell.code for smell in smells_in(Seen(tuple(events)))}) == smells, (
                code,
                smells,
            )
    known = {*DOCTORED, "loop_cut", "announce_unheard", "duplicate_message"}
    assert {rule.__name__ for rule in SMELLS} == known


@pytest.mark.clause("SMELL-1")
def test_a_host_adds_rules_of_its_own(story: Story) -> None:
    def shouting(what: Seen) -> Iterable[Smell]:
        for recorded in what.events:
            event = recorded.event
            if isinstance(event, facts.TurnEnded) and (event.text or "").isupper():
                yield Smell("shouting", recorded.position, "somebody shouts")

    what = seen(story, *turns("hm", "OPEN IT!"))

    assert smells_in(what, (*SMELLS, shouting)) == [Smell("shouting", 2, "somebody shouts")]


def test_likeness_is_of_words() -> None:
    assert likeness("A b, c!", "c B a") == 1.0
    assert likeness("", "") == likeness(" ", "\n") == 0.0
    assert likeness("!", "!") == 1.0
    assert likeness("cafe\u0301 open", "CAF\u00c9 open") == 1.0
    assert 0.4 < likeness("東京は晴れです", "東京は雨です") < 0.8
    assert likeness("a b", "c d") == 0.0

"""Sequence diagrams: what is drawn of a run, the same in each way of drawing, and harmless whatever is in the texts."""

import unicodedata
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree as ET

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from intersession_events.facts import (
    AnnounceDecided,
    ChildEnded,
    DeliveryDecided,
    DeliveryDone,
    Erased,
    ExchangeAccepted,
    ExchangeClosed,
    LoopEnded,
    Message,
    MessageRecorded,
    Provenance,
    Route,
    RunCompleted,
    RunFailed,
    SpawnAccepted,
    TextBlock,
    ToolCallBlock,
    TurnEnded,
    Usage,
)
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.diagram.diagram import Diagram, diagram_of
from intersession_projections.questions.diagram.fitting import cells
from intersession_projections.questions.diagram.rows import Arrow, Gap, Lane, Mark
from support.hostile import given as input_of
from support.hostile import row_id, rows
from support.story import MAIN, Story
from support.vocabulary import logs

OPS = "agent:ops:main"
SVG = "{http://www.w3.org/2000/svg}"
LAB = Route(channel="discord", to="lab")


@pytest.fixture
def story(passing_url: str) -> Iterator[Story]:
    told = Story(passing_url)
    yield told
    told.close()


def elements(drawn: Diagram) -> ET.Element:
    return ET.fromstring(drawn.svg())  # noqa: S314 - what we have just made


def names(key: str) -> str:
    return key.split(":")[1]


def asked(source: str, text: str, *, turn: int | None = None) -> Message:
    origin = Provenance(kind="inter_session", source_session_key=source, exchange_id="e", turn=turn)
    return Message(id=f"m-{text}", role="user", content=text, timestamp=0, provenance=origin)


def said(text: str, *blocks: Any) -> Message:
    return Message(id=f"a-{text}", role="assistant", content=(TextBlock(text=text), *blocks), timestamp=0)


def recorded_in(story: Story, session: str, message: Message, *, time: int) -> Recorded:
    return story.put(f"session:{session}", MessageRecorded(session_id="s", message=message), time=time)


def an_exchange(story: Story) -> Diagram:
    recorded_in(story, OPS, asked(MAIN, "ready?"), time=1_000)
    recorded_in(story, OPS, said("nearly", ToolCallBlock(id="c", name="look", arguments="{}")), time=1_500)
    recorded_in(story, MAIN, asked(OPS, "nearly", turn=1), time=1_600)
    recorded_in(story, MAIN, said("good"), time=62_000)
    story.put("exchange:e", LoopEnded(reason="turn_limit", turns=1), time=62_000)
    decided = DeliveryDecided(
        delivery_id="d", session_key=OPS, route=LAB, text="all is ready", key="d", purpose="announce"
    )
    story.put("delivery:d", decided, time=62_100)
    story.put("delivery:d", DeliveryDone(delivery_id="d", attempt=1), time=62_200)
    story.put("exchange:e", ExchangeClosed(reason="announced"), time=62_300)
    return diagram_of(story.log.all(), title="exchange e", names=names)


def test_lanes_come_in_order_and_a_reply_that_is_carried_on_is_one_arrow(story: Story) -> None:
    drawn = an_exchange(story)

    assert [(lane.name, lane.kind) for lane in drawn.lanes] == [
        ("main", "session"),
        ("ops", "session"),
        ("discord:lab", "channel"),
    ]
    assert [(row.source, row.target, row.how, row.text) for row in drawn.rows if isinstance(row, Arrow)] == [
        (0, 1, "asks", "ready?"),
        (1, 0, "replies", "nearly"),
        (1, 2, "announces", "all is ready"),
    ]
    assert [(row.lane, row.kind) for row in drawn.rows if isinstance(row, Mark)] == [
        (1, "tool"),
        (0, "note"),
        (None, "end"),
        (2, "note"),
        (None, "end"),
    ]
    assert [row.ms for row in drawn.rows if isinstance(row, Gap)] == [60_400]


def test_it_is_drawn_with_characters_in_columns(story: Story) -> None:
    drawn = an_exchange(story).text(64)

    assert drawn.splitlines()[:7] == [
        "           main                ops             discord:lab",
        "#1           │ asks: ready?      │                   │",
        "             ├──────────────────▶│                   │",
        "#2           │                   │ ⚙ calls look {}   │",
        "#3           │ replies: nearly   │                   │",
        "             │◀──────────────────┤                   │",
        "             ┊  1 min 0 s later  ┊                   ┊",
    ]


def test_a_run_that_failed_is_marked_on_its_lane(story: Story) -> None:
    recorded_in(story, OPS, asked(MAIN, "ready?"), time=1)
    story.put(f"session:{OPS}", RunFailed(run_id="r", attempt=1, code="backend", error="no model"))

    drawn = diagram_of(story.log.all(), title="", names=names)

    assert [(row.kind, row.lane) for row in drawn.rows if isinstance(row, Mark)] == [("failed", 1)]
    assert "✗" in drawn.text()
    assert "no model" in drawn.text()


def test_a_person_and_where_they_are_answered_are_one_lane(story: Story) -> None:
    origin = Provenance(kind="external_user", source_channel="telegram", sender="ada", sender_name="Ada")
    message = Message(id="m", role="user", content="hello", timestamp=0, provenance=origin)
    recorded_in(story, MAIN, message, time=1)
    recorded_in(story, MAIN, said("hello Ada"), time=2)
    decided = DeliveryDecided(
        delivery_id="d",
        session_key=MAIN,
        route=Route(channel="telegram", to="ada"),
        text="hello Ada",
        key="d",
        purpose="auto_reply",
    )
    story.put("delivery:d", decided)

    drawn = diagram_of(story.log.all(), title="", names=names)

    assert [lane.name for lane in drawn.lanes] == ["Ada (telegram)", "main"]
    assert [(row.source, row.target) for row in drawn.rows if isinstance(row, Arrow)] == [(0, 1), (1, 0)]
    assert [row for row in drawn.rows if isinstance(row, Mark)] == []


def test_what_comes_behind_the_place_is_dimmed(story: Story) -> None:
    an_exchange(story)
    drawn = diagram_of(story.log.all(), title="", names=names, at=3)

    groups = [group for group in elements(drawn) if group.get("data-position")]
    assert [int(group.get("data-position", "")) > 3 for group in groups] == [
        group.get("opacity") is not None for group in groups
    ]


@settings(max_examples=40, deadline=None, phases=[Phase.generate])
@given(logs(), st.integers(20, 200))
def test_each_way_shows_the_same_rows_whatever_the_log_holds(
    told: list[tuple[str, Any, int]], width: int
) -> None:
    story = Story()
    try:
        for stream, event, time in told:
            if isinstance(event, Erased):
                continue  # one needs what it erases
            story.put(stream, event, time=time)
        drawn = diagram_of(story.log.all(), title="t", names=str)
    finally:
        story.close()
    positions = [row.position for row in drawn.rows if not isinstance(row, Gap)]
    assert positions == sorted(positions)

    lines = list(drawn.lines(width))
    assert list(dict.fromkeys(line.position for line in lines if line.position)) == list(
        dict.fromkeys(positions)
    )
    svg = elements(drawn)
    shown = [int(group.get("data-position", "")) for group in svg if group.get("data-position")]
    assert shown == positions
    assert len(drawn.mermaid().splitlines()) == 1 + len(drawn.lanes) + len(drawn.rows)


@pytest.mark.parametrize("row", rows("R"), ids=row_id)
def test_no_text_is_more_than_text(story: Story, row: dict[str, Any]) -> None:
    text = str(input_of(row))
    encodable = text.encode("utf-8", "backslashreplace").decode()
    recorded_in(story, OPS, asked(MAIN, encodable), time=1)
    recorded_in(story, OPS, said(encodable), time=2)
    drawn = diagram_of(story.log.all(), title=encodable, names=lambda key: f"{key} {encodable}")

    for line in drawn.lines(80):
        assert not [
            letter for letter in line.text if unicodedata.category(letter) in {"Cc", "Cf", "Zl", "Zp"}
        ]
    svg = elements(drawn)
    assert {element.tag for element in svg.iter()} <= {f"{SVG}{tag}" for tag in ALLOWED}
    assert not [
        name for element in svg.iter() for name in element.attrib if name.startswith("on") or "href" in name
    ]
    first, *others = drawn.mermaid().splitlines()
    assert first == "sequenceDiagram"
    assert len(others) == len(drawn.lanes) + len(drawn.rows)
    assert not [
        line
        for line in others
        if "<" in line or "%%" in line or (";" in line.replace("#", " ") and "<" in line)
    ]


ALLOWED = {"svg", "g", "title", "text", "line", "polygon"}


@pytest.mark.clause("SHOW-1")
@pytest.mark.parametrize("lanes", [1, 2, 5])
def test_no_text_of_a_picture_is_wider_than_its_room(lanes: int) -> None:
    """As wide letters take: what stands across all lanes had its end cut off, and its sign as well."""
    everybody = tuple(Lane(id=str(n), name="准备好了吗" * 9, kind="session") for n in range(lanes))
    words = "the limit of turns was reached (session.agentToAgent.maxPingPongTurns): " * 5
    rows = [
        row
        for text in (words, "準備はいいですか" * 30, "")
        for row in (
            Arrow(position=1, time=0, source=0, target=lanes - 1, text=text, how="asks"),
            Mark(position=2, time=0, lane=None, text=text, kind="end"),
            Mark(position=3, time=0, lane=lanes - 1, text=text, kind="failed"),
            Gap(ms=10**9),
        )
    ]
    svg = elements(Diagram(title="", lanes=everybody, rows=tuple(rows)))

    width = int(svg.get("width", ""))
    for text in svg.iter(f"{SVG}text"):
        taken = 7 * cells(text.text or "")  # of such letters as most are
        x = int(text.get("x", ""))
        left = {"start": x, "middle": x - taken // 2, "end": x - taken}[text.get("text-anchor", "")]
        assert left >= 0
        assert left + taken <= width, text.text
    signs = [text.text for text in svg.iter(f"{SVG}text") if (text.text or "").startswith("■")]
    assert len(signs) == 3


@pytest.mark.clause("SHOW-1")
def test_a_picture_has_the_colour_of_texts_around_it(story: Story) -> None:
    """In a notebook that is dark as well as in one that is light."""
    recorded_in(story, OPS, asked(MAIN, "ready?"), time=1)
    svg = elements(diagram_of(story.log.all(), title="", names=names))
    assert {text.get("fill") for text in svg.iter(f"{SVG}text")} == {"currentColor"}


def test_a_message_without_words_is_said_by_what_it_is() -> None:
    lanes = tuple(Lane(id=str(number), name=str(number), kind="session") for number in range(2))
    drawn = Diagram(
        title="",
        lanes=lanes,
        rows=(Arrow(position=1, time=0, source=0, target=1, text=" ", how="replies"),),
    )
    assert "replies:" not in drawn.text() + drawn.svg()
    assert drawn.mermaid().splitlines()[-1] == "    L0->>L1: replies"


def test_many_lanes_make_it_wider_than_the_screen() -> None:
    lanes = tuple(Lane(id=str(number), name=str(number), kind="session") for number in range(9))
    arrow = Arrow(position=1, time=0, source=0, target=8, text="far", how="asks")

    drawn = Diagram(title="", lanes=lanes, rows=(arrow,)).text(80).splitlines()

    assert len(drawn[2]) > 80
    assert drawn[2].endswith("▶│")


def test_wide_letters_keep_the_columns(story: Story) -> None:
    recorded_in(story, OPS, asked(MAIN, "準備はいいですか 準備はいいですか 準備はいいですか"), time=1)

    drawn = diagram_of(story.log.all(), title="", names=names).text(60).splitlines()

    widths = {
        sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)
        for line in drawn[1:-1]
    }
    assert len(widths) == 1


@pytest.mark.clause("SHOW-1")
def test_the_reply_of_the_last_turn_says_which_turn_it_is_though_nobody_is_asked_with_it(
    story: Story,
) -> None:
    recorded_in(story, OPS, asked(MAIN, "ready?"), time=1)
    recorded_in(story, OPS, said("nearly"), time=2)
    recorded_in(story, MAIN, asked(OPS, "nearly", turn=1), time=3)
    recorded_in(story, MAIN, said("good"), time=4)
    story.put("exchange:e", TurnEnded(turn=1, speaker=MAIN, run_id="r", status="ok", text="good"))

    (mark,) = (
        row for row in diagram_of(story.log.all(), title="", names=names).rows if isinstance(row, Mark)
    )

    assert mark.text == "turn 1: good"


@pytest.mark.clause("SHOW-1")
def test_what_a_tool_gives_has_no_lane_of_its_own(story: Story) -> None:
    recorded_in(story, OPS, said("", ToolCallBlock(id="c", name="look", arguments="{}")), time=1)
    given = Message(
        id="t", role="toolResult", content="there", timestamp=0, tool_call_id="c", tool_name="look"
    )
    recorded_in(story, OPS, given, time=2)

    drawn = diagram_of(story.log.all(), title="", names=names)

    assert [lane.name for lane in drawn.lanes] == ["ops"]


STAMP = "[Mon 2026-03-02 09:00 UTC] "


@pytest.mark.clause("SHOW-1")
def test_an_imported_exchange_says_which_turn_each_message_is_and_leaves_out_what_stands_before_its_words(
    story: Story,
) -> None:
    recorded_in(story, OPS, asked(MAIN, f"{STAMP}ready?"), time=1)
    accepted = ExchangeAccepted(
        exchange_id="e",
        run_id="r",
        target=OPS,
        target_session_id="s",
        message_id="m",
        message="ready?",
        requester=MAIN,
        inferred=True,
    )
    story.put("exchange:e", accepted, time=1)
    story.put("exchange:e", TurnEnded(turn=0, speaker=OPS, run_id="r", status="ok", text="nearly"), time=2)
    recorded_in(story, MAIN, asked(OPS, f"{STAMP}nearly"), time=2)
    story.put("exchange:e", TurnEnded(turn=1, speaker=MAIN, run_id="t", status="ok", text="good"), time=3)
    recorded_in(story, OPS, asked(MAIN, f"{STAMP}good"), time=3)
    story.put("exchange:e", TurnEnded(turn=2, speaker=OPS, run_id="u", status="ok", text="bye"), time=4)
    # As OpenClaw writes it: of the session that had asked, and of no exchange.
    origin = Provenance(kind="inter_session", source_session_key=MAIN, source_tool="sessions_send")
    step = asked(MAIN, f"{STAMP}Agent-to-agent announce step.")
    recorded_in(story, OPS, msgspec.structs.replace(step, provenance=origin), time=5)
    story.put("exchange:e", AnnounceDecided(run_id="a", text="it is ready"), time=6)

    drawn = diagram_of(story.log.all(), title="", names=names)

    assert [(row.how, row.text) for row in drawn.rows if isinstance(row, Arrow)] == [
        ("asks", "ready?"),
        ("replies", "nearly"),
        ("turn 1", "good"),
    ]
    assert [(row.lane, row.text) for row in drawn.rows if isinstance(row, Mark)] == [
        (1, "turn 2: bye"),
        (1, "is told: Agent-to-agent announce step."),
        (1, "announces: it is ready"),  # who asked whether a person was told did not see with what
    ]


@pytest.mark.clause("SHOW-1")
def test_an_imported_sub_agent_is_asked_by_who_spawned_it(story: Story) -> None:
    child = "agent:main:subagent:1"
    accepted = SpawnAccepted(
        spawn_id="p",
        run_id="r",
        child=child,
        child_session_id="s",
        agent_id="main",
        task="count",
        message_id="m",
        requester=MAIN,
        inferred=True,
    )
    story.put("spawn:p", accepted, time=1)
    task = f"{STAMP}[Subagent Context] You are a sub-agent.\n\n[Subagent Task]: count"
    recorded_in(story, child, Message(id="m", role="user", content=task, timestamp=0), time=2)
    story.put("spawn:p", ChildEnded(run_id="r", status="ok", text="seven"), time=3)

    drawn = diagram_of(story.log.all(), title="", names=str)

    assert [(lane.id, lane.kind) for lane in drawn.lanes] == [(MAIN, "session"), (child, "session")]
    row, ended = drawn.rows
    assert isinstance(row, Arrow)
    assert (row.how, row.text) == ("asks", "count")
    assert isinstance(ended, Mark)
    assert (ended.lane, ended.text) == (1, "ends its task: seven")


def test_an_arrow_has_the_tokens_that_its_words_took(story: Story) -> None:
    recorded_in(story, OPS, asked(MAIN, "ready?"), time=1)
    recorded_in(story, OPS, said("nearly"), time=2)
    usage = Usage(input=400, output=30, total_tokens=430)
    story.put(f"session:{OPS}", RunCompleted(run_id="r", attempt=1, text="nearly", usage=usage), time=2)
    recorded_in(story, MAIN, asked(OPS, "nearly", turn=1), time=3)

    arrows = [
        row for row in diagram_of(story.log.all(), title="", names=names).rows if isinstance(row, Arrow)
    ]

    assert [(row.text, row.tokens) for row in arrows] == [("ready?", None), ("nearly", 430)]

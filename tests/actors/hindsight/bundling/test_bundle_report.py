"""The report of a bundle: what it tells, and that no text of a log does anything there."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from intersession_actors.hindsight.bundling.report import ReportHead, write_report
from intersession_events import facts
from intersession_events.copies.bundles.rows import line_of_row
from intersession_events.facts import Event, encode
from intersession_events.log.envelope import FIRST, seal
from intersession_events.log.recorded import Draft
from support.hostile import given, rows, steers

KEY = "agent:main:main"
STREAM = f"session:{KEY}"
TIME = 1_796_000_000_000


def line(event: Event, position: int, *, stream: str = STREAM, withheld: str = "") -> bytes:
    """Return an event as a line of a bundle."""
    draft = Draft(
        event=event,
        id=f"0f000000-0000-5000-8000-{position:012d}",
        time=TIME + position,
        correlation="0f000000-0000-5000-8000-000000000001",
    )
    state, _ = seal(
        draft, event.topic, encode(event), log_id="l", stream=stream, version=position, epoch=1, prev=FIRST, salt=b"s" * 16
    )  # fmt: skip
    return line_of_row((position, stream, position, event.topic, state), position - 1, withheld)


def said(text: str, **fields: Any) -> facts.MessageRecorded:
    origin = facts.Provenance(kind="external_user", source_channel="telegram", sender="ann", **fields)
    message = facts.Message(id="m", role="user", content=text, timestamp=1, provenance=origin)
    return facts.MessageRecorded(session_id="s", message=message)


def answered(*content: facts.Block, **fields: Any) -> facts.MessageRecorded:
    message = facts.Message(id="a", role="assistant", content=content, timestamp=2, **fields)
    return facts.MessageRecorded(session_id="s", message=message)


def report_of(folder: Path, *lines: bytes, **asked: Any) -> str:
    """Return the report of some events."""
    (folder / "events.jsonl").write_bytes(b"".join(lines))
    defaults: dict[str, Any] = {
        "question": {"run": "r1"}, "log_id": "l", "position": len(lines), "events": len(lines), "streams": 1
    }  # fmt: skip
    write_report(folder, ReportHead(**defaults | asked))
    return (folder / "report.html").read_text(encoding="utf-8")


class Parsed(HTMLParser):
    """The elements of a page, its texts, and where its links lead."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.clause("BUNDLE-25")
def test_the_report_tells_who_said_what_on_whose_behalf_and_what_came_of_it(tmp_path: Path) -> None:
    usage = facts.Usage(input=10, output=5, cost_micros=1_500_000)
    call = facts.ToolCallBlock(id="c1", name="look", arguments='{"at":"the order"}')
    result = facts.Message(
        id="t", role="toolResult", content="not found", timestamp=3, tool_call_id="c1", tool_name="look"
    )
    sent = facts.DeliveryDecided(
        delivery_id="d", session_key=KEY, route=facts.Route(channel="telegram", to="42"),
        text="It is on its way.", key="d", purpose="auto_reply",
    )  # fmt: skip

    page = report_of(
        tmp_path,
        line(said("Where is my order?", sender_name="Ann"), 1),
        line(answered(call), 2),
        line(facts.MessageRecorded(session_id="s", message=result), 3),
        line(answered(facts.TextBlock(text="It is on its way."), usage=usage, model="m/1"), 4),
        line(sent, 5, stream="delivery:d"),
        line(facts.DeliveryFailed(delivery_id="d", error="busy", retry_at_ms=1), 6, stream="delivery:d"),
        line(facts.DeliveryDone(delivery_id="d"), 7, stream="delivery:d"),
        line(facts.AccessRecorded(requester=KEY, tool="sessions_history", denied_count=1, denied=(("x", "forbidden"),)), 8),
        line(facts.Erased(stream=STREAM, rows=((1, "f" * 64),), by="operator", reason="Ann asked"), 9),
        covered=6,
    )  # fmt: skip

    text = re.sub(r"\s+", " ", " ".join(Parsed(page).texts))
    for told in (
        "Where is my order?", "on behalf of Ann (ann)", "calls look", '{"at":"the order"}', "not found", "auto reply: delivered",
        "telegram:42", "1.500000", "x: forbidden", "Ann asked", "Part of the log up to its checkpoint of #6",
        "what comes after #6", "not signed",
    ):  # fmt: skip
        assert told in text, told
    for one in re.findall(rb'"hash":"([0-9a-f]{64})"', (tmp_path / "events.jsonl").read_bytes()):
        assert one.decode() in page


@pytest.mark.clause("BUNDLE-25")
def test_the_report_has_no_script_no_address_and_one_heading_of_each_part(tmp_path: Path) -> None:
    page = Parsed(report_of(tmp_path, line(said("hi"), 1)))

    assert not {"script", "iframe", "img", "link", "object", "form"} & set(page.elements)
    policy = next(
        value for name, value in page.attributes if name == "content" and "default-src" in str(value)
    )
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert [
        value for name, value in page.attributes if name in {"href", "src"} and not str(value).startswith("#")
    ] == []
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    targets = {value for name, value in page.attributes if name == "id"}
    assert {str(value)[1:] for name, value in page.attributes if name == "href"} <= targets
    assert page.elements.count("h1") == 1


@pytest.mark.clause("BUNDLE-25")
def test_no_text_of_a_log_does_anything_in_its_report(tmp_path: Path) -> None:
    texts = [
        "</script><script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "\u202eevil\x1b[31m\x00\u2066",
    ]
    texts += [
        text for row in rows("R") + rows("T") if isinstance(text := given(row), str) and len(text) < 10_000
    ]
    plain = Parsed(report_of(tmp_path, *(line(said("hi"), at) for at, _ in enumerate(texts, 1))))

    page = report_of(
        tmp_path,
        *(line(said(text.encode(errors="replace").decode()), at) for at, text in enumerate(texts, 1)),
        question={"session": texts[0]},
    )

    assert Parsed(page).elements == plain.elements
    assert steers(page) == []


@pytest.mark.ci
@pytest.mark.clause("BUNDLE-25")
def test_a_long_bundle_has_the_first_rows_and_says_where_the_rest_is(tmp_path: Path) -> None:
    long = "x" * 6_000_000
    page = report_of(tmp_path, line(said(long), 1), *(line(said(f"text {at}"), at) for at in range(2, 2200)))

    assert len(page) < 2_500_000
    assert "1,199 more texts: all are in" in Parsed(page).texts[-1] or "1,199 more texts" in page
    assert "199 more events" in page
    assert "5,996,000 more characters in events.jsonl" in page


@pytest.mark.clause("BUNDLE-26")
def test_an_edition_says_withheld_where_words_are_not_there(tmp_path: Path) -> None:
    page = report_of(
        tmp_path, line(facts.unsaid(said("hi")), 1, withheld="words"), line(facts.unsaid(said("hi")), 2), redacted="words"
    )  # fmt: skip

    assert page.count('<span class="gone">[withheld]</span>') == 2
    assert page.count("[erased]") == 2  # erased before there was a bundle
    assert "1 words withheld" in page
    assert "What was said is withheld" in page


@pytest.mark.clause("BUNDLE-25")
def test_what_lies_beside_the_events_is_quoted(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(json.dumps({"settings": {"tools": {"x": "<b>", "none": []}}}))
    (tmp_path / "notes.json").write_text('{"notes": []}')
    receipt = {"tool": "sessions_history", "filters": '{"query":"<i>"}', "deniedCount": 1}
    lines = [
        {"question": {}},
        {"position": 7, "timeMs": TIME, "who": "agent:x:main", "isProven": False, "receipt": receipt},
    ]
    (tmp_path / "questions.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in lines))
    (tmp_path / "answer.json").write_text('{"found": "</pre><script>"}')

    page = report_of(tmp_path, line(said("hi"), 1))

    text = " ".join(Parsed(page).texts)
    for quoted in (
        'tools.x = "<b>"',
        '{"query":"<i>"}',
        "0 allowed, 1 denied",
        "its event is elsewhere",
        "</pre><script>",
    ):
        assert quoted in text, quoted
    assert "Notes" not in text
    assert "none" not in text.partition("Settings in force")[2].partition("All events")[0]
    assert "script" not in Parsed(page).elements

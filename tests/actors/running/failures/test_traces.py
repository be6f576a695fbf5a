"""Tracebacks and errors as text: bounded, without secrets, harmless; every kind of failure has its words and its row."""

import logging
import re
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.running.failures.failure import (
    KINDS,
    Failure,
    FailureKind,
    described,
    failure_line,
    traced,
)
from intersession_actors.running.failures.reports import Reports
from support.fakes import ManualClock
from support.paths import ROOT

PAGE = ROOT / "docs" / "howto" / "logging.md"
SOURCES = ("actors", "events", "projections")
SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


def fail(error: BaseException) -> None:
    raise error


def raised(error: BaseException) -> BaseException:
    try:
        fail(error)
    except BaseException as caught:  # noqa: BLE001 - that is what is tested
        return caught
    return error


def test_a_traceback_names_the_line_that_raised_and_what_caused_it() -> None:
    text: str | None = None
    try:
        try:
            fail(KeyError("first"))
        except KeyError as error:
            raise ValueError("second") from error
    except ValueError as error:
        text = traced(error)

    assert text is not None
    assert 'fail(KeyError("first"))' in text
    assert "direct cause" in text
    assert text.endswith("ValueError: second")


@pytest.mark.clause("X11")
def test_a_traceback_has_no_secret_and_nothing_that_steers_a_terminal() -> None:
    text = traced(raised(OSError(f"401 for {SECRET} \x1b[2J caf\udce9")))

    assert text is not None
    assert SECRET not in text
    assert "\x1b" not in text
    text.encode()


@given(st.text(max_size=50_000), st.integers(min_value=0, max_value=60))
def test_a_traceback_is_of_a_bounded_size_whatever_is_raised(message: str, depth: int) -> None:
    def deep(left: int) -> None:
        if left:
            deep(left - 1)
        raise ValueError(message)

    text = ""
    try:
        deep(depth)
    except ValueError as error:
        text = traced(error) or ""

    assert 0 < len(text.encode()) <= 8_192


def test_an_exception_that_can_not_be_shown_has_no_traceback_and_a_description() -> None:
    class Nasty(Exception):
        def __str__(self) -> str:
            raise SystemExit

    text = traced(raised(Nasty()))

    assert described(Nasty()).startswith("Nasty")
    assert text is None or "Nasty" in text
    assert traced(ValueError("never raised")) is None


@given(st.text())
def test_a_failure_is_one_line_whatever_its_error_says(error: str) -> None:
    failure = Failure(
        kind="run_failed", level="error", what="run failed", time_ms=0, run_id="r\n1", error=error
    )

    assert len(failure_line(failure).splitlines()) == 1
    assert failure_line(failure).isprintable()


def test_every_kind_of_failure_has_a_logger_a_level_and_a_row_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (`intersession\.\w+`, \w+) \|", page, re.MULTILINE))

    assert set(KINDS) == set(get_args(FailureKind))
    assert rows == {
        kind: f"`intersession.{told.logger}`, {told.level.upper()}" for kind, told in KINDS.items()
    }


def test_every_logger_is_named_on_the_page_and_nothing_logs_under_another_name() -> None:
    page = PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `(intersession[.\w]+)` \|", page, re.MULTILINE))
    made: set[str] = {f"intersession.{told.logger}" for told in KINDS.values()}
    for source in (path for folder in SOURCES for path in (ROOT / folder).rglob("*.py")):
        made |= set(
            re.findall(
                r"(?:getLogger|limited_logger)\(\"([^\"]+)\"", Path(source).read_text(encoding="utf-8")
            )
        )
        assert "getLogger(__name__)" not in Path(source).read_text(encoding="utf-8"), source
    ours = {name for name in made if not name.startswith(("apprise", "urllib3"))}

    assert ours - {"intersession"} == named


def test_trouble_with_the_store_is_told_once_until_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    reports = Reports(clock=clock)

    for _ in range(3):
        reports.store_away(OSError("disk"), stream="session:a")
    away = reports.store_error
    clock.advance(2_000)
    reports.store_back()
    reports.store_back()
    reports.store_away(OSError("disk"), stream="session:a")

    lines = [
        (record.levelname, record.getMessage())
        for record in caplog.records
        if record.name == "intersession.store"
    ]
    assert away == "OSError: disk"
    assert [level for level, _ in lines] == ["ERROR", "WARNING", "ERROR"]
    assert lines[1][1] == "store is available again after 2.0 s"
    assert reports.counts == {"store_trouble": 2}


def test_a_silenced_logger_gets_no_record(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, logger="intersession.runs")
    reports = Reports(clock=ManualClock())

    reports.tell("run_failed", error="x")

    assert "run failed" not in caplog.text
    assert reports.counts == {"run_failed": 1}

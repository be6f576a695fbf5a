"""The tutorial of time travel is played as it stands: its Python, then its commands, and what these print is compared."""

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.doors.command_line import ran
from support.paths import DOCS

PAGE = DOCS / "howto" / "time-travel.md"
BLOCK = re.compile(r"^```(?P<language>python|console)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SHORT = re.compile(r"\b[0-9a-f]{8}\b")
CUT = "…"
DRAWN = (
    (UUID, "ID"),
    (re.compile(r"\b[0-9a-f]{64}\b"), "HASH"),
    (re.compile(r"\d{4}-\d\d-\d\d"), "DATE"),
    (re.compile(r"\d\d:\d\d:\d\d(\.\d{3})?"), "TIME"),
    (re.compile(r"\d+(\.\d+)? m?s\b"), "TIME"),
    (re.compile(r"#\d+"), "#"),
    (re.compile(r"(\d+) events: \1 decided again"), "EVENTS: all decided again"),
    (re.compile(r"\d+ events in"), "EVENTS in"),
    (SHORT, "ID"),
    (re.compile(r"─+"), "-"),
    (re.compile(r"\s+"), " "),
)
"""What is another one each night: ids, hashes, times, positions, and the room that these take.

How many events are among a run's is one of it: the delivery of the first answer ends before the exchange or after it.
"""


def alike(text: str) -> list[str]:
    """Return the lines of a text without what is drawn; stretches in which nothing happened are left out."""
    lines: list[str] = []
    for line in text.splitlines():
        for drawn, word in DRAWN:
            line = drawn.sub(word, line)  # noqa: PLW2901 - one replacement after the other
        if line.strip() and "┊" not in line:
            lines.append(line.strip())
    return lines


def commands(code: str) -> Iterator[tuple[list[str], str]]:
    """Yield each command of a block, and what the page says that it prints."""
    for part in re.split(r"^\$ ", code, flags=re.MULTILINE)[1:]:
        typed, _, printed = part.partition("\n")
        yield shlex.split(typed), printed


def is_shown(shown: list[str], printed: list[str]) -> bool:
    """Whether the lines on the page are those that were printed, in order; a line `…` stands for any."""
    cuts = [at for at, line in enumerate(shown) if line == CUT]
    if not cuts:
        return shown == printed
    head, rest = shown[: cuts[0]], shown[cuts[0] + 1 :]
    if printed[: len(head)] != head:
        return False
    return any(is_shown(rest, printed[at:]) for at in range(len(head), len(printed) + 1)) or not rest


@pytest.mark.clause("WHY-2", "ORIGIN-1", "LENS-1", "DIFF-1", "FIND-2")
def test_the_tutorial_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, object] = {"__name__": "__main__"}
    now: dict[str, str] = {}
    seen: set[str] = set()

    def real_id(on_page: re.Match[str]) -> str:
        return now[on_page[0]]

    with contextlib.chdir(tmp_path):
        for block in BLOCK.finditer(PAGE.read_text(encoding="utf-8")):
            if block["language"] == "python":
                with contextlib.redirect_stdout(None):
                    exec(block["code"], namespace)  # noqa: S102 - the page's own code is what is tested
                continue
            for (program, *given), shown in commands(block["code"]):
                if program == "export":
                    monkeypatch.setenv(*given[0].split("=", 1))
                    continue
                assert program == "intersession"
                command = [SHORT.sub(real_id, word) for word in given]
                printed = ran(*command)
                assert printed.err == ""
                assert is_shown(alike(shown), alike(printed.out)), f"$ {' '.join(command)}\n{printed.out}"
                ids = zip(UUID.findall(shown), UUID.findall(printed.out), strict=False)
                now.update({page[:8]: real[:8] for page, real in ids} if command[0] == "runs" else {})
                seen.add(command[0])
    assert {"why", "show", "lens", "origin", "deliveries", "messages", "search", "smells", "diff"} <= seen


def test_what_a_page_shows_otherwise_is_found() -> None:
    printed = alike("#1 a\nb\nc 2026-01-01\nd")
    assert is_shown(alike("#7 a\n…\nd"), printed)
    assert is_shown(alike("#7 a\n…"), printed)
    assert is_shown(alike("#7 a\nb\nc 2026-11-22\nd"), printed)
    for other in ("a\nb", "#7 a\n…\nc 2026-11-22", "…\nx\n…", "#7 a\nb\nx\nd"):
        assert not is_shown(alike(other), printed)

"""Whatever people and models wrote is shown and not obeyed: in text, in tables and in JSON."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from intersession.cli.host.reading import folding
from intersession.cli.shell.run import main
from intersession.cli.shell.terminal import Screen, json_text, one_line, safe, shown
from intersession_events.facts import TextBlock, ToolCallBlock
from support.doors.command_line import DemoLog, Ran, ran
from support.hostile import given as given_of
from support.hostile import row_id, rows, steers
from support.story import MAIN, PERSON, Story

HOSTILE = rows("R")


@pytest.fixture
def hostile_log(tmp_path: Path) -> Path:
    """Return a log in which everything that can be said is said with every hostile row."""
    path = tmp_path / "hostile.db"
    story = Story(path)
    story.open(label="".join(str(given_of(row)) for row in HOSTILE))
    for row in HOSTILE:
        text = str(given_of(row))
        story.say(MAIN, text, provenance=PERSON)
        call = ToolCallBlock(id=f"c{row['id']}", name="tool", arguments=json.dumps({"text": text}))
        story.say(MAIN, (TextBlock(text=text), call), role="assistant")
        story.say(MAIN, text, role="toolResult", tool_name=text)
    story.close()
    return path


@pytest.mark.parametrize(
    "command",
    [
        ("sessions",),
        ("sessions", "--messages", "20"),
        ("history", "main", "--tools"),
        ("history", "main", "--raw"),
        ("replay", "main"),
        ("replay", "main", "--tools"),
        ("replay", "main", "--steps"),
        ("search", "echo", "--limit", "1000"),
        ("search", "a*", "--limit", "1000"),
        ("history", "main", "--tools", "--json"),
        ("replay", "main", "--steps", "--json"),
    ],
    ids=" ".join,
)
def test_hostile_words_come_out_of_a_command_as_escapes(hostile_log: Path, command: tuple[str, ...]) -> None:
    done = ran(*command, "--store", hostile_log)

    assert (done.exit_code, done.err) == (0, "")
    assert steers(done.out) == []


@pytest.mark.parametrize("row", HOSTILE, ids=row_id)
def test_a_hostile_row_is_readable_in_a_replay(hostile_log: Path, row: dict[str, Any]) -> None:
    done = ran("replay", "main", "--tools", "--store", hostile_log)

    for line in shown(str(given_of(row))).split("\n"):
        assert line in done.out


def test_json_keeps_the_words_as_they_were(hostile_log: Path) -> None:
    messages = ran("history", "main", "--json", "--store", hostile_log).json["messages"]

    said = {message["content"] for message in messages if message["role"] == "user"}
    assert said == {given_of(row) for row in HOSTILE}


def test_an_error_that_quotes_a_hostile_word_is_inert_too(hostile_log: Path) -> None:
    for word in ("\x1b[31mred", "agent:main:\x9b31m", "--\x1b]0;title\x07"):
        done = ran("replay", word, "--store", hostile_log)

        assert done.exit_code in {1, 2}
        assert steers(done.err) == []


def test_markup_in_words_is_no_markup() -> None:
    out = io.StringIO()

    Screen(out, io.StringIO()).line("[bold red]no[/] :smile: [link=http://evil]x[/link]")

    assert out.getvalue() == "[bold red]no[/] :smile: [link=http://evil]x[/link]\n"


def test_spaces_of_all_widths_and_letters_of_all_scripts_stay_readable() -> None:
    assert shown("東京\u3000さくら\xa0été — ok\n\t한국어") == "東京\u3000さくら\xa0été — ok\n\t한국어"


@settings(max_examples=25)
@given(st.text(max_size=30))
def test_what_is_shown_never_steers_a_terminal(text: str) -> None:
    assert [character for character in steers(shown(text)) if character != "\t"] == []
    assert "\n" not in one_line(text)
    assert steers(safe(one_line(text)).plain) == []


@settings(max_examples=25)
@given(
    value=st.dictionaries(st.text(), st.text() | st.lists(st.text() | st.integers() | st.none())),
    encoding=st.sampled_from(["utf-8", "latin-1", None]),
)
def test_json_is_inert_and_says_the_same(value: Any, encoding: str | None) -> None:
    text = json_text(value, encoding)

    assert steers(text) == []
    assert json.loads(text) == value
    text.encode(encoding or "ascii")


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None)),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.text(st.characters(codec=None)), parts, max_size=3)
    ),
    max_leaves=8,
)


@given(ANYTHING, st.sampled_from(["utf-8", "latin-1"]))
def test_json_is_what_python_makes_of_it_but_for_what_steers_a_terminal(value: Any, encoding: str) -> None:
    made = json.dumps(value, ensure_ascii=encoding != "utf-8", indent=2)
    escaped = "".join(sign if sign.isprintable() or sign == "\n" else json.dumps(sign)[1:-1] for sign in made)

    assert json_text(value, encoding) == escaped


def test_a_pipe_gets_neither_colours_nor_padding_nor_wrapped_lines(hostile_log: Path) -> None:
    done: Ran = ran("sessions", "--store", hostile_log)

    assert "\x1b" not in done.out
    assert all(line == line.rstrip() for line in done.out.splitlines())


class FakeTerminal(io.StringIO):
    """A terminal that keeps what it is given."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> FakeTerminal:
    """Return a terminal of 60 characters without colours."""
    for name, value in {"COLUMNS": "60", "LINES": "20", "TERM": "dumb"}.items():
        monkeypatch.setenv(name, value)
    return FakeTerminal()


ON_A_TERMINAL = [
    ("--help",),
    ("runs", "--help"),
    ("--version",),
    ("sessions",),
    ("history", "main"),
    ("runs",),
    ("messages",),
    ("replay", "main"),
    ("verify",),
    ("doctor",),
    ("replay", "nobody"),
    ("runs", "--limit", "0"),
]


@pytest.mark.parametrize("no_color", [True, False])
def test_no_color_leaves_no_escape_at_all(
    demo_log: DemoLog, monkeypatch: pytest.MonkeyPatch, *, no_color: bool
) -> None:
    """Before: `NO_COLOR` left bold, and help and progress had escapes of their own."""
    monkeypatch.setenv("INTERSESSION_STORE", str(demo_log.path))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1" if no_color else "")
    styled = []
    for command in ON_A_TERMINAL:
        out, err = FakeTerminal(), FakeTerminal()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main(command)
        assert out.getvalue() or err.getvalue(), command
        if "\x1b" in out.getvalue() + err.getvalue():
            styled.append(command)

    assert (styled == []) == no_color


def test_the_bar_of_views_that_are_built_anew_is_gone_once_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log stays open, and what it is asked for is shown meanwhile."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = FakeTerminal()

    with contextlib.redirect_stderr(terminal), folding() as moved:
        moved(500, 1000)
        moved(1000, 1000)
        terminal.write("the answer")

    assert 0 <= terminal.getvalue().rfind("Building the views anew") < terminal.getvalue().find("the answer")


def test_a_table_that_has_no_room_becomes_a_paragraph_for_each_row(narrow: FakeTerminal) -> None:
    screen = Screen(narrow, io.StringIO())

    screen.table(["id", "how it stands"], [("short", "fits"), ("x", "so it does")])
    screen.table(["id", "how it stands"], [("i" * 36, "word " * 12), ("j" * 36, "done")])

    table, paragraphs = narrow.getvalue().splitlines()[:3], narrow.getvalue().splitlines()[3:]
    assert [line.rstrip() for line in table] == ["id     how it stands", "short  fits", "x      so it does"]
    assert [line.split(" ")[0] for line in paragraphs] == ["i" * 36, "", "j" * 36]
    assert paragraphs[1].startswith("    word")
    assert all(len(line) <= 60 for line in paragraphs)


def test_a_long_text_is_indented_on_every_line_of_a_terminal(narrow: FakeTerminal) -> None:
    Screen(narrow, io.StringIO()).indented("word " * 20 + "\nnext", 6)

    lines = narrow.getvalue().splitlines()
    assert [line.strip() for line in lines][-1] == "next"
    assert all(line.startswith("      ") and len(line.rstrip()) <= 60 for line in lines)
    assert " ".join(lines).split() == ["word"] * 20 + ["next"]


def test_a_narrow_terminal_is_told_as_much_as_a_usual_one(
    narrow: FakeTerminal, demo_log: DemoLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 40 columns `why` cut what would have been otherwise, `origin` the words, and a place its position (issue 10)."""
    Screen(narrow, io.StringIO()).one_line("word " * 30)
    lines = narrow.getvalue().splitlines()
    assert len(" ".join(lines).split()) == 16
    assert [line[:4].strip() for line in lines] == ["word", ""]
    assert lines[-1].endswith("…")

    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("INTERSESSION_STORE", str(demo_log.path))
    for command, said in (
        (
            ("why", demo_log.exchange),
            "otherwise: a higher limit, up to 5; at 5, another sessions_send goes on",
        ),
        (("show", demo_log.exchange), f"are done, announced #{demo_log.closed}"),
        (("origin", "3.5 tonnes"), "research says: Up to 3.5 tonnes."),
    ):
        terminal = FakeTerminal()
        with contextlib.redirect_stdout(terminal):
            assert main(command) == 0
        assert said in " ".join(terminal.getvalue().split())


def test_what_is_to_be_copied_is_never_broken(narrow: FakeTerminal) -> None:
    Screen(narrow, io.StringIO()).to_copy("more: --cursor ", "x" * 100)

    assert narrow.getvalue() == f"more: --cursor {'x' * 100}\n"

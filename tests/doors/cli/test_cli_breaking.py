"""Lines of plain characters are broken where rich breaks them."""

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.text import Text

from intersession.cli.shell.output import broken

CONSOLE = Console(width=200)
WORDS = st.lists(st.text("ab←…", min_size=1, max_size=30), min_size=1, max_size=12)


@given(WORDS, st.lists(st.integers(1, 3), min_size=12, max_size=12), st.integers(4, 40))
def test_a_line_is_broken_where_rich_breaks_it(words: list[str], gaps: list[int], room: int) -> None:
    line = "".join(word + " " * gap for word, gap in zip(words, gaps, strict=False)).rstrip()
    parts = broken(line, room)

    assert all(part and part == part.strip() and len(part) <= room for part in parts)
    assert "".join(parts).replace(" ", "") == line.replace(" ", "")
    if max(map(len, words)) <= room:
        # Behind a word that it cut, rich may begin a line with spaces.
        assert parts == [part.plain.rstrip() for part in Text(line).wrap(CONSOLE, room)]


def test_spaces_at_the_ends_are_left_out_and_nothing_stays_one_line() -> None:
    assert broken("  one two  ", 7) == ["one two"]
    assert broken("", 7) == [""]
    assert broken("       ", 4) == [""]

"""Prints beats for people: a conversation, with positions, causes and times beside it."""

import json
from collections.abc import Iterable

from rich.text import Text

from intersession.cli.shell import Screen, clock, day, one_line, safe
from intersession.cli.story.beat import Beat
from intersession.cli.story.names import Names
from intersession_projections.timeline import Step

_INDENT = 6
_TOOL_TEXT = 160


class BeatPrinter:
    """Prints one story, beat after beat.

    `whole` leaves nothing out of what tools were given and gave. `today` is the day that was said already.
    """

    def __init__(self, screen: Screen, names: Names, *, whole: bool = False, today: str = "") -> None:
        self._screen = screen
        self._names = names
        self._whole = whole
        self._day = today

    def print_all(self, beats: Iterable[Beat]) -> None:
        """Print beats in order."""
        for beat in beats:
            self.print(beat)

    def print(self, beat: Beat) -> None:
        """Print the next beat."""
        self._new_day(beat)
        match beat.kind:
            case "said":
                self._screen.line()
                self._head(beat)
                self._text(beat, "")
            case "tool" if not self._whole:
                text = one_line(_compact(beat.text or ""), _TOOL_TEXT)
                self._head(beat, f" {text}")
            case "tool" | "note":
                self._head(beat)
                self._text(beat, "dim")
            case "end":
                self._screen.line()
                self._head(beat)

    def _head(self, beat: Beat, tail: str = "") -> None:
        styled = self._screen.styled
        parts = [styled(f"#{beat.position:<{_INDENT - 2}} ", "dim")]
        who = beat.writer or beat.who
        if who is not None:
            parts.append(self._name(who))
            if beat.to is not None:
                parts += [" → ", self._name(beat.to)]
            parts.append(" " if beat.to is None else " · ")
        parts.append(styled(beat.how, "bold" if beat.kind == "end" else ""))
        if tail:
            parts.append(styled(tail, "dim"))
        because = "" if beat.cause is None else f"  ← #{beat.cause}"
        parts.append(styled(f"  {clock(beat.time)}{because}", "dim"))
        self._screen.line(*parts)

    def _text(self, beat: Beat, style: str) -> None:
        if beat.text is not None:
            self._screen.indented(self._screen.styled(beat.text, style), _INDENT)

    def _name(self, name: str) -> str | Text:
        return self._screen.styled(self._names.of(name), self._names.style(name))

    def _new_day(self, beat: Beat) -> None:
        today = day(beat.time)
        if today != self._day:
            self._day = today
            self._screen.line()
            self._screen.line(safe(f"{today} (times are UTC)", "dim"))


def _compact(text: str) -> str:
    """Return JSON on one line, and other text as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def names_in(told: Iterable[Beat] | Iterable[Step], called: Names) -> Names:
    """Return the names of all that take part, as they are called."""
    return Names(dict.fromkeys(name for one in told for name in (one.who, one.to)), called.of)


def show_legend(screen: Screen, names: Names) -> None:
    """Say what the short names stand for."""
    parts: list[Text] = []
    for short, name in names.legend:
        parts += [safe(", " if parts else "  "), safe(short, names.style(name)), safe(f" is {name}", "dim")]
    if parts:
        screen.line(*parts)

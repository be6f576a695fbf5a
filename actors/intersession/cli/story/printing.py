"""Prints stories and messages for people: beats of a conversation, and messages of a transcript as they are."""

import json
from collections.abc import Iterable

from rich.text import Text

from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import clock, day, moment
from intersession.cli.story.names import Names
from intersession.cli.story.telling import Beat
from intersession_events.basics.plain_json import JsonMapping, is_object
from intersession_events.facts.message_words import BY_METHOD, person
from intersession_events.facts.reasons import counted
from intersession_projections.basics.speakers import OPENCLAW, begins_as_openclaws
from intersession_projections.questions.timeline.steps import Step

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
            self._screen.dim(f"{today} (times are UTC)")


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


_INTERNAL = "the system"
_LINES = 5
_CHARACTERS = 400


def show_message(screen: Screen, message: JsonMapping, *, indent: int = 0, briefly: bool = False) -> None:
    """Show one message: a line on who and when, then its words. `briefly` shows how the answer of a tool begins."""
    said_at = screen.styled(f"  {_when(message)}", "dim")
    screen.line(" " * indent, screen.styled(speaker(message), "bold cyan"), said_at)
    for text, style in parts(message):
        cut = _beginning(text) if briefly and message.get("role") == "toolResult" else text
        screen.indented(screen.styled(cut, style), indent + 4)
        if cut != text:
            left = counted(len(text) - len(cut), "more character")
            screen.indented(safe(f"… {left} (--json has all)", "dim"), indent + 4)


def _beginning(text: str) -> str:
    """Return the first lines of a text; all of it, where that is little more."""
    cut = "\n".join(text.split("\n")[:_LINES])[:_CHARACTERS]
    return text if len(text) - len(cut) <= _CHARACTERS // 4 else cut


def speaker(message: JsonMapping) -> str:
    """Return who says it, in words."""
    role, origin = message.get("role"), message.get("provenance")
    if role == "assistant":
        # What no run of it made was put there (`chat.inject`); logs of before do not say by whom.
        is_injected = is_object(origin) and origin.get("kind") == "internal_system"
        return f"agent, in the words of {_writer(origin)}" if is_injected and is_object(origin) else "agent"
    if role == "toolResult":
        return f"tool {message.get('toolName') or ''}".rstrip()
    if role == "user" and _is_openclaws(message, origin):
        return OPENCLAW
    if not is_object(origin):
        return str(role)
    match origin.get("kind"):
        case "external_user":
            who, channel = person(origin.get("sender"), origin.get("senderName")), origin.get("sourceChannel")
            if origin.get("sender") is None and channel == BY_METHOD:
                return BY_METHOD
            if origin.get("sender") is None and channel is not None:
                return f"{who} ({channel}; the log does not say who)"
            return who if channel is None else f"{who} ({channel})"
        case "inter_session":
            key, is_ours = origin.get("sourceSessionKey"), "exchangeId" in origin or "hops" in origin
            if key is None and is_ours and "sourceTool" in origin:
                return BY_METHOD
            return f"session {key or '?'}"
        case _:
            return _INTERNAL


def _is_openclaws(message: JsonMapping, origin: object) -> bool:
    """Whether it is of an import, where only its beginning tells that OpenClaw itself said it."""
    as_sent = is_object(origin) and origin.get("sourceTool") == "sessions_send" and "exchangeId" not in origin
    (text, _), *_ = parts(message)
    return (origin is None or as_sent) and begins_as_openclaws(text)


def _writer(origin: JsonMapping) -> str:
    return str(origin.get("editedBy") or origin.get("sourceChannel") or BY_METHOD)


def parts(message: JsonMapping) -> list[tuple[str, str]]:
    """Return the texts of a message, each with the style it is shown in."""
    content = message.get("content")
    if isinstance(content, str):
        return [(content, "")]
    shown = [_part(block) for block in content or () if is_object(block)]
    return shown or [("(nothing)", "dim")]


def _part(block: JsonMapping) -> tuple[str, str]:
    match block.get("type"):
        case "text":
            return str(block.get("text", "")), ""
        case "thinking":
            return f"(thinks) {block.get('thinking', '')}", "dim italic"
        case "toolCall":
            given = block.get("arguments", {})
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            return one_line(f"calls {block.get('name', '')} {text}"), "yellow"
        case _:
            return f"({block.get('type')})", "dim"


def _when(message: JsonMapping) -> str:
    time = message.get("timestamp")
    return moment(time) if isinstance(time, int) else ""

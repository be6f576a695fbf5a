"""What the report of a bundle quotes of the entries beside its events: answer, receipts, settings and the like, as markup."""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

import msgspec

from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object
from intersession_events.basics.printable import printable
from intersession_events.basics.times import moment

_LONGEST: Final = 20_000
_MOST_ASKED: Final = 200
_MOST_SETTINGS: Final = 300


class Beside:
    """The entries of the bundle beside its events, as far as they are there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.drawn = self._text("run.svg")
        """A drawing of ours, whose texts are escaped."""

    def _text(self, name: str) -> str:
        path = self._folder / name
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def shown(self, name: str) -> list[str]:
        """Return what an entry holds, to be read; nothing if it holds nothing."""
        text = self._text(name)
        if not text or _is_empty(msgspec.json.decode(text)):
            return []
        shown, left = cut(text, _LONGEST)
        rest = f'<p class="more">{left:,} more characters in <code>{name}</code>.</p>' if left else ""
        return [f"<pre>{safe(shown)}</pre>{rest}"]

    def settings(self) -> list[str]:
        """Return the settings, one a line, without those that are empty."""
        text = self._text("settings.json")
        said: JsonObject = msgspec.json.decode(text) if text else {}
        lines = list(_flat(said.get("settings")))
        if not lines:
            return []
        rows = "\n".join(safe(line) for line in lines[:_MOST_SETTINGS])
        rest = more(len(lines) - _MOST_SETTINGS, "settings", "settings.json")
        return [f'<pre class="columns">{rows}</pre>{rest}']

    def asked(self) -> list[str]:
        """Return the receipts of calls that asked for these sessions, a row each."""
        found: list[JsonObject] = [
            msgspec.json.decode(line) for line in self._text("questions.jsonl").splitlines()
        ]
        receipts = [one for one in found if is_object(one.get("receipt"))]
        if not receipts:
            return []
        rest = more(len(receipts) - _MOST_ASKED, "rows", "questions.jsonl")
        return [*table(_HEADS, map(_row, receipts[:_MOST_ASKED])), rest]


_HEADS: Final = ("At", "Who", "What", "Arguments", "Answered", "Proven")


def _row(one: JsonObject) -> str:
    receipt = one["receipt"]
    answered = f"{receipt.get('allowed', 0)} allowed, {receipt.get('deniedCount', 0)} denied"
    at = f"#{one.get('position')} {moment(one['timeMs'])}"
    cells = (str(one.get("who")), str(receipt.get("tool", "")), str(receipt.get("filters", "")), answered)
    proven = "yes" if one.get("isProven") else "no, its event is elsewhere in the log"
    parts = "".join(
        f'<td class="brief" data-is="{head}">{safe(cut(cell, 1000)[0])}</td>'
        for head, cell in zip(_HEADS[1:], (*cells, proven), strict=True)
    )
    return f'<tr><td class="at">{safe(at)}</td>{parts}</tr>\n'


def _is_empty(value: JsonValue) -> bool:
    if is_object(value):
        return all(map(_is_empty, value.values()))
    return all(map(_is_empty, value)) if is_list(value) else not value


def _flat(value: JsonValue, name: str = "") -> Iterator[str]:
    if is_object(value):
        for key in sorted(value):
            yield from _flat(value[key], f"{name}.{key}" if name else key)
    elif value not in (None, "", []):
        yield f"{name} = {msgspec.json.encode(value).decode()}"


def safe(text: str) -> str:
    """Return a text as markup that does nothing."""
    return escape(printable(text))


def cut(text: str, most: int) -> tuple[str, int]:
    """Return the beginning of a text, and how many characters more it has."""
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)


def table(heads: Sequence[str], rows: Iterable[str], numbers: Sequence[str] = ()) -> Iterator[str]:
    """Yield a table of rows that are markup: columns with words, and behind them those of `numbers`."""
    named = "".join(f'<th scope="col">{head}</th>' for head in heads)
    named += "".join(f'<th scope="col" class="n">{head}</th>' for head in numbers)
    yield f'<div class="wide" tabindex="0"><table class="rows"><thead><tr>{named}</tr></thead><tbody>\n'
    yield from rows
    yield "</tbody></table></div>"


def more(count: int, what: str, file: str = "events.jsonl") -> str:
    """Return a paragraph that says where the rest of a list is; nothing where there is no rest."""
    return f'<p class="more">{count:,} more {what}: all are in <code>{file}</code>.</p>' if count > 0 else ""

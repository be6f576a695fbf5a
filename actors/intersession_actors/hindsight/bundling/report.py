"""The report of a bundle: one page of HTML that needs no script and no network, and can be printed (BUNDLE-25).

Every text of the log is escaped, and what could steer a reader or a terminal is shown as its escape.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple, TextIO

import msgspec

from intersession_actors.hindsight.bundling.editions import EDITIONS, WITHHELD
from intersession_actors.hindsight.bundling.report_beside import Beside, cut, more, safe, table
from intersession_actors.hindsight.bundling.report_parts import Entry, FirstRows, Reported, Used
from intersession_actors.hindsight.bundling.report_style import STYLE
from intersession_events.basics.plain_json import JsonObject
from intersession_events.basics.times import moment

_LONGEST: Final = 4000
"""Characters of a text in a report; all of it is in `events.jsonl`."""
_EVERYTHING: Final = 4_000_000
"""Characters of texts in a report; of those behind, beginnings of 200 each."""
_BRIEF: Final = 200
_COLOURS: Final = 6
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SHIELD: Final = (
    '<svg viewBox="0 0 20 20" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="2">'
    '<path d="M10 1.8 17 4v6c0 4-3 6.9-7 8.2C6 16.9 3 14 3 10V4z"/><path d="m6.8 10 2.4 2.4 4.2-4.6"/></svg>'
)


class ReportHead(NamedTuple):
    """What the report says beside the entries of the bundle: its question, of which log, up to where, and how far that is proven."""

    question: JsonObject
    log_id: str
    position: int
    events: int
    streams: int
    redacted: str | None = None
    covered: int = 0
    """The position of the checkpoint that proves it; 0 for none."""
    key: str | None = None
    """The id of the key that signed that checkpoint."""


def write_report(folder: Path, asked: ReportHead) -> None:
    """Write `report.html` of the other entries of a bundle, which lie in a folder.

    Raises:
        OSError: a file can't be read or written.
    """
    told = Reported()
    with (folder / "events.jsonl").open("rb") as lines:
        told.read(lines)
    with (folder / "report.html").open("w", encoding="utf-8", newline="\n") as page:
        _Page(told, asked, Beside(folder), page).write()


_Cells = Callable[[Entry], tuple[str, ...]]
"""Returns the cells of a row, each markup."""


class _Page:
    def __init__(self, told: Reported, asked: ReportHead, beside: Beside, page: TextIO) -> None:
        self._told = told
        self._asked = asked
        self._beside = beside
        self._page = page
        self._left = _EVERYTHING
        self._colours = {key: min(at, _COLOURS) for at, key in enumerate(told.sessions)}
        self._in_table = {entry.position for entry in told.events}

    def write(self) -> None:
        sections = [section for section in self._sections() if section[2]]
        title = _title(self._asked.question)
        put = self._page.write
        put(
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">'
            f"<title>{safe(title)}</title><style>{STYLE}</style></head><body>\n"
        )
        put(f"<header><h1>{safe(title)}</h1>{self._opening()}</header>\n")
        links = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in sections)
        put(f'<nav aria-label="Parts of the report"><ul>{links}</ul></nav>\n<main>\n')
        for name, heading, parts in sections:
            put(f'<section aria-labelledby="{name}"><h2 id="{name}">{heading}</h2>\n')
            for part in parts:
                put(part)
            put("</section>\n")
        put(
            '</main>\n<footer><p class="muted">Times are UTC. A number such as #12 is the position of an event in the log. The '
            "bundle's <code>README.txt</code> says what else is in it.</p></footer></body></html>\n"
        )

    def _opening(self) -> str:
        asked, told = self._asked, self._told
        until = f"{moment(told.began)} to {moment(told.ended)}" if told.began else "none"
        edition = (
            ""
            if asked.redacted is None
            else f"<dt>Edition</dt><dd>{safe(asked.redacted)}: {EDITIONS[asked.redacted]}</dd>"
        )
        return (
            f"{self._verdict()}<dl><dt>Log</dt><dd><code>{safe(asked.log_id)}</code>, up to #{asked.position}</dd>"
            f"<dt>In this bundle</dt><dd>{_many(asked.events, 'event')} of {_many(asked.streams, 'stream')}</dd>"
            f"<dt>From, to</dt><dd>{until}</dd>{edition}</dl>"
        )

    def _verdict(self) -> str:
        asked = self._asked
        if not asked.covered:
            said = "No checkpoint covers these events: each stream is chained by itself, and nothing proves that none is missing."
            return f'<div class="verdict open">{_SHIELD}<div><p><strong>Not proven by a checkpoint.</strong> {said}</p></div></div>'
        signed = (
            f"signed with the key <code>{safe(asked.key)}</code>"
            if asked.key
            else "not signed: it holds off plain SQL alone"
        )
        behind = (
            ""
            if asked.covered >= asked.position
            else f" What comes behind #{asked.covered} is chained, and no checkpoint covers it."
        )
        return (
            f'<div class="verdict">{_SHIELD}<div><p><strong>Part of the log up to its checkpoint of #{asked.covered}</strong>, '
            f"{signed}.{behind}</p><p>This page only says so. <code>python3 verify.py BUNDLE.zip</code> proves it, on any machine, "
            "with nothing installed.</p></div></div>"
        )

    def _sections(self) -> Iterator[tuple[str, str, Iterable[str]]]:
        told, asked, beside = self._told, self._asked, self._beside
        yield "asked", "What was asked", [_fields(asked.question)]
        yield "answer", "The answer", beside.shown("answer.json")
        yield "proven", "What is not proven", self._unproven()
        yield "people", "Who took part", self._taking_part() if told.sessions or told.people else []
        yield "diagram", "How it went", [f"<figure>{beside.drawn}</figure>"] if beside.drawn else []
        yield "said", "What was said", self._said() if told.said else []
        yield (
            "calls",
            "Tool calls",
            self._table(told.calls, ("Session", "Call", "Arguments", "Result"), self._call),
        )
        yield (
            "deliveries",
            "Deliveries",
            self._table(told.deliveries, ("From", "To", "State", "Text"), self._sent),
        )
        yield "used", "Tokens and money", self._used() if told.used else []
        yield "failures", "What failed", self._table(told.failures, ("Session", "How", "Error"), self._row)
        refused = list(self._table(told.refusals, ("Asked by", "What", "Refused"), self._row))
        yield "refusals", "Refusals", refused or beside.shown("refusals.json")
        erased = list(self._table(told.erasures, ("By", "Why", "What"), self._row))
        yield "erasures", "Erasures", erased or beside.shown("erasures.json")
        noted = list(self._table(told.notes, ("By", "About", "Note"), self._note))
        yield "notes", "Notes", noted or beside.shown("notes.json")
        yield "questions", "Who asked to see these sessions", beside.asked()
        yield "settings", "Settings in force", beside.settings()
        yield "events", "All events", self._events()

    def _unproven(self) -> list[str]:
        asked, told = self._asked, self._told
        said = [
            "That the events were true when they were written: they are what this system recorded.",
            "That other logs, channels or people have nothing else: the bundle is of this log alone.",
        ]
        if asked.covered and not asked.key:
            said.append(
                "That no attacker who can hash rewrote the log from the start: its checkpoint is not signed."
            )
        if asked.covered < asked.position:
            behind = f"what comes after #{asked.covered}" if asked.covered else "what is here"
            said.append(f"That {behind} is complete and in its order: no checkpoint covers it.")
        if told.withheld:
            total = sum(told.withheld.values())
            kinds = ", ".join(f"{count:,} {_KINDS[kind]}" for kind, count in sorted(told.withheld.items()))
            said.append(f"What {total:,} events say that this edition withholds ({kinds}).")
        return [f"<ul>{''.join(f'<li>{line}</li>' for line in said)}</ul>"]

    def _taking_part(self) -> Iterator[str]:
        told = self._told
        rows = [(name, "a person", count) for name, count in told.people.items()]
        rows += [
            (key, f"a session of agent {told.agents[key]}" if key in told.agents else "a session", count)
            for key, count in told.sessions.items()
        ]
        rows += [(place, "a channel", count) for place, count in told.places.items()]
        named = (
            f'<tr><td>{self._who(name)}</td><td>{safe(what)}</td><td class="n" data-is="Said">{count:,}</td></tr>'
            for name, what, count in rows[:_MOST_NAMED]
        )
        yield from table(("Who", "What"), named, ("Said",))
        yield more(len(rows) - _MOST_NAMED, "others")
        if told.between:
            yield "<h3>Who spoke to whom</h3>"
            yield from table(
                ("From", "To"), map(self._spoke, [*told.between.items()][:_MOST_NAMED]), ("Times",)
            )

    def _spoke(self, between: tuple[tuple[str, str], int]) -> str:
        (who, to), count = between
        to_whom = self._who(to) if to else '<span class="muted">its own transcript</span>'
        return f'<tr><td>{self._who(who)}</td><td data-is="to">{to_whom}</td><td class="n" data-is="Times">{count:,}</td></tr>'

    def _said(self) -> Iterator[str]:
        told = self._told
        yield '<ol class="talk">'
        for entry in told.said:
            kind, colour = self._kind(entry.who)
            to = f' <span class="muted">to</span> {self._who(entry.to)}' if entry.to else ""
            behalf = (
                f'<span class="muted">on behalf of {safe(told.called(entry.behalf))}</span>'
                if entry.behalf and entry.behalf != entry.who
                else ""
            )
            yield (
                f'<li class="{kind}{colour}"><div class="line">{self._who(entry.who)} <span class="muted">{safe(entry.how)}</span>{to} '
                f'{behalf}<span class="place">{self._place(entry)}</span></div><div class="words">{self._text(entry.text)}</div></li>\n'
            )
        yield "</ol>"
        yield _rest(told.said, "texts")

    def _table(self, rows: FirstRows, heads: Sequence[str], cells: _Cells) -> Iterable[str]:
        shown = self._rows(rows, heads, cells)
        return chain(table(("At", *heads), shown), [_rest(rows, "rows")]) if rows else []

    def _rows(self, rows: FirstRows, heads: Sequence[str], cells: _Cells) -> Iterator[str]:
        for entry in rows:
            parts = "".join(
                f'<td data-is="{head}"{_CLASS.get(head, "")}>{part}</td>' if part else "<td></td>"
                for head, part in zip(heads, cells(entry), strict=True)
            )
            yield f'<tr><td class="at">{self._place(entry)}</td>{parts}</tr>\n'

    def _call(self, entry: Entry) -> tuple[str, ...]:
        result = f'<div class="words mono">{self._text(entry.to)}</div>' if entry.to else ""
        return (
            self._who(entry.who),
            safe(entry.how),
            f'<div class="words mono">{self._text(entry.text)}</div>',
            result,
        )

    def _sent(self, entry: Entry) -> tuple[str, ...]:
        state = safe(entry.how) + (f" {self._link(entry.ended)}" if entry.ended else "")
        return (
            self._who(entry.who),
            self._who(entry.to),
            state,
            f'<div class="words">{self._text(entry.text)}</div>',
        )

    def _row(self, entry: Entry) -> tuple[str, ...]:
        return self._who(entry.who), safe(entry.how), f'<div class="words">{self._text(entry.text)}</div>'

    def _used(self) -> Iterator[str]:
        rows = map(self._used_row, [*self._told.used.items()][:_MOST_NAMED])
        return table(("Session", "Model"), rows, _USED)

    def _used_row(self, of: tuple[tuple[str, str], Used]) -> str:
        (key, model), used = of
        money = "not known" if used.cost_micros is None else f"{used.cost_micros / 1_000_000:,.6f}"
        counts = (f"{count:,}" for count in (used.answers, used.read, used.written, used.tokens))
        numbers = "".join(
            f'<td class="n" data-is="{head}">{value}</td>'
            for head, value in zip(_USED, (*counts, money), strict=True)
        )
        return f"<tr><td>{self._who(key)}</td><td>{safe(model)}</td>{numbers}</tr>"

    def _note(self, entry: Entry) -> tuple[str, ...]:
        return safe(entry.who), self._link(entry.ended), f'<div class="words">{self._text(entry.text)}</div>'

    def _events(self) -> Iterator[str]:
        heads = ("#", "When", "Event", "Who, and what", "Hash")
        yield from table(heads, map(self._event, self._told.events))
        yield _rest(self._told.events, "events")

    def _event(self, entry: Entry) -> str:
        who = " → ".join(safe(part) for part in (entry.who, entry.to) if part)
        text = self._text(cut(entry.text, _BRIEF)[0])
        withheld = f' <span class="gone">{_KINDS[entry.withheld]}</span>' if entry.withheld else ""
        return (
            f'<tr id="e{entry.position}"><td class="at">#{entry.position}</td><td class="when"><time>{moment(entry.time)}</time></td>'
            f'<td class="brief">{safe(entry.how)}{withheld}</td>'
            f"<td>{who}{'<br>' if who and text else ''}{text}</td><td><code>{safe(entry.hash)}</code></td></tr>\n"
        )

    def _kind(self, name: str) -> tuple[str, str]:
        if name in self._told.people or name in {"a person", *self._told.names.values()}:
            return "person", ""
        if name in self._told.places:
            return "channel", ""
        if ":subagent:" in name:
            return "sub", ""
        if name in self._colours:
            return "session", f" s{self._colours[name]}"
        return "other", ""

    def _who(self, name: str) -> str:
        if not name:
            return ""
        name = self._told.called(name)
        kind, colour = self._kind(name)
        short = name.split(":")[1] if name.startswith("agent:") and name.count(":") > 1 else name
        letter = next((character.upper() for character in short if character.isalnum()), "·")
        return f'<span class="who {kind}{colour}"><b aria-hidden="true">{safe(letter)}</b><span>{safe(name)}</span></span>'

    def _place(self, entry: Entry) -> str:
        return f"{self._link(entry.position)} <time>{moment(entry.time)}</time>"

    def _link(self, position: int) -> str:
        if position in self._in_table:
            return f'<a class="mono" href="#e{position}">#{position}</a>'
        return f'<span class="mono">#{position}</span>'

    def _text(self, text: str) -> str:
        """Return a text of somebody's as markup; of a long one, or of one behind very many, its beginning."""
        shown, left = cut(text, _LONGEST if self._left > 0 else _BRIEF)
        self._left -= len(shown)
        if WITHHELD in shown:
            return safe(shown).replace(WITHHELD, f'<span class="gone">{WITHHELD}</span>')
        rest = f' <span class="muted">… {left:,} more characters in events.jsonl</span>' if left else ""
        return f"{safe(shown)}{rest}"


_MOST_NAMED: Final = 200
_USED: Final = ("Answers", "Read", "Written", "Tokens", "Money")
_CLASS: Final = {"Call": ' class="brief"', "State": ' class="brief"', "What": ' class="brief"'}
_KINDS: Final = {"secrets": "secrets masked", "words": "words withheld", "person": "replaced"}


def _title(question: JsonObject) -> str:
    for name, said in (("run", "Run"), ("session", "Session"), ("person", "Person")):
        if isinstance(value := question.get(name), str):
            return f"{said} {value}"
    return "A whole log" if question.get("everything") else "Evidence out of a log"


def _fields(value: JsonObject) -> str:
    rows = "".join(
        f"<dt>{safe(name)}</dt><dd>{safe(part if isinstance(part, str) else msgspec.json.encode(part).decode())}</dd>"
        for name, part in value.items()
        if part is not None
    )
    return f"<dl>{rows}</dl>"


def _rest(rows: FirstRows, what: str) -> str:
    return more(rows.total - len(rows), what)


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"

"""`intersession diff`: the differences between two runs, or two places of one; and the changes between two places."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Final

from cyclopts import Parameter
from rich.text import Text

from intersession.cli.host.forks import in_fork
from intersession.cli.shell.answer import OK, READING, REFUSED, Answer, Reading
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import clock, duration
from intersession.cli.story.names import Names, names_of
from intersession.cli.story.printing import parts, speaker
from intersession.cli.time_travel.show import debugger_of
from intersession_actors.hindsight.debugger.diff import DiffAnswer, TurnAnswer
from intersession_actors.hindsight.debugger.state import Change
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_object


def diff(
    a: Annotated[
        str,
        Parameter(
            name="A", help="An exchange, a spawn or a run, by any name that is shown; or a place of one."
        ),
    ],
    b: Annotated[str, Parameter(name="B", help="What it is compared with.")],
    /,
    *,
    other: Annotated[
        str | None, Parameter(help="The log that B is in, a file or a URL. Default: the same one.")
    ] = None,
    exact: Annotated[bool, Parameter(help="Ids, times, positions and hashes count, too.")] = False,
    every: Annotated[bool, Parameter(name="--all", help="Show what is the same, too.")] = False,
    reading: Reading = READING,
) -> Answer:
    """Say what differs between two runs, or two places of one.

    They are laid side by side by structure: step by step, turn by turn, call by call. First comes where they part, then what
    changed ([-only in A-], {+only in B+}), then what came of them. What counts is what was meant: ids, times, positions and
    hashes are left out. Of a place (RUN@turn:1), a run is compared as far as there. The exit code is 1 where they differ.
    """
    in_a, named_a = in_fork(reading, a)
    in_b, named_b = in_fork(reading if other is None else replace(reading, store=other), b)
    with debugger_of(in_a) as debugger:
        if in_b.store == in_a.store:
            found = debugger.diff(named_a(a), named_b(b), exact=exact)
            names = names_of(debugger.view.log, found)
        else:
            with debugger_of(in_b) as of_b:
                found = debugger.diff(named_a(a), named_b(b), exact=exact, other=of_b)
                names = names_of(debugger.view.log, found, of_b.view.log)

    def show(screen: Screen) -> None:
        for line in difference_lines(found, names, every=every):
            screen.line(line)

    return Answer(dict(found), show, OK if found["same"] else REFUSED)


_SIGNS: Final = {"same": "  = ", "changed": "  ≠ ", "only_a": "  - ", "only_b": "  + "}
_STYLES: Final = {"same": "dim", "changed": "yellow", "only_a": "red", "only_b": "green", "both": ""}
_MARKS: Final = {"both": ("", ""), "a": ("[-", "-]"), "b": ("{+", "+}")}
_SIDES: Final = {"a": "red", "b": "green", "both": ""}
_QUIET: Final = frozenset(
    {"place", "who", "text", "state", "to", "purpose", "loop", "maxTurns", "announce", "model"}
)
"""What a part that only one side has is not asked about first."""
_SESSIONS: Final = frozenset({"who", "to"})
_LONGEST: Final = 160
_NAMED: Final = 4
"""The number of equal parts that are named; of more, the first and last."""
_AROUND: Final = 60
"""The number of equal characters shown before and after a changed word."""


def difference_lines(found: DiffAnswer, names: Names, *, every: bool = False) -> Iterator[Text]:
    """Yield lines for the differences; with `every`, for the common parts too. They can't steer a terminal."""
    for side in ("a", "b"):
        compared = found["a"] if side == "a" else found["b"]
        place = compared["place"]
        yield safe(f"{side}  {compared['kind']} {compared['run']}", _SIDES[side]) + safe(
            f"  {place['text']}  #{place['position']}", "dim"
        )
    yield Text()
    first = found["firstDivergence"]
    if first is None:
        yield safe("no difference", "bold")
    else:
        yield safe(f"first difference: {first['turn']}", "bold") + safe(
            f"  {_where(first['a'], 'a')}{_where(first['b'], 'b')}".rstrip(), "dim"
        )
    yield Text()
    yield from _turns(found["turns"], names, every=every)
    yield Text()
    yield from _totals(found["totals"])


def _where(place: object, side: str) -> str:
    return f"#{place['position']} in {side}  " if isinstance(place, dict) else ""


def _turns(turns: Iterable[TurnAnswer], names: Names, *, every: bool) -> Iterator[Text]:
    same: list[str] = []
    for turn in turns:
        if turn["kind"] == "same" and not every:
            same.append(turn["turn"])
            continue
        if same:
            yield _same(same)
            same = []
        yield from _turn(turn, names)
    if same:
        yield _same(same)


def _same(paths: list[str]) -> Text:
    named = (
        ", ".join(paths) if len(paths) <= _NAMED else f"{', '.join(paths[:2])} … {paths[-1]} ({len(paths)})"
    )
    return safe(f"{_SIGNS['same']}{one_line(named)}", "dim")


def _turn(turn: TurnAnswer, names: Names) -> Iterator[Text]:
    kind = turn["kind"]
    side = turn["a"] or turn["b"] or {}
    who = side.get("who")
    head = safe(f"{_SIGNS[kind]}{one_line(turn['turn'])}", _STYLES[kind])
    head.append_text(safe("" if not isinstance(who, str) else f"  {one_line(names.of(who))}", "bold"))
    if kind.startswith("only"):
        head.append_text(safe(f"  (only in {kind[-1]})", "dim"))
    yield head
    if kind != "changed":
        yield from _contents(side, _STYLES[kind])
        return
    for field in turn.get("differs", ()):
        if field["words"]:
            yield _marked(field)
        else:
            is_session = field["field"] in _SESSIONS
            a, b = (_brief(names.of(one) if is_session and one else one) for one in (field["a"], field["b"]))
            line = safe(f"      {field['field']}: ", "dim")
            line.append_text(safe(f"[-{a}-]", _SIDES["a"]))
            line.append_text(safe(f" {{+{b}+}}", _SIDES["b"]))
            yield line


def _contents(side: JsonObject, style: str) -> Iterator[Text]:
    said = side.get("text")
    if isinstance(said, str):
        yield safe(f"      {one_line(said, _LONGEST)}", style)
    for name, value in side.items():
        if name not in _QUIET and not (name == "status" and value == "ok"):
            yield safe(f"      {name}: {_brief(value)}", style)


def _marked(field: JsonObject) -> Text:
    """Return two texts as one: what only A has in [- -], what only B has in {+ +}."""
    line = safe(f"      {field['field']}: ", "dim")
    words = field["words"]
    for at, word in enumerate(words):
        before, behind = _MARKS[word["of"]]
        text = word["text"]
        if word["of"] == "both":
            text = _shortened(text, is_first=at == 0, is_last=at == len(words) - 1)
        line.append_text(safe(f"{before}{one_line(text, strip=False)}{behind}", _SIDES[word["of"]]))
    return line


def _shortened(text: str, *, is_first: bool, is_last: bool) -> str:
    most = _AROUND if is_first or is_last else 2 * _AROUND
    if len(text) <= most:
        return text
    before = "" if is_first else text[:_AROUND]
    behind = "" if is_last else text[-_AROUND:]
    return f"{before}…{behind}"


def _totals(totals: JsonObject) -> Iterator[Text]:
    a, b = totals["a"], totals["b"]
    rows = [(label, one, other) for (label, one), (_, other) in zip(_said(a), _said(b), strict=True)]
    width = max(len(one) for _, one, _ in rows)
    yield safe(f"  {'':8}{'a':{width}}  b", "bold")
    for label, one, other in rows:
        yield safe(f"  {label:8}{one:{width}}  {other}", "dim" if one == other else "")


def _said(totals: JsonObject) -> Iterator[tuple[str, str]]:
    yield "turns", str(totals["turns"])
    yield "loop", totals["loopEnd"] or "-"
    yield "end", totals["end"] or "open"
    yield "tokens", f"{totals['tokens']:,}"
    yield "cost", f"{totals['costMicros'] / 1_000_000:g}"
    yield "took", duration(totals["durationMs"]) + ("" if totals["end"] else " so far")
    yield "sent", ", ".join(f"{number} {state}" for state, number in totals["deliveries"].items()) or "-"


def _brief(value: JsonValue, longest: int = _LONGEST) -> str:
    if value is None:
        return "nothing"
    return one_line(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), longest)


def change_in_words(change: Change, names: Names) -> tuple[str, str]:
    """Return the change between two places: what changed, from and to which value, each on one line."""
    path = "/".join(part[:8] if _ID.fullmatch(part) else names.of(part) for part in change["path"].split("/"))
    is_time = path.endswith(_TIMES)
    return path, f"{_value(change['before'], is_time=is_time)} → {_value(change['after'], is_time=is_time)}"


_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_EARLIEST_MS: Final = 10**11
"""Numbers below are no time of any log: a duration, perhaps."""
_TIMES: Final = ("At", "Ms")
"""How the names of fields end that are times."""


def _value(value: JsonValue, *, is_time: bool) -> str:
    if is_time and isinstance(value, int) and value > _EARLIEST_MS:
        return clock(value)
    if is_object(value) and "role" in value and "content" in value:
        said = " ".join(text for text, _ in parts(value))
        return f"{speaker(value)}: {one_line(said, 60)}"
    return _brief(value, 60)

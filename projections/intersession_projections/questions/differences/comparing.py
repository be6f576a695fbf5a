"""What differs between two runs: part by part, and where they begin to differ. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal

import msgspec

from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object
from intersession_events.facts import without_measures
from intersession_projections.questions.differences.aligning import Pair, aligned
from intersession_projections.questions.differences.parts import Outline, Part
from intersession_projections.questions.differences.wording import Marked, marked

RowKind = Literal["same", "changed", "only_a", "only_b"]

_WITHHELD: Final = "withheld"
_SENT: Final = frozenset({_WITHHELD, "announced", "announce_failed", "announce_denied", "delivery_unknown"})
"""How exchanges and spawns end whose text was to be sent."""
_SHORTEST_ID: Final = 16
"""A shorter id could be a word that somebody said."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_MOMENTS: Final = frozenset(
    {"timestamp", "updatedAt", "startedAt", "endedAt", "position", "asOf", "cursor", "before"}
)
"""What answers of our own tools call times and places."""


class FieldDifference(msgspec.Struct, frozen=True, kw_only=True):
    """A field that differs; a side is None where it has none. `words` has two texts as one, word by word."""

    field: str
    a: JsonValue
    b: JsonValue
    words: tuple[Marked, ...] = ()


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A part of either run, or of both. `path` says which: `turn:2`, `reply/sessions_send:2/result`."""

    path: str
    kind: RowKind
    a: Part | None
    b: Part | None
    differs: tuple[FieldDifference, ...] = ()


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """All parts of two runs in structural order, and the one at which they begin to differ (None: nowhere)."""

    rows: tuple[Row, ...]
    first: Row | None

    @property
    def same(self) -> bool:
        """Whether nothing differs."""
        return self.first is None


def compare(a: Outline, b: Outline, *, exact: bool = False) -> Difference:
    """Return what differs between two runs. With `exact`, ids, times, positions, hashes and what was used count, too."""
    pairs = list(_paired(a.parts, b.parts, ""))
    sides = (_Exactly(), _Exactly()) if exact else _by_meaning(pairs, a, b)
    rows = tuple(
        _row(pair, sides, exact=exact)
        for pair in pairs
        if any(part is not None and part.fields for part in (pair.a, pair.b))
    )
    return Difference(rows=rows, first=_first(rows))


class _Paired(msgspec.Struct, frozen=True):
    path: str
    a: Part | None
    b: Part | None


def _paired(a: Sequence[Part], b: Sequence[Part], path: str) -> Iterator[_Paired]:
    pairs = list(aligned(a, b))
    names = [_name(pair) for pair in pairs]
    for at, (pair, name) in enumerate(zip(pairs, names, strict=True)):
        number = names[: at + 1].count(name)
        here = f"{path}{name}" + (f":{number}" if names.count(name) > 1 else "")
        old, new = pair
        yield _Paired(here, old, new)
        yield from _paired(() if old is None else old.parts, () if new is None else new.parts, f"{here}/")


def _name(pair: Pair) -> str:
    return next(part.name for part in pair if part is not None)


class _Exactly:
    """Values as they are."""

    def value(self, value: JsonValue, *, ours: bool) -> JsonValue:
        del ours
        return value

    def session(self, key: str | None, *, role: bool) -> str | None:
        del role
        return key


class _ByMeaning:
    """Values with names of parts in place of the ids that were derived for them, and roles in place of sessions."""

    def __init__(self, names: Mapping[str, str], lanes: Mapping[str, str]) -> None:
        self._names = names
        self._lanes = lanes
        whole = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        self._known = re.compile(whole) if whole else None

    def value(self, value: JsonValue, *, ours: bool) -> JsonValue:
        """Return a value; of an answer of our `ours` tools, without times, places, and ids of what is not in the run."""
        if isinstance(value, str):
            named = without_measures(value)
            if self._known is not None:
                named = self._known.sub(lambda found: self._names[found[0]], named)
            return _UUID.sub("<id>", named) if ours else named
        if is_object(value):
            return {
                name: self.value(inner, ours=ours)
                for name, inner in value.items()
                if not (ours and name in _MOMENTS)
            }
        if is_list(value):
            return [self.value(inner, ours=ours) for inner in value]
        return value

    def session(self, key: str | None, *, role: bool) -> str | None:
        """Return a session by its part in the run; else (`role` false, or none) as what was derived, or as itself."""
        if key is None:
            return None
        return (self._lanes.get(key) if role else None) or self._names.get(key, key)


_Side = _Exactly | _ByMeaning


def _by_meaning(pairs: Sequence[_Paired], a: Outline, b: Outline) -> tuple[_Side, _Side]:
    """Give ids of parts that belong together one name: these stand for the same."""
    names: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for number, pair in enumerate(pairs):
        for part, of_side in zip((pair.a, pair.b), names, strict=True):
            for role, name in () if part is None else part.ids.items():
                if len(name) >= _SHORTEST_ID:
                    of_side.setdefault(name, f"<{role} {number}>")
    return _ByMeaning(names[0], a.lanes), _ByMeaning(names[1], b.lanes)


def _row(pair: _Paired, sides: tuple[_Side, _Side], *, exact: bool) -> Row:
    a, b = pair.a, pair.b
    if a is None or b is None:
        return Row(path=pair.path, kind="only_a" if b is None else "only_b", a=a, b=b)
    # The requester and the target are said where a run starts. From there on it is the same one who speaks.
    differs = tuple(_differing(a, b, sides, exact=exact, role=pair.path != "start"))
    return Row(path=pair.path, kind="changed" if differs else "same", a=a, b=b, differs=differs)


def _differing(
    a: Part, b: Part, sides: tuple[_Side, _Side], *, exact: bool, role: bool
) -> Iterator[FieldDifference]:
    first, second = sides
    for name in dict.fromkeys((*a.sessions, *b.sessions)):
        old, new = a.sessions.get(name), b.sessions.get(name)
        if first.session(old, role=role) != second.session(new, role=role):
            yield FieldDifference(field=name, a=old, b=new)
    sealed = _is_withheld("reason", a.fields.get("reason"), b.fields.get("reason"))
    for name in dict.fromkeys((*a.fields, *b.fields)):
        before, after = a.fields.get(name), b.fields.get(name)
        if _is_withheld(name, before, after) or (sealed and name == "note"):
            continue
        ours = _is_ours(a) and _is_ours(b)
        if first.value(before, ours=ours) != second.value(after, ours=ours):
            words = marked(before, after) if isinstance(before, str) and isinstance(after, str) else ()
            yield FieldDifference(field=name, a=before, b=after, words=words)
    for name, value in _EXACT.items() if exact else ():
        was, now = value(a), value(b)
        if was != now:
            yield FieldDifference(field=name, a=was, b=now)


def _is_withheld(name: str, before: JsonValue, after: JsonValue) -> bool:
    """Whether two fields differ by nothing but that a fork sends nothing: that is no other outcome."""
    if not isinstance(before, str) or not isinstance(after, str) or _WITHHELD not in {before, after}:
        return False
    return name == "state" or (name == "reason" and {before, after} <= _SENT)


def _is_ours(part: Part) -> bool:
    return part.name == "result" and part.likeness.startswith("sessions_")


_EXACT: Final[Mapping[str, Callable[[Part], JsonValue]]] = {
    "ids": lambda part: dict(part.ids),
    "eventIds": lambda part: [recorded.id for recorded in part.events],
    "times": lambda part: [recorded.time for recorded in part.events],
    "positions": lambda part: [recorded.position for recorded in part.events],
    "hashes": lambda part: [recorded.hash for recorded in part.events],
}


def _first(rows: Sequence[Row]) -> Row | None:
    """Return where two runs begin to differ, as time went in each of them: what a turn calls comes before what it says."""
    of_a = _earliest(rows, lambda row: row.a)
    of_b = _earliest(rows, lambda row: row.b)
    if of_a is None or of_b is None:
        return of_a or of_b
    after_a, after_b = (
        _same_before(rows, of_a, lambda row: row.a),
        _same_before(rows, of_b, lambda row: row.b),
    )
    if after_a != after_b:
        return of_a if after_a < after_b else of_b
    # What both have come to by then differs later than what only one has.
    return min(of_a, of_b, key=lambda row: (row.kind == "changed", row.path, _text(row.a or row.b)))


_Of = Callable[[Row], Part | None]


def _earliest(rows: Sequence[Row], side: _Of) -> Row | None:
    found = [(part.position, row) for row in rows if row.kind != "same" and (part := side(row)) is not None]
    return min(found, key=lambda one: one[0], default=(0, None))[1]


def _same_before(rows: Sequence[Row], first: Row, side: _Of) -> int:
    until = side(first)
    return sum(
        row.kind == "same" and until is not None and part.position < until.position
        for row in rows
        if (part := side(row)) is not None
    )


def _text(part: Part | None) -> str:
    fields: JsonObject = {} if part is None else dict(part.fields)
    return msgspec.json.encode(fields, order="sorted").decode()

"""Finds where a transcript was taken back, and where it was reset."""

from typing import Final

from intersession_events.transcripts.openclaw.reading.foreign_json import Unreadable, a_text, read_object

PENDING: Final = "pending_input"
"""The kind of a line that stands for an input that no run has taken."""


def abandoned(lines: list[tuple[int, bytes]]) -> frozenset[int]:
    """Return the numbers of the lines that the last line does not follow from: somebody took the session back before them.

    Entries name the one they follow. A `leaf` names the one that the next entries follow; without one, all follow.
    """
    if not any(b'"leaf"' in line for _, line in lines):
        return frozenset()
    entries = dict[str, tuple[int, str | None]]()
    last: str | None = None
    for number, line in lines:
        try:
            values, _ = read_object(line)
        except Unreadable:
            continue
        entry_id = a_text(values.get("id"))
        if entry_id is None or values.get("type") in {"session", PENDING}:
            continue
        entries[entry_id] = number, a_text(values.get("parentId"))
        last = a_text(values.get("targetId")) if values.get("type") == "leaf" else entry_id
    followed: set[int] = set()
    while last in entries and entries[last][0] not in followed:
        number, last = entries[last]
        followed.add(number)
    # Where an entry follows one that is not here, nothing is known of those before it.
    first = min(followed, default=0) if last is not None else 0
    return frozenset(number for number, _ in entries.values() if number > first and number not in followed)


def reset_of(line: bytes) -> str | None:
    """Return the entry id of a line that says that the session begins anew."""
    if b'"reset"' not in line:
        return None
    try:
        values, _ = read_object(line)
    except Unreadable:
        return None
    return a_text(values.get("id")) if values.get("type") == "reset" else None

"""Finds events by their ids, of which the beginning may be given."""

from typing import Final

from intersession_events.log import Log, Recorded, of_id

_MOST: Final = 32


def events_with_id(log: Log, beginning: str) -> list[Recorded]:
    """Return the events whose ids begin with a text, in log order; never very many."""
    condition, parameters = of_id(beginning)
    rows = log.query(
        f"SELECT rowid FROM stored_events WHERE {condition} ORDER BY rowid LIMIT ?",  # noqa: S608 - the log's own words
        (*parameters, _MOST),
    )
    # Other ids stand in a row in the same words: what was found is looked at again.
    found = (recorded for (position,) in rows for recorded in log.all(after=position - 1, to=position))
    return [recorded for recorded in found if recorded.id.startswith(beginning)]

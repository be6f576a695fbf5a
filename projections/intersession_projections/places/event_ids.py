"""Finds events by their ids, of which the beginning may be given. It looks at the envelopes, for the log keeps no index of ids."""

from typing import Final

from intersession_events.log import Log, Recorded

_MOST: Final = 32
_FIND: Final = "SELECT rowid FROM stored_events WHERE instr(state, ?) > 0 ORDER BY rowid LIMIT ?"


def events_with_id(log: Log, beginning: str) -> list[Recorded]:
    """Return the events whose ids begin with a text, in log order; never very many."""
    if '"' in beginning or "\\" in beginning:
        return []  # no id has what JSON would write otherwise
    # The id of a message stands in a row in the same words: what was found is looked at again.
    rows = log.query(_FIND, (f'"id":"{beginning}'.encode(), _MOST))
    found = (recorded for (position,) in rows for recorded in log.all(after=position - 1, to=position))
    return [recorded for recorded in found if recorded.id.startswith(beginning)]

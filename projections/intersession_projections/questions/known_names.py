"""The agents, channels, labels, people and sessions of a log: for a caller whose filter matches none of them."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice
from typing import Final

import msgspec

from intersession_events.facts import message_in
from intersession_events.log.log import Log
from intersession_projections.basics.row_prefilter import may_be_a_persons, prefiltered
from intersession_projections.basics.spans import Span
from intersession_projections.basics.speakers import called
from intersession_projections.views.sessions.list import Sessions

_MOST: Final = 3
_MESSAGES: Final = 2_000
_AT_ONCE: Final = 2_000
_ALIKE: Final = 0.6
_OPERATOR: Final = "operator"
"""What messages of the operator say of the channel that they came by."""


class KnownNames:
    """Queries on names. They may read the whole log: they are asked only when nothing was found."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._sessions = Sessions(log)

    def agents(self) -> set[str]:
        """Return the agents that have had a session."""
        return {agent_id for (agent_id,) in self._log.query("SELECT agent_id FROM session_agents", ())}

    def labels(self) -> set[str]:
        """Return the labels that sessions have had."""
        return {
            msgspec.json.decode(text, type=str)
            for (text,) in self._log.query("SELECT text FROM session_labels", ())
        }

    def channels(self) -> set[str]:
        """Return the channels that texts went to, or should have, and those that messages came from."""
        rows = self._log.query("SELECT DISTINCT channel FROM flows WHERE kind = 'delivery'", ())
        found = {_OPERATOR, *(channel for (channel,) in rows if channel is not None)}
        order = self._sessions.order()
        for row in order.rows(order.places(), at_once=_AT_ONCE):
            found |= {channel for channel in (row.channel, row.last_channel) if channel is not None}
        return found

    def people(self) -> set[str]:
        """Return the ids and names of people in the latest of their messages, alone and with their channels."""
        found: set[str] = set()
        for recorded in islice(prefiltered(self._log, Span(), may_be_a_persons), _MESSAGES):
            message = message_in(recorded.event)
            origin = None if message is None else message.provenance
            found |= set() if origin is None else called(origin)
        return found

    def has_imports(self) -> bool:
        """Whether the log has imported events: their deliveries are known only as far as the transcripts tell."""
        found = prefiltered(self._log, Span(), lambda row: str(row[3]).startswith("import_reported."))
        return next(found, None) is not None

    def sessions(self, most: int) -> list[str]:
        """Return the keys of the latest updated sessions, up to a limit."""
        return [place.key for place in islice(self._sessions.order().places(), most)]


def near(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the names that resemble an unknown one, the likeliest first."""
    folded = {each.casefold(): each for each in sorted(known)}
    wanted = name.casefold()
    alike = get_close_matches(wanted, folded, n=_MOST, cutoff=_ALIKE)
    begun = [each for each in folded if wanted and each.startswith(wanted)]
    return tuple(folded[each] for each in dict.fromkeys([*alike, *begun]))[:_MOST]

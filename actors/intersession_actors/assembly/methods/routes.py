"""Says where a caller of the gateway may send a text: the operator anywhere, a limited credential where its sessions are (VIS-6)."""

from collections.abc import Iterator

from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.deliveries import route_of
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import Route


class Routes:
    """Judges the routes that a call names with `channel` and `to`; each method with such parameters asks here."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def named(self, call: Call, key: SessionKey, route: Route, *, field: str) -> Route:
        """Return the route that is meant by a call in the name of a session.

        Who stands for some sessions has the routes of those. An account or a thread that was left out is that route's.

        Raises:
            ToolRefused: none of the sessions within reach has this route (`forbidden`), whatever the others have.
        """
        if call.caller.is_operator:
            return route
        for own in self._own(call, key):
            if _fits(route, own):
                return own
        raise ToolRefused(
            "forbidden",
            f"{field}: this credential sends only to the channels and chats of its own sessions, leave it out or name one",
        )

    def _own(self, call: Call, key: SessionKey) -> Iterator[Route]:
        """Yield the routes of the sessions within reach, the one that is named first."""
        sessions, parse = self._service.sessions, self._service.reader.parse
        row = sessions.get(str(key))
        if row is not None and row.archived is None and (route := route_of(row, key)) is not None:
            yield route
        order = sessions.order()
        mine = (place for place in order.places() if call.caller.reaches(parse(place.key)))
        for row in order.rows(mine):
            if (route := route_of(row, parse(row.key))) is not None:
                yield route


def _fits(given: Route, own: Route) -> bool:
    return (
        (given.channel, given.to) == (own.channel, own.to)
        and given.account in {None, own.account}
        and given.thread in {None, own.thread}
    )

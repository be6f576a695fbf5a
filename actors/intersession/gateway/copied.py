"""A log that a copy is taken of through the gateway of its writer, or of a host that follows it (COPY-3)."""

import base64
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from itertools import islice

from intersession.gateway.protocol.client import GatewayClient
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import BackupFailed, StoreUnavailable
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.following.source import Place, Reads
from intersession_events.log.sql import Row
from intersession_events.stores.portable.filling import Moved

_AT_ONCE = 500
"""The most single rows that are asked for at once."""


class GatewaySource:
    """The log behind a gateway. The token is that of a credential with the scope `copy`, or the operator's."""

    def __init__(self, address: str, token: str) -> None:
        self.shown = address
        self._token = token

    @contextmanager
    def reading(self) -> Generator[Reads]:
        """Connect for a block.

        Raises:
            StoreUnavailable: the gateway can't be reached, or gave no answer.
            BackupFailed: it refused.
        """
        with self._connected() as client:
            yield _BehindGateway(client)

    def files(self) -> Sequence[str]:
        """Return the names of the contents of its files, over a connection of its own."""
        names: list[str] = []
        with self._connected() as client:
            while found := client.call("copies.files", {"after": names[-1] if names else ""})["names"]:
                names += map(str, found)
        return names

    def file(self, name: str) -> bytes | None:
        """Return what is stored under such a name."""
        data = bytearray()
        with self._connected() as client:
            while True:
                part = client.call("copies.file", {"name": name, "at": len(data)})
                if part["content"] is None:
                    return None
                read = base64.b64decode(part["content"])
                data += read
                if len(data) >= int(part["size"]) or not read:
                    return bytes(data)

    @contextmanager
    def _connected(self) -> Generator[GatewayClient]:
        try:
            with GatewayClient(self.shown, self._token, caps=("no-events",)) as client:
                yield client
        except ToolRefused as refused:
            if refused.code == "unavailable":
                raise StoreUnavailable(refused.error) from None
            raise BackupFailed(f"the gateway at {self.shown} gives no copy: {refused.error}") from None


class _BehindGateway:
    def __init__(self, client: GatewayClient) -> None:
        self._client = client
        self._head = 0

    def known(self) -> Moved:
        answer = self._client.call("copies.known")
        self._head = int(answer["head"])
        return Moved(
            str(answer["logId"]),
            int(answer["epoch"]),
            int(answer["createdMs"]),
            int(answer["given"]),
            [str(topic) for topic in answer["topics"]],
        )

    def head(self) -> int:
        return self._head

    def rows(self, after: int, limit: int) -> Sequence[Row]:
        return _rows(self._client.call("copies.rows", {"after": after, "limit": limit}))

    def at(self, places: Iterable[Place]) -> Sequence[Row]:
        left, found = iter(places), list[Row]()
        while some := list(islice(left, _AT_ONCE)):
            while some:
                rows = _rows(self._client.call("copies.at", {"places": [list(place) for place in some]}))
                found += rows
                # An answer has as many as fit; what is not there is at none of its places.
                last = rows[-1][1:3] if rows else None
                some = some[some.index(Place(*last)) + 1 :] if last is not None else []
        return found


def _rows(answer: JsonObject) -> list[Row]:
    return [
        (int(position), str(stream), int(version), str(topic), base64.b64decode(state))
        for position, stream, version, topic, state in answer["rows"]
    ]

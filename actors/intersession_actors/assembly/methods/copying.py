"""The methods of copies that are taken over the network: rows as they are stored, and files (COPY-3)."""

import base64
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Final

import msgspec

from intersession_actors.assembly.methods.acting import part_of
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import KeyText, Name
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.copies.following.source import LogSource, Place
from intersession_events.facts import ready
from intersession_events.log.other_words import as_it_is
from intersession_events.log.sql import Row
from intersession_events.stores.portable.log import PortableLog

MOST_ROWS: Final = 1_000
MOST_NAMES: Final = 5_000
_STORED: Final = r"^[0-9a-f]{64}(\.enc)?$"
_MOST_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of rows one answer has, unless a single one has more."""
_Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class _Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


@ready
class RowsParams(_Params, frozen=True, kw_only=True):
    """`copies.rows`: rows behind a position."""

    after: _Whole = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=MOST_ROWS)] = MOST_ROWS


@ready
class RowsAtParams(_Params, frozen=True, kw_only=True):
    """`copies.at`: single rows, by stream and version."""

    places: Annotated[tuple[tuple[KeyText, _Whole], ...], msgspec.Meta(max_length=MOST_ROWS)]


@ready
class CopiedFileParams(_Params, frozen=True, kw_only=True):
    """`copies.file`: a part of the content of a file."""

    name: Annotated[str, msgspec.Meta(pattern=_STORED)]
    at: _Whole = 0


@ready
class CopiedFilesParams(_Params, frozen=True, kw_only=True):
    """`copies.files`: names of contents behind one, sorted."""

    after: Name = ""


class GatewayCopies:
    """The methods. A row is `[position, stream, version, topic, state in base64]`."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def known(self, call: Call, _params: JsonMapping) -> Result:
        """Return what is known of the log beside its events, and its last position."""
        with self._source(call).reading() as seen:
            known, head = seen.known(), seen.head()
        return {
            "logId": known.log_id,
            "epoch": known.epoch,
            "createdMs": known.created_ms,
            "given": known.given,
            "topics": sorted(known.topics),
            "head": head,
        }

    def rows(self, call: Call, params: JsonMapping) -> Result:
        """Return rows behind a position."""
        given = read_arguments(RowsParams, params)
        with self._source(call).reading() as seen:
            found = seen.rows(given.after, given.limit)
        return {"rows": _some(found)}

    def at(self, call: Call, params: JsonMapping) -> Result:
        """Return single rows, as they are now; the first of them, where all are too much for an answer."""
        given = read_arguments(RowsAtParams, params)
        with self._source(call).reading() as seen:
            found = seen.at(Place(*place) for place in given.places)
        return {"rows": _some(found)}

    def files(self, call: Call, params: JsonMapping) -> Result:
        """Return names of the contents of files as they are stored; none behind the last."""
        given = read_arguments(CopiedFilesParams, params)
        names = self._source(call).files()
        first = bisect_right(names, given.after)
        return {"names": names[first : first + MOST_NAMES]}

    def file(self, call: Call, params: JsonMapping) -> Result:
        """Return a part of a file's content."""
        given = read_arguments(CopiedFileParams, params)
        return part_of(partial(self._source(call).file, given.name), given.at)

    def _source(self, call: Call) -> LogSource:
        if not call.caller.copies:
            raise ToolRefused(
                "forbidden",
                "a copy has every session: give the credential the scope copy, or ask with the operator's token",
            )
        log = as_it_is(self._service.log)
        if not isinstance(log, PortableLog):
            raise ToolRefused(
                "not_supported", "copies are taken of a log in a store, and this one is in none"
            )
        return LogSource(log)


def _some(found: Sequence[Row]) -> list[list[object]]:
    size, rows = 0, list[list[object]]()
    for position, stream, version, topic, state in found:
        size += len(state)
        if rows and size > _MOST_BYTES:
            break
        rows.append([position, stream, version, topic, base64.b64encode(state).decode()])
    return rows

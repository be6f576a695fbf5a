"""Questions about the log as a whole: places in words, deliveries, whether it verifies, the settings in force."""

from itertools import islice
from threading import Lock
from typing import Annotated, Final, NamedTuple

import msgspec

from intersession.web.questions.cache import LruCache
from intersession.web.questions.of_events import head_of
from intersession.web.questions.of_runs import as_they_are, positions_of
from intersession_actors.assembly.schedules.reading import job_value
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import KeyText, PlaceText
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ConfigLoaded, SessionOpened, ready
from intersession_events.facts.delivery import STATES
from intersession_events.facts.log import EDITS
from intersession_events.facts.reasons import ARCHIVALS, HELD_BEFORE, SHORT_ENDS
from intersession_events.log.log import Log
from intersession_events.log.other_words import as_it_is
from intersession_events.log.verifying.report import VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.stores.database import MEMORY
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.basics.spans import Span, backwards

_SPEAKERS: Final = 16
_LOOKED_AT: Final = 4_000
_BY_ITSELF: Final = 20_000
"""A log of up to this many events is verified unasked."""
_MOST_SHOWN: Final = 50
_GROWN: Final = 200
"""The new events after which it is verified again: looking itself leaves receipts."""


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question without arguments."""


def speakers(view: View) -> JsonObject:
    """Return the log's identity, the words for what its events name by codes, and the sessions by first appearance.

    That order fixes their colours on every page.
    """
    log = view.log
    # Its beginning stays as it is, so it is read once it is all there.
    opened = _opened.of((log.log_id, "", min(log.head(), _LOOKED_AT)), lambda: _opened_in(log))
    seen = islice(filter(view.is_seen, opened), _SPEAKERS)
    return {
        "logId": log.log_id,
        "head": head_of(view),
        "speakers": list(seen),
        "ends": dict(SHORT_ENDS),
        "archivals": dict(ARCHIVALS),
        "deliveryStates": dict(STATES),
        "edits": dict(EDITS),
        "heldBefore": dict(HELD_BEFORE),
    }


def schedules(view: View, given: Nothing) -> JsonObject:
    """Return the scheduled jobs of the configuration in force, with when each is due next and what came of it last."""
    del given
    reader = view.reader
    jobs = [job_value(reader, name, job) for name, job in sorted(reader.config.cron.jobs.items())]
    return {"jobs": jobs}


_opened: Final = LruCache[tuple[str, ...]](32)


def _opened_in(log: Log) -> tuple[str, ...]:
    """Return the sessions that the beginning of a log opens, without sub-agents, which have a colour of their own."""
    opened = (
        recorded.stream.partition(":")[2]
        for recorded in log.all(limit=_LOOKED_AT)
        if isinstance(recorded.event, SessionOpened)
    )
    return tuple(key for key in opened if ":subagent:" not in key)


@ready
class Place(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """The query for a place."""

    at: Annotated[
        int | float | PlaceText,
        msgspec.Meta(
            description="A place in any form; with a run also turn:3, reply, start, announce and end."
        ),
    ]
    run: Annotated[KeyText | None, msgspec.Meta(description="The run that the place is of.")] = None


def place(view: View, given: Place) -> JsonObject:
    """Return a place in words, and the next event: `{place, next}`; of a run also how many of its events are before it (`index`).

    Raises:
        ToolRefused: it is no place, or not in the log (`invalid_request`).
    """
    at = given.at
    if given.run is not None and isinstance(at, str) and at.startswith(_OF_A_RUN):
        at = f"{given.run}@{at}"
    located = view.place(at)
    answer: JsonObject = {}
    if given.run is not None:
        # What comes next is looked for among the run's own events.
        flow = view.flow(given.run)
        located = msgspec.structs.replace(located, flow=flow)
        positions = positions_of(view, as_they_are(view, [flow])[0])
        answer["index"] = sum(position <= located.position for position in positions)
    return {"place": view.say(located), "next": view.say_next(located), **answer}


_OF_A_RUN: Final = ("start", "reply", "turn:", "announce", "end")


@ready
class Integrity(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """How thorough the check is."""

    verify: Annotated[
        bool | None, msgspec.Meta(description="Verify the whole log now, however large it is.")
    ] = None


class _Proven(NamedTuple):
    head: int
    report: VerifyReport


_proven: dict[str, _Proven] = {}
_proving: Final = Lock()


def integrity(view: View, given: Integrity) -> JsonObject:
    """Return whether the log is as it was written, up to where, and which proofs that rests on.

    It is verified again where it has grown much, if it is not large or `verify` is given; else the last verdict stands, for as far as
    it went: `verifiedTo` may be below `head`, and is None where nothing was verified yet.
    """
    log, head = view.log, view.log.head()
    with _proving:
        known = _proven.get(log.log_id)
        grown = known is None or head - known.head >= _GROWN
        if given.verify or (grown and head <= _BY_ITSELF):
            known = _proven[log.log_id] = _Proven(head, _verified(log))
    if known is None:
        return {"head": head, "verifiedTo": None, "ok": None}
    report = known.report
    return {
        "head": head,
        "verifiedTo": known.head,
        "ok": report.ok,
        "events": report.events,
        "streams": report.streams,
        "erased": report.erased,
        "erasures": [msgspec.to_builtins(one) for one in report.erasures[:_MOST_SHOWN]],
        "counts": dict(report.counts),
        "findings": [msgspec.to_builtins(one) for one in report.findings[:_MOST_SHOWN]],
        "unproven": msgspec.to_builtins(report.unproven),
        "checkpoints": msgspec.to_builtins(report.checkpoints),
        "logHead": msgspec.to_builtins(report.head),
    }


def _verified(log: Log) -> VerifyReport:
    """Verify the stored log; views of another version are left out."""
    log = as_it_is(log)
    if not isinstance(log, PortableLog) or log.place == MEMORY:
        return verify_log(log)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - every store's log tells its positions
    with log.again() as stored:
        return verify_log(stored)


def settings(view: View, given: Nothing) -> JsonObject:
    """Return the settings in force, without secrets, and since when: `{settings, digest, since}`."""
    del given
    loaded = [
        {"position": one.position, "timeMs": one.time, "digest": one.event.digest}
        for one in islice(
            (each for each in backwards(view.log, Span(), "log") if isinstance(each.event, ConfigLoaded)),
            _MOST_SHOWN,
        )
        if isinstance(one.event, ConfigLoaded)
    ]
    config = view.reader.config
    return {
        "settings": msgspec.json.decode(config.redacted()),
        "digest": config.digest(),
        "loaded": loaded,
    }

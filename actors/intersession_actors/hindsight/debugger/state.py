"""The verb `state`: the state at a place, and the differences between two; and the same in numbers, for `status` (PLACE-3)."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Annotated, Final, TypedDict

import msgspec

from intersession_actors.calls.service.arguments import bounded
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.answers import OpenAnswer, PlaceAnswer, StateAnswer, open_in
from intersession_actors.hindsight.debugger.standing.place import Standing
from intersession_actors.hindsight.debugger.view import At, View
from intersession_actors.rules.gate.limits import KeyText, PlaceText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject, JsonValue, is_list, is_object
from intersession_events.facts import ready
from intersession_projections.questions.places.located import Located
from intersession_projections.questions.places.then import Then
from intersession_projections.views.flows.held import held_value
from intersession_projections.views.flows.rows import ExchangeSummary

DEFAULT_SESSIONS: Final = 50
DEFAULT_MESSAGES: Final = 200
OF_EACH: Final = 10
"""The number of messages of each session in the state of a whole log, whose transcripts have no bound."""
MOST: Final = 1000

_NAMES: Final = {
    "sessions": "key",
    "transcript": "id",
    "runs": "runId",
    "exchanges": "exchangeId",
    "spawns": "spawnId",
    "deliveries": "deliveryId",
}
"""What the items of each list are told apart by."""

PlaceArgument = int | float | PlaceText


class Change(TypedDict):
    """One difference. `path` is its place, from the name of a list on by ids; a side is None if it has nothing there."""

    path: str
    before: JsonValue
    after: JsonValue


@ready
class State(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """The arguments of `state`; null counts as missing."""

    of: Annotated[
        KeyText | None,
        msgspec.Meta(
            description="A session, or an exchange, a spawn or a run, by any name that is shown. Default: the whole log."
        ),
    ] = None
    at: Annotated[PlaceArgument | None, msgspec.Meta(description="The place. Default: head.")] = None
    frm: Annotated[PlaceArgument | None, msgspec.Meta(description="What differs from this place on.")] = (
        msgspec.field(default=None, name="from")
    )
    to: Annotated[
        PlaceArgument | None, msgspec.Meta(description="What differs up to this place. Default: head.")
    ] = None
    as_: Annotated[
        KeyText | None, msgspec.Meta(description="Only what this session could see at that place.")
    ] = msgspec.field(default=None, name="as")
    limit: Annotated[
        float | None,
        msgspec.Meta(description="At most this many sessions, runs and flows, 1 to 1000; 50 if not given."),
    ] = None
    messages: Annotated[
        float | None,
        msgspec.Meta(
            description="At most this many messages of each session, 0 to 1000; 200 if not given, 10 of the whole log."
        ),
    ] = None


ChangesAnswer = TypedDict("ChangesAnswer", {"from": PlaceAnswer, "to": PlaceAnswer, "changes": list[Change]})
"""What differs between two places."""


def state(view: View, given: State) -> StateAnswer | ChangesAnswer:
    """Return the state at a place, or the differences between two.

    Raises:
        ToolRefused: a place or a name is invalid, or not within reach.
    """
    if given.of is not None:
        of, at = view.parted(given.of, given.at, field="of")
        given = msgspec.structs.replace(given, of=of, at=at)
    if given.frm is None and given.to is None:
        return _state(view, given, view.place(given.at))
    if given.at is not None:
        raise invalid("at", "a difference has the places from and to, leave at or those out")
    if given.frm is None:
        raise invalid("from", "required with to, give the place to compare with")
    before, after = view.place(given.frm, field="from"), view.place(given.to, field="to")
    then, now = _state(view, given, before), _state(view, given, after)
    _leave_out_pushed_out(view, *((then, now) if before.position <= after.position else (now, then)))
    return {
        "from": then["place"],
        "to": now["place"],
        "changes": list(_differences(_compared(then), _compared(now))),
    }


def _state(view: View, given: State, place: Located) -> StateAnswer:
    eyes = view if given.as_ is None else view.acting_as(given.as_, at=place.position)
    subject = None if given.of is None else eyes.session_or_flow(given.of, field="of")
    usual = OF_EACH if subject is None else DEFAULT_MESSAGES
    return Standing(
        eyes,
        place,
        limit=bounded(given.limit, "limit", 1, MOST, default=DEFAULT_SESSIONS).value,
        messages=bounded(given.messages, "messages", 0, MOST, default=usual).value,
    ).of(subject)


def _compared(answer: StateAnswer) -> JsonObject:
    """Return what of a state is compared: where it is looked at, what comes next, and what it leaves out, says nothing of it."""
    compared: JsonObject = {**answer}
    for field in ("place", "next", "more"):
        compared.pop(field, None)
    return compared


def _leave_out_pushed_out(view: View, earlier: StateAnswer, later: StateAnswer) -> None:
    """Leave out of the earlier of two states what newer things only pushed off the end of a list of the later one.

    A list shows its newest. What a transcript has had stays in it, unless a reset has begun another one; runs and flows stay, and a
    session leaves its list by being archived alone.
    """
    sessions = {session["key"]: session for session in later["sessions"]}
    position = later["place"]["position"]
    for session in earlier["sessions"]:
        now = sessions.get(session["key"])
        if now is not None and now["sessionId"] == session["sessionId"]:
            known = {message["id"] for message in now["transcript"]}
            session["transcript"] = [one for one in session["transcript"] if one["id"] in known]
    earlier["sessions"] = [
        session
        for session in earlier["sessions"]
        if session["key"] in sessions or not _is_listed(view, session["key"], position)
    ]
    for session in (*earlier["sessions"], *later["sessions"]):
        session.pop("earlier", None)  # where the page before begins says nothing of the session
    earlier["runs"] = _those_of(earlier["runs"], later["runs"], "runs")
    earlier["exchanges"] = _those_of(earlier["exchanges"], later["exchanges"], "exchanges")
    earlier["spawns"] = _those_of(earlier["spawns"], later["spawns"], "spawns")


def _is_listed(view: View, key: str, position: int) -> bool:
    row = view.reader.sessions.get(key, position)
    return row is not None and row.archived is None


def _those_of(earlier: list[JsonObject], later: list[JsonObject], name: str) -> list[JsonObject]:
    known = {one[_NAMES[name]] for one in later}
    return [one for one in earlier if one[_NAMES[name]] in known]


def _differences(before: JsonValue, after: JsonValue, path: str = "", name: str = "") -> Iterator[Change]:
    """Yield the differences between two values, in the order of the first one; `name` is their name, at `path`."""
    if before == after:
        return
    old, new = _by_name(before, name), _by_name(after, name)
    if old is None or new is None:
        yield {"path": path, "before": before, "after": after}
        return
    for inner in dict.fromkeys((*old, *new)):
        # As JSON pointers have it (RFC 6901), so that the parts of a path can be told apart.
        where = f"{path}/{inner.replace('~', '~0').replace('/', '~1')}" if path else inner
        yield from _differences(old.get(inner), new.get(inner), where, inner)


def _by_name(value: JsonValue, name: str) -> Mapping[str, JsonValue] | None:
    """Return what has names inside a value: fields of an object, items of a list by their ids."""
    if is_object(value):
        return value
    if is_list(value) and name in _NAMES:
        # What is open is listed by ids alone.
        return {str(item[_NAMES[name]] if is_object(item) else item): item for item in value}
    return None


_RECENT: Final = 10
"""How many sessions are named."""


class CountedAnswer(TypedDict):
    """How many sessions there were, and the latest updated ones: `{key, agentId, updatedAt, age}`, the age in ms."""

    count: int
    recent: list[JsonObject]


class StatusAnswer(TypedDict):
    """The counts at a place: open work, held exchanges, sessions."""

    place: PlaceAnswer
    next: PlaceAnswer | None
    position: int
    openRuns: int
    open: OpenAnswer
    held: list[JsonObject]
    sessions: CountedAnswer


def status_at(reader: Reader, at: At) -> StatusAnswer:
    """Return the counts at a place of a whole log.

    Raises:
        ToolRefused: it is no place.
    """
    view = View(reader)
    place = view.place(at)
    then, order = Then(reader.log, place.position), reader.sessions.order(place.position)
    flows, runs = then.open_flows(), then.open_runs()
    return {
        "place": view.say(place),
        "next": view.say_next(place),
        "position": place.position,
        "openRuns": len(runs),
        "open": open_in((*runs, *flows)),
        "held": [
            held_value(flow) for flow in flows if isinstance(flow, ExchangeSummary) and flow.held is not None
        ],
        "sessions": {
            "count": sum(order.numbers().values()),
            "recent": [
                {
                    "key": found.key,
                    "agentId": reader.parse(found.key).agent_id,
                    "updatedAt": -found.falling,
                    "age": max(0, place.time_ms + found.falling),
                }
                for found in islice(order.places(), _RECENT)
            ],
        },
    }

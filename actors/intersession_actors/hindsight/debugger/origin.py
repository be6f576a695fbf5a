"""The verb `origin`: where a text came from, and by which hops it reached others (ORIGIN-1)."""

from typing import Annotated, NotRequired, TypedDict

import msgspec

from intersession_actors.calls.tools.searching import before_of
from intersession_actors.hindsight.debugger.lists.paging import (
    MOST,
    AtArgument,
    LimitArgument,
    most_of,
    paged,
)
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.gate.limits import CursorText, KeyText, SearchText
from intersession_actors.rules.gate.values import invalid
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts import ready
from intersession_events.facts.delivery import DeliveryState
from intersession_projections.questions.origins.holders import Way
from intersession_projections.questions.origins.hops import Hop, Reads, Via
from intersession_projections.questions.origins.matching import Match
from intersession_projections.questions.origins.origins import Origins, Shows
from intersession_projections.questions.places.located import steps_of_flow


@ready
class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `origin`."""

    words: Annotated[SearchText, msgspec.Meta(description="The words, as somebody said them.")]
    run: Annotated[
        KeyText | None,
        msgspec.Meta(description="Only where those words came from that are in this exchange, spawn or run."),
    ] = None
    at: AtArgument = None
    seen: Annotated[
        bool,
        msgspec.Meta(
            description="Also who saw the words: each run whose agent was given them, newest first, each session that has them, and where they went."
        ),
    ] = False
    cursor: Annotated[
        CursorText | None, msgspec.Meta(description="With `seen`: the cursor of the page before this one.")
    ] = None
    limit: LimitArgument = None


class HopAnswer(TypedDict):
    """A text where it was sent or arrived. `cause` is the position that it came from; None where it was written anew.

    `via` is `person`, `agent`, `sessions_send`, `sessions_spawn`, `tool`, `delivery` or `system`; `to` is where they went.
    `editedBy` wrote them in the place of what `who` had said, which was held.
    """

    position: int
    eventId: str
    timeMs: int
    sessionKey: str
    who: str
    to: str | None
    via: Via
    text: str
    cause: int | None
    runId: NotRequired[str]
    editedBy: NotRequired[str]


class SeenAnswer(TypedDict):
    """A run whose agent had the text in its input, in its last attempt that had. `position` is where that began.

    `within` says where they stood: in its `transcript`, the `summary` of what was said earlier, the `message` to answer, what the
    attempt before had done (`partial`), or the `systemContext`. `tools` had given them; `summarises`: its answer is a summary that
    stands for what it was given. `imported`: it is an answer of another system's agent, named by its position, as `lens` takes it;
    what its session had been told is known, and not the system's text.
    """

    position: int
    timeMs: int
    sessionKey: str
    runId: str
    attempt: int
    within: list[str]
    tools: NotRequired[list[str]]
    summarises: NotRequired[bool]
    imported: NotRequired[bool]


class MomentAnswer(TypedDict):
    """An event's position and time in ms."""

    position: int
    timeMs: int


class SeenWhen(TypedDict):
    """The number of events that hold a text, the first and the last."""

    count: int
    first: MomentAnswer
    last: MomentAnswer


class SeenInSession(SeenWhen):
    """A session with the text in its history. `ways` says how it came there.

    It was `told`, is its agent's `own`, came by a `tool`, by a `search` (a tool that shows sessions), was `inherited` with the
    requester's transcript, or stands in a `summary`, in what the `system` says, or in another `line` of an import. `imported`: of what another system gave its agents
    besides messages, nothing is known.
    """

    sessionKey: str
    ways: list[Way]
    tools: NotRequired[list[str]]
    imported: NotRequired[bool]


class OutsideAnswer(SeenWhen):
    """A chat that the text went to, or should have: from which sessions, and how many deliveries stand how (`states`)."""

    route: JsonObject
    sessions: list[str]
    states: dict[DeliveryState, int]


class LookAnswer(TypedDict):
    """A call, by its receipt, that named sessions with the text in them: they were shown, and perhaps the text."""

    position: int
    timeMs: int
    who: str
    call: str
    sessions: list[str]


class OriginAnswer(TypedDict):
    """The first message that holds the text, None if there is none, and all others that do, in log order.

    `match` is `exact`, `folded` (in other case or white space) or `shared` (`words` are the longest run of them that anybody
    said). `cut` is the position at which the search was given up, None if it was not. `seen` are runs, where they were asked
    for; `cursor` is for those behind them. The first page also has `sessions`, `outside` and `looks`, each without its last ones
    where they are more than a thousand (`leftOut`).
    """

    first: HopAnswer | None
    hops: list[HopAnswer]
    match: Match | None
    words: str | None
    cut: int | None
    seen: NotRequired[list[SeenAnswer]]
    cursor: NotRequired[str | None]
    sessions: NotRequired[list[SeenInSession]]
    outside: NotRequired[list[OutsideAnswer]]
    looks: NotRequired[list[LookAnswer]]
    leftOut: NotRequired[int]


def origin(view: View, given: Origin) -> OriginAnswer:
    """Return where a text came from.

    Raises:
        ToolRefused: there are no words, or the place or the run is invalid.
    """
    if not given.words.strip():
        raise invalid("words", "blank, give the words to look for")
    run, at = (None, given.at) if given.run is None else view.parted(given.run, given.at, field="run")
    place = view.place(at)
    within, to = None, place.position
    if run is not None:
        flow = view.flow(run)
        within = frozenset(step.position for step in steps_of_flow(view.log, flow))
        to = min(to, max(within, default=0))
    shows: Shows | None = None if view.is_operator else lambda key: _reads(view, key)
    found = Origins(
        view.log,
        shows=shows,
        named=lambda shown, to: _named(view, shown, to),
    ).of(given.words, to=to, within=within)
    for hop in (*(() if found.first is None else (found.first,)), *found.hops):
        view.is_seen(hop.session_key)
    answer: OriginAnswer = {
        "first": None if found.first is None else _answer(found.first),
        "hops": [_answer(hop) for hop in found.hops],
        "match": found.match,
        "words": found.words,
        "cut": found.cut,
    }
    if given.seen:
        from intersession_actors.hindsight.debugger.recipients import Recipients  # noqa: PLC0415 - what rebuilds a context is much, and seldom asked for

        before, recipients = before_of(given.cursor), Recipients(view, found, given.words, to, shows)
        runs = recipients.runs(before)
        answer["seen"], answer["cursor"] = paged(runs, lambda one: one["position"], most_of(given.limit))
        if before is None:
            sessions, outside, looks = recipients.sessions(), recipients.outside(), recipients.looks()
            answer["sessions"], answer["outside"], answer["looks"] = (
                sessions[:MOST],
                outside[:MOST],
                looks[:MOST],
            )
            if left_out := sum(max(len(some) - MOST, 0) for some in (sessions, outside, looks)):
                answer["leftOut"] = left_out
    return answer


def _reads(view: View, key: str) -> Reads | None:
    """Return how the caller reads the texts of a session: a secret can't be found by searching for it (FIND-1)."""
    return (lambda text: view.shown(text, key) or "") if view.is_seen(key) else None


def _named(view: View, shown: str, to: str) -> str:
    """Return the key of the session that an answer of a tool showed to another one by some name (KEY-2, KEY-3)."""
    agent = view.reader.parse(to).agent_id
    if shown == "main":
        return str(view.reader.main_key(agent))
    return shown if shown.startswith("agent:") else f"agent:{agent}:{shown}"


def _answer(hop: Hop) -> HopAnswer:
    answer: HopAnswer = msgspec.to_builtins(msgspec.structs.replace(hop, source=None))
    return answer

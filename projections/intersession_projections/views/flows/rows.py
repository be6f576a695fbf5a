"""Rows of exchanges, spawns and deliveries, and how each event changes them. Pure."""

from functools import reduce
from typing import ClassVar, Final, Literal, NamedTuple, TypeVar

import msgspec

from intersession_events import facts
from intersession_events.basics.ids import delivery_stream, exchange_stream, spawn_stream
from intersession_events.log.recorded import Recorded
from intersession_projections.basics.spans import Span

_FAILED_ENDS: Final = frozenset(
    {
        "run_failed",
        "announce_failed",
        "announce_denied",
        "delivery_unknown",
        "target_gone",
        "requester_gone",
        "not_started",
    }
)
_FAILED_LOOPS: Final = frozenset(
    {"turn_failed", "turn_timeout", "policy_denied", "target_gone", "requester_gone"}
)
FAILED_RUNS: Final = ("error", "timeout")
FAILED_DELIVERIES: Final = ("failed", "unknown", "denied")


class DeliveriesWanted(NamedTuple):
    """A filter for deliveries: all set fields must match. Positions are those of the decisions.

    `failed` are those that ended without a receipt (failed, denied, in doubt), `pending` those still to come; with both,
    either. `routes` are the places that the texts go to, thread and all, `decided_at` positions of decisions; None for any.
    """

    failed: bool = False
    pending: bool = False
    session_key: str | None = None
    channel: str | None = None
    run: str | None = None
    """The id of an exchange, of a spawn, or of a run."""
    span: Span = Span()
    routes: tuple[facts.Route, ...] | None = None
    decided_at: tuple[int, ...] | None = None


@facts.ready
class ExchangeSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of an exchange, without its texts. `turns` counts replies, `awaits` is the run it waits for.

    `held` is what it holds, since `held_since_ms`, by the hold `hold_id` that `held_by` ordered; `hold` is before what it is to stop.
    `released`: it was let go on, and has not gone on yet. `first` is how the reply of its first run was released, if that was held.

    `accepted` and `position` are the positions of its first and its last event, times in ms.
    """

    kind: ClassVar[Literal["exchange"]] = "exchange"
    exchange_id: str
    run_id: str
    target: str
    accepted: int
    accepted_ms: int
    position: int
    requester: str | None = None
    caller: str = "operator"
    turns: int = 0
    max_turns: int = 0
    loop: bool = True
    awaits: str | None = None
    primary_status: facts.RunStatus | None = None
    end_reason: facts.LoopEnd | None = None
    limit: str | None = None
    delivery_id: str | None = None
    close_reason: facts.CloseReason | None = None
    closed_ms: int | None = None
    root: str | None = None
    hops: int = 1
    inferred: bool = False
    held: facts.HeldText | None = None
    held_since_ms: int | None = None
    held_by: str | None = None
    hold_id: str | None = None
    hold: facts.HoldBefore | None = None
    released: bool = False
    first: facts.Release | None = None

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return exchange_stream(self.exchange_id)

    @property
    def is_open(self) -> bool:
        """Whether it is not over."""
        return self.close_reason is None

    @property
    def failed(self) -> bool:
        """Whether a run of it failed, or it could not come to its end."""
        return (
            self.primary_status in FAILED_RUNS
            or self.end_reason in _FAILED_LOOPS
            or self.close_reason in _FAILED_ENDS
        )

    @property
    def holds_first(self) -> bool:
        """Whether it holds the reply of its first run."""
        return self.held == "reply" and self.turns == 0


@facts.ready
class SpawnSummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a spawn, without its texts. Times in ms; `status` is that of the child's task run."""

    kind: ClassVar[Literal["spawn"]] = "spawn"
    spawn_id: str
    run_id: str
    child: str
    child_session_id: str
    agent_id: str
    accepted: int
    accepted_ms: int
    position: int
    requester: str | None = None
    caller: str = "operator"
    label: str | None = None
    mode: Literal["run", "session"] = "run"
    cleanup: Literal["delete", "keep"] = "keep"
    archive_after_ms: int = 0
    depth: int = 1
    awaits: str | None = None
    status: facts.RunStatus | None = None
    ended_ms: int | None = None
    delivery_id: str | None = None
    close_reason: facts.SpawnClose | None = None
    closed_ms: int | None = None
    archived: Literal["cleanup", "expired", "deleted"] | None = None
    root: str | None = None
    inferred: bool = False
    has_files: bool = False
    """Whether the child was given files, and neither their removal nor a failure to remove them is recorded (ATT-5)."""

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return spawn_stream(self.spawn_id)

    @property
    def asker(self) -> str:
        """The requester: a session by its key, else `operator`; `unknown` if an import does not show it."""
        return self.requester or ("unknown" if self.inferred else "operator")

    @property
    def is_open(self) -> bool:
        """Whether its announce is not final yet."""
        return self.close_reason is None

    @property
    def failed(self) -> bool:
        """Whether the child's run failed, or it could not come to its end."""
        return self.status in FAILED_RUNS or self.close_reason in _FAILED_ENDS

    @property
    def archive_due_ms(self) -> int | None:
        """When the child is to be archived (SPAWN-11); None: never, not yet known, or done."""
        if self.archived is not None or self.mode == "session" or self.close_reason == "not_started":
            return None
        if self.cleanup == "delete":
            return self.closed_ms
        if self.ended_ms is None or self.archive_after_ms <= 0:
            return None
        return self.ended_ms + self.archive_after_ms


@facts.ready
class DeliverySummary(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a delivery. `retry_at_ms` is set while it waits for a retry."""

    delivery_id: str
    session_key: str
    channel: str
    purpose: facts.Purpose
    accepted: int
    position: int
    state: facts.DeliveryState = "decided"
    attempt: int = 0
    retry_at_ms: int | None = None
    run_id: str | None = None
    owner: str | None = None

    @property
    def stream(self) -> str:
        """The name of its stream."""
        return delivery_stream(self.delivery_id)

    @property
    def is_open(self) -> bool:
        """Whether it has no outcome yet."""
        return self.state in {"decided", "started", "retrying"}

    @property
    def failed(self) -> bool:
        """Whether it ended without a receipt: failed, denied, or in doubt."""
        return self.state in FAILED_DELIVERIES


Summary = ExchangeSummary | SpawnSummary | DeliverySummary
F = TypeVar("F", ExchangeSummary, SpawnSummary)


def place_text(route: facts.Route) -> str:
    """Return the place that a text goes to, as a text: channel, account, chat and thread."""
    return msgspec.json.encode((route.channel, route.account, route.to, route.thread)).decode()


def accept_flow(recorded: Recorded) -> Summary | None:
    """Return the first row of a flow, from the event that begins one in a stream of its kind."""
    event = recorded.event
    match event:
        case facts.ExchangeAccepted() if recorded.stream.startswith("exchange:"):
            return _exchange(recorded, event)
        case facts.SpawnAccepted() if recorded.stream.startswith("spawn:"):
            return _spawn(recorded, event)
        case facts.DeliveryDecided() if recorded.stream.startswith("delivery:"):
            return DeliverySummary(
                delivery_id=event.delivery_id,
                session_key=event.session_key,
                channel=event.route.channel,
                purpose=event.purpose,
                accepted=recorded.position,
                position=recorded.position,
                run_id=event.run_id,
                owner=event.owner,
            )
        case _:
            return None


def _evolved(row: F, recorded: Recorded) -> F:
    """Return where an exchange or a spawn stands after what both have in their streams."""
    replace = msgspec.structs.replace
    match recorded.event:
        case facts.RunAsked(run_id=run_id):
            return replace(row, awaits=run_id)
        case facts.AnnounceDecided(delivery_id=delivery_id):
            return replace(row, delivery_id=delivery_id, awaits=None)
        case facts.FlowClosed(reason=reason):
            return replace(row, close_reason=reason, closed_ms=recorded.time, awaits=None)
        case _:
            return row


def evolve_exchange(row: ExchangeSummary, recorded: Recorded) -> ExchangeSummary:
    """Return where an exchange stands after an event of its stream."""
    replace = msgspec.structs.replace
    event = recorded.event
    # What somebody wants of it later changes nothing of where it stands.
    waits = row.released and isinstance(event, facts.HoldRequested | facts.HoldWithdrawn)
    row = replace(_evolved(row, recorded), position=recorded.position, released=waits)
    match event:
        case facts.TurnEnded(turn=0):
            return replace(row, primary_status=event.status, awaits=None)
        case facts.TurnEnded():
            return replace(row, turns=event.turn, awaits=None)
        case facts.LoopEnded():
            return replace(row, turns=event.turns, end_reason=event.reason, limit=event.limit)
        case facts.FlowClosed() | facts.HoldWithdrawn():
            return replace(row, hold=None)
        case facts.HoldRequested():
            return replace(row, hold=event.before)
        case facts.ExchangeHeld():
            stays = event.source != "run" or event.before == "every-turn"
            return replace(
                row,
                held=event.step,
                held_since_ms=recorded.time,
                held_by=event.by,
                hold_id=event.hold_id,
                hold=row.hold if stays else None,
                awaits=None,
            )
        case facts.ExchangeReleased():
            return replace(
                row,
                held=None,
                held_since_ms=None,
                held_by=None,
                hold_id=None,
                hold=None if event.for_good else row.hold,
                released=True,
                first=event.action if row.holds_first else row.first,
            )
        case _:
            return row


def evolve_spawn(row: SpawnSummary, recorded: Recorded) -> SpawnSummary:
    """Return where a spawn stands after an event of its stream."""
    replace = msgspec.structs.replace
    row = replace(_evolved(row, recorded), position=recorded.position)
    match recorded.event:
        case facts.ChildEnded(status=status, ended_ms=ended_ms):
            ended = recorded.time if ended_ms is None else ended_ms
            return replace(row, status=status, ended_ms=ended, awaits=None)
        case facts.ChildArchived(reason=reason):
            return replace(row, archived=reason)
        case facts.AttachmentsRemoved() | facts.AttachmentRemovalFailed():
            return replace(row, has_files=False)
        case _:
            return row


def evolve_flow(row: Summary, recorded: Recorded) -> Summary:
    """Return the state of a flow after an event. Fields that are searched by are set once and stay."""
    match row:
        case ExchangeSummary():
            return reduce(evolve_exchange, recorded.parts(), row)
        case SpawnSummary():
            return reduce(evolve_spawn, recorded.parts(), row)
        case DeliverySummary():
            return evolve_delivery(row, recorded)


class Position(NamedTuple):
    """A part of the log in which flows were accepted: `after < position <= to`, with a session if one is given.

    `may_have_failed` leaves out those that have ended and have not failed.
    """

    after: int
    to: int
    session_key: str | None = None
    is_open: bool = False
    may_have_failed: bool = False


class DeliveryNote(NamedTuple):
    """Data of a delivery that only the log has, and not its row.

    Where it goes, what its last event says of a failure, its text, when it was decided and when its last event came (ms), its
    first event, and the root of its causal chain.
    """

    route: facts.Route
    error: str | None
    text: str
    decided_ms: int
    last_ms: int
    decided: facts.DeliveryDecided
    root: str | None


def evolve_delivery(row: DeliverySummary, recorded: Recorded) -> DeliverySummary:
    """Return the state of a delivery after an event of its stream."""
    event = recorded.event
    if not isinstance(event, facts.DeliveryFact):
        return msgspec.structs.replace(row, position=recorded.position)
    retry_at_ms = event.retry_at_ms if isinstance(event, facts.DeliveryFailed) else recorded.time
    return msgspec.structs.replace(
        row,
        position=recorded.position,
        state=event.state,
        attempt=event.attempt if isinstance(event, facts.DeliveryAttempt) else row.attempt,
        retry_at_ms=retry_at_ms if event.state == "retrying" else None,
    )


def _exchange(recorded: Recorded, event: facts.ExchangeAccepted) -> ExchangeSummary:
    return ExchangeSummary(
        exchange_id=event.exchange_id,
        run_id=event.run_id,
        target=event.target,
        accepted=recorded.position,
        accepted_ms=recorded.time,
        position=recorded.position,
        requester=event.requester,
        caller=event.caller,
        max_turns=event.settings.max_turns,
        loop=event.loop,
        awaits=event.run_id,
        root=recorded.correlation,
        hops=event.hops,
        inferred=event.inferred,
    )


def _spawn(recorded: Recorded, event: facts.SpawnAccepted) -> SpawnSummary:
    return SpawnSummary(
        spawn_id=event.spawn_id,
        run_id=event.run_id,
        child=event.child,
        child_session_id=event.child_session_id,
        agent_id=event.agent_id,
        accepted=recorded.position,
        accepted_ms=recorded.time,
        position=recorded.position,
        requester=event.requester,
        caller=event.caller,
        label=event.label,
        mode=event.mode,
        cleanup=event.cleanup,
        archive_after_ms=event.archive_after_ms,
        depth=event.depth,
        awaits=event.run_id,
        root=recorded.correlation,
        inferred=event.inferred,
        has_files=event.attachments is not None,
    )

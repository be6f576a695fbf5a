"""How a door has a command carried out: the run that it asks for, the session that it opens, the wait until it is durable."""

import hashlib
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Final, Literal, NamedTuple

import msgspec

from intersession_actors.calls.service.callers import Call, Caller
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import COMMIT_TIMEOUT_S, Service
from intersession_actors.owners.chains.cause import Cause, current_cause
from intersession_actors.owners.chains.spending import Named, agent_named
from intersession_actors.owners.session.commands import Patch
from intersession_actors.owners.streams.commands import Accepted, BeginsFlow, FlowRequest, Refused, Request
from intersession_actors.rules.errors import Judgement, LimitReached, ToolRefused
from intersession_actors.rules.policy.access import Requester
from intersession_actors.rules.policy.budgets import Counted, Spend, Spending, judge_spending, words_of
from intersession_actors.rules.policy.chain import (
    CarryOn,
    Chain,
    Tripped,
    begun,
    check_hop,
    counts_use,
    one_hop_on,
)
from intersession_actors.running.runtime.threads import Threads
from intersession_events.basics import ids
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import (
    Budget,
    ChatType,
    Event,
    ExchangeAccepted,
    FlowAccepted,
    InboundTaken,
    MessageRecorded,
    OpenedBy,
    Provenance,
    RunQueued,
    SendRefused,
    SessionOpened,
    SpawnAccepted,
    topics_of,
)
from intersession_projections.views.sessions.row import SessionRow


def run_id_of(service: Service, call: Call, *, method: str, idempotency_key: str | None) -> str:
    """Return the id of a requested run: derived if possible, else random (design, rule 4).

    In a fork, what was asked for before its cut is in the log, under the id that it had there.
    """
    caller, log_ids = call.caller, service.log.log_ids
    if idempotency_key is None:
        return call.asks_for or service.new_id()
    for log_id in log_ids[1:]:
        run_id = ids.derive(log_id, "run", caller.name, method, idempotency_key)
        if was_asked_for(service, log_id, run_id):
            return run_id
    return ids.derive(log_ids[0], "run", caller.name, method, idempotency_key)


def was_asked_for(service: Service, log_id: str, run_id: str) -> bool:
    """Whether a log that this one was forked from had accepted a run, its spawn, or its text."""
    return (
        service.runs.get(run_id) is not None
        or service.flows.spawn(ids.derive(log_id, "spawn", run_id)) is not None
        or service.flows.delivery(ids.derive(log_id, "delivery", run_id, "send")) is not None
    )


def flow_begun_by(service: Service, kind: Literal["exchange", "spawn"], run_id: str) -> str:
    """Return the id of the exchange or spawn that a run begins with: in a fork, that of the source if it began there."""
    own, *before = (ids.derive(log_id, kind, run_id) for log_id in service.log.log_ids)
    found = service.flows.exchange if kind == "exchange" else service.flows.spawn
    return next((flow_id for flow_id in before if found(flow_id) is not None), own)


def digest_of(asked: object) -> str:
    """Return the digest that tells whether two calls under one idempotency key made the same request."""
    return hashlib.sha256(msgspec.json.encode(asked, order="sorted")).hexdigest()


def key_conflict(what: str) -> ToolRefused:
    """Return the refusal of an idempotency key that was used for another message, task or text."""
    return ToolRefused(
        "idempotency_conflict", f"idempotencyKey: it was used for another {what}, use a new key"
    )


class Origin(NamedTuple):
    """What a call continues: the budget of its causal chain, and the event that led to it.

    `begins`: nothing led to it, a chain begins here. `session_key` is the session whose run or delivery led to it.
    `counted` are the limits of budgets that hold for what begins (LIMIT-1).
    """

    budget: Budget
    begins: bool = False
    causation: str | None = None
    session_key: str | None = None
    counted: tuple[Counted, ...] = ()

    def provenance(self, channel: str) -> Provenance:
        """Return the provenance of a message: a person, or the event that led to it (PROV-2)."""
        if self.begins:
            return Provenance(kind="external_user", source_channel=channel)
        return Provenance(
            kind="inter_session",
            source_session_key=self.session_key,
            source_channel=channel,
            hops=self.budget.hops,
        )


class MessageRequest(NamedTuple):
    """A message for a session, and the run that answers it, unless it is only recorded.

    `tool` is how it was asked for, `field` what an error names. `spent_by` are the person and the chat that it counts for; its
    session refuses it then where a budget is used up, and the person is told (LIMIT-2).
    """

    run_id: str
    target: str
    tool: str
    field: str
    runs: bool = True
    spent_by: tuple[Named, ...] = ()


def asked_within(
    service: Service, caller: Caller, what: str, words: Callable[[], str], is_same: Callable[[Event], bool]
) -> tuple[str, bool] | None:
    """Return the id that a call within a run or a delivery asks under, and whether an attempt before did: then it is that one's.

    `what` is the tool or method, `words` gives the digest of what is said; `is_same` tells whether an event is what the call begins.
    An id begins as those of its attempt do and is random else, so that it has nothing of the words (ERASE-4). None: nothing that
    could be tried again led to the call.
    """
    cause = cause_of(service, caller)
    if cause is None or cause.of is None:
        return None
    log_ids = service.log.log_ids
    own, *before = (
        ids.derive(log_id, "run", cause.of, attempt)[:_SHARED]
        for attempt in range(cause.attempt, 0, -1)
        for log_id in log_ids
    )
    if cause.attempt > 1:
        said = (cause.of, caller.name, what, words())
        first = ids.derive(log_ids[0], "run", *said, cause.times.next(said))  # as the first logs had it
        again = cause.again(
            partial(_begun_before, service, cause.of, cause.session_key),
            lambda one, event: one == first or (one.startswith(tuple(before)) and is_same(event)),
        )
        if again is not None:
            return again, True
    return own + ids.derive(log_ids[0], "run", service.new_id())[_SHARED:], False


_SHARED: Final = 18
"""How much of an id is alike in all that one attempt begins by other doors."""


def _begun_before(service: Service, of: str, session_key: str) -> dict[str, Event]:
    """Return what was begun since a run or a delivery began, by the ids that it was asked for under, in order."""
    taken = service.reader.runs.taken_version(of)
    stream, at = (ids.delivery_stream(of), 1) if taken is None else (ids.session_stream(session_key), taken)
    since = service.log.stream(stream, after=at - 1, to=at)
    found: dict[str, Event] = {}
    for one in service.log.all(after=since[0].position if since else 0, topics=_BEGINS):
        match one.event:
            case RunQueued(run_id=named) | FlowAccepted(run_id=named):
                found.setdefault(named, one.event)
            case InboundTaken():
                found.setdefault(one.stream.partition(":")[2], one.event)
            case MessageRecorded(message=message):
                found.setdefault(message.id, one.event)
            case _:
                pass
    return found


_BEGINS: Final = topics_of(RunQueued, ExchangeAccepted, SpawnAccepted, InboundTaken, MessageRecorded)


def cause_of(service: Service, caller: Caller) -> Cause | None:
    """Return the cause of a call whose caller does not name its run."""
    return current_cause() or _under_way(service, caller)


def of_run(service: Service, caller: Caller, requester: Requester) -> Requester:
    """Return a caller as the run that it calls in: its model, and the person whose message led to it (TOOLS)."""
    run, config = caller.run, service.config
    if run is not None:
        return msgspec.structs.replace(requester, sender=run.budget.sender, model=run.model)
    if caller.key is None or not config.has_tools_by_sender:
        return requester
    cause = cause_of(service, caller)
    return requester if cause is None else msgspec.structs.replace(requester, sender=cause.budget.sender)


def origin_of(service: Service, caller: Caller, run_id: str) -> Origin:
    """Return what a call continues: its run, or its caller's; else `run_id` begins a chain (LOOP-5)."""
    run, cause = caller.run, cause_of(service, caller)
    if run is not None:
        return Origin(run.budget, causation=run.cause, session_key=caller.key)
    if cause is not None:
        return Origin(cause.budget, causation=cause.event, session_key=cause.session_key)
    path = () if caller.key is None else (caller.key,)
    budget = begun(run_id, path, service.config.session.limits, service.clock.now_ms())
    service.world.time.stopwatch.begin("chain", run_id, at=service.clock.monotonic())
    return Origin(budget, begins=True)


def _under_way(service: Service, caller: Caller) -> Cause | None:
    """Return the run that an agent of ours is at, which calls over the network with a credential of its own."""
    if not caller.of_agent:
        return None
    key, parse = caller.key, service.reader.parse
    return service.world.chains.under_way.of(
        lambda at: at == key if key is not None else caller.reaches(parse(at))
    )


def gone_on(service: Service, origin: Origin, target: str, field: str) -> Budget:
    """Return the rest of the budget for work that a call begins in another session.

    Raises:
        LimitReached: the chain may not come there by one more hop.
    """
    limits = service.config.session.limits
    tripped = check_hop(origin.budget, limits, target)
    if tripped is not None:
        raise _reached(tripped, tripped.error_text(field))
    budget = one_hop_on(origin.budget, target, limits)
    if counts_use(budget):
        service.wait_for_listeners()
    return budget


@contextmanager
def keeping_refusals(
    service: Service, caller: Caller, origin: Origin, tool: str, target: str, *, runs: bool = True
) -> Generator[None]:
    """Record refusals by a guard over the causal chain, in a block (LOOP-5).

    `runs`: a run is asked for there. What its chain had used is said by whoever looked at that.
    """
    try:
        if origin.begins and runs:
            with _spending(
                service, caller, MessageRequest(origin.budget.root, target, tool=tool, field="message")
            ):
                yield
        else:
            yield
    except LimitReached as reached:
        if reached.judged is not None and isinstance(reached.judged.asked, Spend):
            raise  # a budget refused it, and that is recorded
        requester, budget = caller.key or origin.session_key, origin.budget
        used = Chain() if reached.judged is None else reached.judged.known
        far = {"path": budget.path, "hops": budget.hops, "limits": service.config.session.limits}
        judged = Judgement(CarryOn(target=target, runs=runs), msgspec.structs.replace(used, **far))
        reached.judged = judged
        refused = SendRefused(
            requester=requester,
            target=target,
            code="limit",
            limit=reached.limit,
            value=reached.value,
            allowed=reached.allowed,
            chain=budget.path,
            tool=tool,
            root=budget.root,
            credential=caller.credential,
        )
        service.receipts.record(requester, refused, correlation=budget.root, judged=judged)
        raise


@contextmanager
def _spending(service: Service, caller: Caller, asked: MessageRequest) -> Generator[tuple[Counted, ...]]:
    """Count the limits of budgets that hold for a run with which a chain begins, in a block that asks for it (LIMIT-1).

    Raises:
        LimitReached: one of them is used up, and no person is told so by the session.
    """
    budgets, now = service.config.budgets, service.clock.now_ms()
    if not budgets:
        yield ()
        return
    by: tuple[Named, ...] = () if caller.credential is None else (("credential", caller.credential),)
    service.wait_for_listeners()
    names: tuple[Named, ...] = (*asked.spent_by, *by, agent_named(asked.target))
    with service.spending.asking(budgets, names, asked.run_id, now) as counted:
        full = None if asked.spent_by else judge_spending(counted)
        if full is None:
            yield counted
            return
        judged = Judgement(Spend(target=asked.target), Spending(counted=counted))
        refused = SendRefused(
            requester=caller.key,
            target=asked.target,
            code="limit",
            limit=full.setting,
            value=full.used,
            allowed=full.allowed,
            tool=asked.tool,
            root=asked.run_id,
            credential=caller.credential,
        )
        service.receipts.record(caller.key, refused, correlation=asked.run_id, judged=judged)
        raise LimitReached(
            f"{asked.field}: {words_of(full)}",
            limit=full.setting,
            value=full.used,
            allowed=full.allowed,
            judged=judged,
        )


@contextmanager
def reserving(service: Service, caller: Caller, asked: MessageRequest) -> Generator[Origin]:
    """Reserve the run of a message in a block, which gets the origin as it counts in its session.

    Raises:
        LimitReached: the chain that it would go on with has used all that it may.
    """
    origin, chains = origin_of(service, caller, asked.run_id), service.world.chains
    if origin.begins:
        origin = origin._replace(budget=msgspec.structs.replace(origin.budget, path=(asked.target,)))
        if not asked.runs:
            yield origin
            return
        with _spending(service, caller, asked) as counted:
            yield origin._replace(counted=counted)
        return
    with keeping_refusals(service, caller, origin, asked.tool, asked.target, runs=asked.runs):
        budget = gone_on(service, origin, asked.target, asked.field)
        now = service.world.now_of(budget)
        tripped = None
        if asked.runs:
            reserve = partial(chains.reserve, budget, asked.run_id, now, by=asked.run_id)
            tripped = chains.after_reading(reserve)
        if tripped is not None:
            raise _reached(tripped, tripped.error_text(asked.field))
    try:
        yield origin._replace(budget=budget)
    except ToolRefused as refused:
        if refused.code != "unavailable":  # else it may be recorded yet
            chains.release(budget.root, asked.run_id, by=asked.run_id)
        raise


def _reached(tripped: Tripped, error: str) -> LimitReached:
    judged = Judgement(CarryOn(target=""), Chain(spent=tripped.spent, age=tripped.age))
    return LimitReached(
        error, limit=tripped.setting, value=tripped.value, allowed=tripped.allowed, judged=judged
    )


def ask_session(service: Service, key: str, command: Request) -> Accepted:
    """Tell a session's actor a command, and wait until it is durable.

    Raises:
        ToolRefused: it was refused, or the log did not take it in time (`unavailable`).
    """
    return _asked(service, partial(service.supervisor.tell_session, key), command)


def ask_flow(service: Service, command: BeginsFlow | FlowRequest) -> Accepted:
    """Tell a flow's manager a command, and wait until it is durable.

    Raises:
        ToolRefused: it was refused, or the log did not take it in time (`unavailable`).
    """
    return _asked(service, partial(service.supervisor.tell_flow, command.stream), command)


def _asked(service: Service, tell: Callable[[Request], None], command: Request) -> Accepted:
    if service.writer is not None:
        raise ToolRefused("not_supported", "this host only follows the log, ask the host that writes it")
    # In a forked child, or once the log is closed, the threads that would answer are not there.
    with service.refusing_without_store:
        service.log.check()
    answered = FirstAnswer()
    tell(msgspec.structs.replace(command, answer=answered))
    late = f"the log did not take it within {COMMIT_TIMEOUT_S:g} s"
    return answered.wait(service.blocking, COMMIT_TIMEOUT_S, late)


class FirstAnswer:
    """Takes the first answer to a command, on an actor's thread; later ones are dropped."""

    def __init__(self) -> None:
        self._future: Future[Accepted | Refused] = Future()
        self._answer: Accepted | Refused | None = None

    def __call__(self, outcome: Accepted | Refused) -> None:
        """Take an answer."""
        if self._answer is None:
            self._answer = outcome
            if not self._future.done():  # a task that waited for it may have been cancelled
                self._future.set_result(outcome)

    def wait(self, blocking: Threads, seconds: float, late: str) -> Accepted:
        """Return the answer once it is there; `late` is the message of the error if it does not come in time.

        Raises:
            ToolRefused: the command was refused, or there is no answer in time (`unavailable`).
        """
        blocking.wait(self._future, seconds)
        return self._outcome(late)

    def pending(self, seconds: float, late: str, answer: Callable[[], Result]) -> Pending:
        """Return a pending answer for an accepted command; a refusal and a timeout are answers too."""

        def finish() -> Result:
            try:
                self._outcome(late)
            except ToolRefused as refused:
                return dict(refused.as_result())
            return answer()

        return Pending(future=self._future, timeout=seconds, finish=finish, over=_nothing)

    def _outcome(self, late: str) -> Accepted:
        outcome = self._answer
        if outcome is None:
            raise ToolRefused("unavailable", f"{late}, try again")
        if isinstance(outcome, Accepted):
            return outcome
        if outcome.tripped is not None:
            raise _reached(outcome.tripped, outcome.error)
        raise ToolRefused(outcome.code, outcome.error)


def _nothing() -> None:
    """Do nothing: no one has to be told that the wait is over."""


def opening(
    service: Service,
    key: SessionKey,
    *,
    by: OpenedBy,
    chat_type: ChatType | None = None,
    channel: str | None = None,
) -> SessionOpened:
    """Return the event that opens a session, with a new id and the configured sandbox (SPAWN-5)."""
    return SessionOpened(
        key=str(key),
        session_id=service.new_id(),
        agent_id=key.agent_id,
        opened_by=by,
        chat_type=chat_type or key.chat_type,
        channel=channel or key.channel,
        sandboxed=service.config.sandboxed(key.agent_id, main=key.is_main),
    )


def calling_row(service: Service, requester: Requester, known: SessionRow | None = None) -> SessionRow | None:
    """Return the calling session's row, to answer it later; None for the operator and for a missing session.

    `known` is its row, where the call has looked at it already.
    The main session of a configured agent is opened where it does not exist, as it is for a target (SEND-2):
    the loop and a sub-agent's result come to it.
    """
    key = requester.key
    if key is None:
        return None
    row = known or service.sessions.get(str(key))
    if row is not None and row.archived is not None:
        row = None
    if row is None and key.is_main and key.agent_id in service.config.agent_ids:
        ask_session(service, str(key), Patch(values={}, opening=opening(service, key, by="send")))
        row = service.sessions.get(str(key))
    return row

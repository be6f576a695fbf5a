"""The methods of workers: the queue of calls, and what an agent does in a turn that a worker makes (WORK-6 to WORK-8, WORK-12)."""

import hmac
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, Final

import msgspec

from intersession_actors.assembly.methods.acting import done_by, part_of
from intersession_actors.calls.service.arguments import read_arguments
from intersession_actors.calls.service.callers import Call
from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import Service
from intersession_actors.outside.agents.acts import Act, ReadContent
from intersession_actors.outside.workers.desk import Desk
from intersession_actors.outside.workers.remote import RemoteAgents
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.limits import Identity
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_events.basics.errors import LogError, WorkRefused
from intersession_events.basics.plain_json import JsonMapping, is_object
from intersession_events.facts import ready
from intersession_events.log.recorded import Recorded
from intersession_events.log.sent import sent
from intersession_events.log.work_queue import CallId, CallKind, Offer, Taker, Worker

LONGEST_WAIT_S: Final = 60.0
"""How long a worker may wait for a call at a time."""

_Whole = Annotated[int, msgspec.Meta(ge=0, le=2**53 - 1)]


class _Params(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class CallParams(_Params, frozen=True, kw_only=True):
    """One attempt."""

    kind: CallKind
    id: Identity
    attempt: _Whole


@ready
class AnnounceParams(_Params, frozen=True, kw_only=True):
    """`worker.announce`: what a worker has; `agents` and `channels` say by name what it says of each."""

    worker: Identity
    host: Identity
    version: Identity
    agents: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    channels: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    seats: _Whole = 1
    is_draining: bool = False


class AnswerParams(CallParams, frozen=True, kw_only=True):
    """What came of a call: `content` is the JSON of it."""

    content: str


@ready
class AnswerOfWorker(AnswerParams, frozen=True, kw_only=True):
    """`worker.answer`: what came of a call of a worker."""

    worker: Identity


@ready
class TakeParams(_Params, frozen=True, kw_only=True):
    """`worker.take`: up to `most` calls; `wait` in seconds for the first one."""

    worker: Identity
    most: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 1
    wait: Annotated[float, msgspec.Meta(ge=0, le=LONGEST_WAIT_S)] = 0.0


@ready
class NextParams(TakeParams, frozen=True, kw_only=True):
    """`worker.next`: the `answer` of a call that ended, and then what `worker.take` has."""

    answer: AnswerParams


@ready
class RenewParams(_Params, frozen=True, kw_only=True):
    """`worker.renew`: a worker lives, and has these calls."""

    worker: Identity
    calls: Annotated[tuple[CallParams, ...], msgspec.Meta(max_length=10_000)] = ()


@ready
class EventsParams(CallParams, frozen=True, kw_only=True):
    """`worker.events`: the events of a call's stream behind a version."""

    worker: Identity
    after: _Whole = 0


@ready
class LeaveParams(_Params, frozen=True, kw_only=True):
    """`worker.leave`."""

    worker: Identity


@ready
class ActParams(CallParams, frozen=True, kw_only=True):
    """`worker.act`: an act in an attempt that a worker has taken; `secret` is that of its offer."""

    secret: Identity
    act: Act


class GatewayWork:
    """The methods. Workers of a credential have names of their own: none can touch what another's has."""

    def __init__(self, service: Service, workers: RemoteAgents | None, threads: DoorThreads) -> None:
        self._service = service
        self._workers = workers
        self._threads = threads
        self._known = _StreamsKnown()

    def announce(self, call: Call, params: JsonMapping) -> Result:
        """Take in that a worker lives, and what it has."""
        given, desk = read_arguments(AnnounceParams, params), self._desk
        _check("agents", given.agents, call.caller.agents)
        _check("channels", given.channels, call.caller.channels)
        worker = Worker(
            name=_name(call, given.worker),
            host=given.host,
            version=given.version,
            agents=given.agents,
            channels=given.channels,
            seats=given.seats,
            is_draining=given.is_draining,
        )
        with _refusing():
            desk.queue.to_take.announce(worker)
        desk.look()
        return {"aliveSeconds": desk.alive_s}

    def take(self, call: Call, params: JsonMapping) -> Result | Pending:
        """Give calls to a worker. One that waits for them holds no thread."""
        given = read_arguments(TakeParams, params)
        return self._taken(Taker(_name(call, given.worker), given.most), given.wait, {})

    def answer(self, call: Call, params: JsonMapping) -> Result:
        """Take what came of a call, durably."""
        given = read_arguments(AnswerOfWorker, params)
        return self._answered(_name(call, given.worker), given)

    def next(self, call: Call, params: JsonMapping) -> Result | Pending:
        """Take what came of a call, and then give calls to its worker."""
        given = read_arguments(NextParams, params)
        taker = Taker(_name(call, given.worker), given.most)
        told = self._answered(taker.worker, given.answer)
        try:
            return self._taken(taker, given.wait, told)
        except ToolRefused:
            # Its answer is taken; that it was forgotten, it hears as it next takes.
            return {"offers": [], **told}

    def _answered(self, worker: str, given: AnswerParams) -> Result:
        with _refusing():
            counts = self._desk.queue.to_take.answer(worker, _call_of(given), given.content.encode())
        return {"counts": counts}

    def _taken(self, taker: Taker, wait: float, told: Result) -> Result | Pending:
        desk = self._desk

        def made(offers: Sequence[Offer]) -> Result:
            return {"offers": self._with_events(taker.worker, offers), **told}

        def taken() -> Result:
            with _refusing():
                return made(desk.take(taker))

        if not wait:
            return taken()
        # It asks first, so that nothing is missed that is offered while it looks.
        asking = desk.asks(taker, made)
        try:
            found = taken() if asking.looks else None
        except BaseException:
            desk.asks_no_more(asking)
            raise
        if found is not None and found["offers"]:
            desk.asks_no_more(asking)
            return found
        asking.looks = False

        def finish() -> Result:
            return (asking.given.result() if asking.is_chosen else None) or taken()

        return Pending(
            future=asking.given,
            timeout=wait,
            finish=finish,
            over=lambda: desk.asks_no_more(asking),
            is_given=True,
        )

    def renew(self, call: Call, params: JsonMapping) -> Result:
        """Take in that a worker lives, and has calls; return those that are no longer its own."""
        given = read_arguments(RenewParams, params)
        calls = [CallId(one.kind, one.id, one.attempt) for one in given.calls]
        with _refusing():
            lost = self._desk.queue.to_take.renew(_name(call, given.worker), calls)
        return {"lost": [one._asdict() for one in lost]}

    def events(self, call: Call, params: JsonMapping) -> Result:
        """Return events of the stream of a call that the worker has."""
        given = read_arguments(EventsParams, params)
        with _refusing():
            found = self._desk.queue.to_take.events(_name(call, given.worker), _call_of(given), given.after)
        return {"events": _sent(found, _MOST_BYTES)[0]}

    def leave(self, call: Call, params: JsonMapping) -> Result:
        """Take in that a worker ends."""
        given, desk = read_arguments(LeaveParams, params), self._desk
        with _refusing():
            desk.queue.to_take.leave(_name(call, given.worker))
        desk.look()
        return {"ok": True}

    def act(self, call: Call, params: JsonMapping) -> Result | Pending:
        """Do what the agent of a turn does, or what a channel does with its text."""
        return self._by_the_writer(partial(self._act, call, params))

    def _by_the_writer(self, step: Callable[[], Result | Pending]) -> Result | Pending:
        """Make a step of an act. What a writer refuses that another one has replaced counts for nothing (WORK-12).

        One that was paused finds, as it wakes, that its workers were silent and their attempts over, before it hears that it
        writes no more. Its agents would go on with that refusal, and the next writer would take their answer.
        """
        try:
            made = step()
        except ToolRefused as refused:
            if refused.code == "run_over":
                self._check_writes()
            raise
        if isinstance(made, Pending):
            return msgspec.structs.replace(made, finish=partial(self._by_the_writer, made.finish))
        answer = made.get("result")
        if is_object(answer) and answer.get("code") == "unavailable":
            self._check_writes()
        return made

    def _check_writes(self) -> None:
        """Raise `StoreUnavailable` where another writer has the log: any change of the queue is refused then, of no call, too.

        Raises:
            ToolRefused: this process ends (`unavailable`).
        """
        self._desk.check_stays()
        self._desk.queue.withdraw(())

    def _act(self, call: Call, params: JsonMapping) -> Result | Pending:
        given = read_arguments(ActParams, params)
        made = _call_of(given)
        if made.kind == "channel":
            return self._file_of(call, made, given)
        remote = self._remote
        under = remote.under_way(made)
        remote.check(made)
        if under is None:
            raise ToolRefused("unavailable", "run: the writer has only just started, send it again")
        if not hmac.compare_digest(given.secret.encode(), under.secret.encode()):
            raise ToolRefused("run_over", "run: this attempt is another worker's, stop working on it")
        _check("agents", [under.name], call.caller.agents)
        return done_by(self._service, self._threads, under, given.act)

    def _file_of(self, call: Call, made: CallId, given: ActParams) -> Result:
        """Give a channel the content of a file of the text that it sends: it can do nothing else."""
        channels, secret = self._service.world.channels.remote, self._desk.secret_of(made)
        text = None if channels is None else channels.text_of(made)
        if text is None or secret is None or not hmac.compare_digest(given.secret.encode(), secret.encode()):
            raise ToolRefused("run_over", "run: this attempt is over, stop working on it")
        _check("channels", [text.outbound.channel], call.caller.channels)
        if not isinstance(given.act, ReadContent):
            raise invalid("act", "a channel reads the files of its text, and does nothing else in a session")
        if given.act.sha256 not in {file.sha256 for file in text.files}:
            raise invalid("sha256", "the text that is sent has no such file")
        return part_of(partial(self._service.log.files.read, given.act.sha256), given.act.at)

    def _with_events(self, worker: str, offers: Sequence[Offer]) -> list[Result]:
        """Return offers with the events that their worker lacks, where these are few: so it need not ask for them."""
        room, values = _MOST_BYTES, list[Result]()
        for offer in offers:
            value = _offer_value(offer)
            if offer.kind == "agent":
                after = self._known.before(worker, offer)
                if room > 0 and offer.version - after <= _FEW:
                    # They are taken: without the events they are told of all the same.
                    with suppress(LogError):
                        found = self._service.log.stream(offer.stream, after=after, to=offer.version)
                        value["events"], size = _sent(found, room)
                        room -= size
            values.append(value)
        return values

    @property
    def _remote(self) -> RemoteAgents:
        if self._workers is None:
            raise ToolRefused("not_supported", "a fork has no workers: what it does stays in it")
        return self._workers

    @property
    def _desk(self) -> Desk:
        return self._remote.desk


_MOST_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of events one answer has, unless a single one has more."""

_FEW: Final = 32
"""How many events go along with an offer at most. A turn comes to three, and more with tools."""

_STREAMS: Final = 10_000
"""Of how many streams of workers it is remembered up to where they were given."""


class _StreamsKnown:
    """Up to which version each worker was given the streams of its calls. What is forgotten, or wrong, it asks for."""

    def __init__(self) -> None:
        self._versions: OrderedDict[tuple[str, str], int] = OrderedDict()

    def before(self, worker: str, offer: Offer) -> int:
        """Note that a worker takes a call; return up to which version it has had the stream, 0 where that is not known."""
        # Without a lock: a worker takes one call after the other, and each step is one of the interpreter's.
        before = self._versions.pop((worker, offer.stream), 0)
        self._versions[worker, offer.stream] = offer.version
        if len(self._versions) > _STREAMS:
            self._versions.popitem(last=False)
        return before


def _sent(events: Sequence[Recorded], room: int) -> tuple[list[object], int]:
    """Return the first events as JSON, as many as there is room for, but at least one; and their bytes."""
    values, size = list[object](), 0
    for recorded in events:
        event = bytes(sent(recorded))
        if values and size + len(event) > room:
            break
        size += len(event)
        values.append(msgspec.json.decode(event))
    return values, size


def _name(call: Call, worker: str) -> str:
    """Return what a worker is called in the queue."""
    credential = call.caller.credential
    return worker if credential is None else f"{credential}/{worker}"


def _call_of(given: CallParams) -> CallId:
    return CallId(given.kind, given.id, given.attempt)


def _check(field: str, names: Iterable[str], globs: Sequence[str]) -> None:
    for name in names:
        if not globs:
            advice = f'give it the scope "worker" and {field} (gateway.auth.credentials)'
            raise ToolRefused("forbidden", f"{field}: this credential has none; {advice}")
        if not any(fnmatchcase(name, glob) for glob in globs):
            raise ToolRefused(
                "forbidden",
                f"{field}: {name[:64]!r} is not among the {field} of this credential (gateway.auth.credentials)",
            )


@contextmanager
def _refusing() -> Generator[None]:
    try:
        yield
    except WorkRefused as refused:
        raise invalid("worker", str(refused)) from None


def _offer_value(offer: Offer) -> Result:
    return {
        "kind": offer.kind,
        "id": offer.id,
        "attempt": offer.attempt,
        "name": offer.name,
        "stream": offer.stream,
        "version": offer.version,
        "secret": offer.secret,
        "contextHash": offer.context_hash,
        "content": offer.content.decode(),
        "deadline": offer.deadline,
    }

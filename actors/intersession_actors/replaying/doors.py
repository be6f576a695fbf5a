"""What doors decide before an actor hears of it, decided again: visibility, the send policy, loops, who may start whom, budgets.

Each is asked as it was asked then: of the sessions as they stood, and of the settings in force. A door that was asked while a
session was patched may have seen it before or after; whichever it saw is right. What a door looks up elsewhere is not asked
again: names that were resolved, cycles of waiting, how many sub-agents were at work.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from intersession_actors.config import Config
from intersession_actors.exchange import OpenExchange
from intersession_actors.policy import (
    SeeSession,
    SpawnRefused,
    SpawnWish,
    Verdict,
    begun,
    check_hop,
    effective_visibility,
    judge_access,
    judge_spawn,
    one_hop_on,
    sight_of,
    why_no_loop,
)
from intersession_actors.replaying.recording import Recording
from intersession_actors.session import CheckSend, Enqueue, Session, evolve
from intersession_actors.spawn import OpenSpawn
from intersession_actors.streams import Refused, RulesInForce
from intersession_events import facts
from intersession_events.facts import Budget, ExchangeAccepted, Limits, SessionOpened, SpawnAccepted
from intersession_events.ids import session_stream
from intersession_events.keys import SessionKey
from intersession_events.log import Recorded

_CLOSE_MS = 1000
_NEVER = 1 << 62
"""A door looks at a session some time before what it lets in is recorded."""


class Refusal(NamedTuple):
    """What would not be let in today."""

    code: str
    error: str


class _Stood(NamedTuple):
    """What the send policy looks at in a session, until when it was so, and the position and version of what changed it."""

    session: Session
    until_ms: int
    until: int
    version: int


class Doors:
    """The doors of a replay, as far as it has come."""

    def __init__(self, recording: Recording, rules: RulesInForce) -> None:
        self._recording = recording
        self._rules = rules
        self._sessions: dict[str, Session] = {}
        self._before: dict[str, list[_Stood]] = {}
        self._versions: dict[str, int] = {}

    def judged(
        self, recorded: Recorded, command: OpenExchange | OpenSpawn, config: Config
    ) -> OpenExchange | OpenSpawn | Refusal:
        """Return the command that begins a flow as a door would give it today, or why none would."""
        if command.accepted.inferred:
            return command
        budget = self.goes_on(command.accepted, config)
        if isinstance(command, OpenSpawn):
            refusal = self.spawned(command.accepted, config) or budget
            if isinstance(refusal, Refusal):
                return refusal
            return command if budget is None else msgspec.structs.replace(command, budget=budget)
        judged = self.sent(recorded, command.accepted, config)
        if isinstance(judged, Refusal):
            return judged
        if isinstance(budget, Refusal):
            return budget
        if command.budget == judged.budget:
            judged = msgspec.structs.replace(judged, settings=config.session.exchange)
        command = msgspec.structs.replace(command, accepted=judged)
        return command if budget is None else msgspec.structs.replace(command, budget=budget)

    def sent(
        self, recorded: Recorded, accepted: ExchangeAccepted, config: Config
    ) -> ExchangeAccepted | Refusal:
        """Return what a send is accepted with today, or that it is not."""
        if not self._knows(accepted.requester):
            return accepted
        asker = self._rules.requester(self._opened(accepted.requester))
        main_key = config.session.main_key
        target = SessionKey.recorded(accepted.target, main_key=main_key)
        own = accepted.requester and SessionKey.recorded(accepted.requester, main_key=main_key)
        in_tree = self._in_tree(accepted.requester, accepted.target)
        sight = msgspec.structs.replace(sight_of(config, asker), in_tree=in_tree)
        denial = judge_access(SeeSession(key=accepted.target), sight)
        if denial is not None:
            return Refusal(denial.code, f"sessionKey: {', '.join(denial.settings) or denial.code}")
        policy = [
            self._judged(accepted.target, _channel(stood), stood)
            for stood in self._as_judged(recorded, accepted)
        ]
        said = next((one for one in policy if one.rule == accepted.send_rule), policy[-1])
        if not said.allowed and accepted.send_rule is not None:
            return Refusal("policy_denied", said.rule)
        reason = why_no_loop(config.session.agent_to_agent.one_way, own or None, target)
        sees = None if asker.key is None else effective_visibility(sight)
        return msgspec.structs.replace(
            accepted,
            send_rule=said.rule,
            visibility=sees,
            requester_run_id=self._run_named(accepted),
            loop=reason is None,
            loop_reason=reason,
        )

    def spawned(self, accepted: SpawnAccepted, config: Config) -> Refusal | None:
        """Return why a spawn would not be accepted today."""
        if not self._knows(accepted.requester):
            return None
        wish = SpawnWish(
            agent_id=accepted.agent_id,
            mode=accepted.mode,
            thread=accepted.thread is not None,
            cleanup=accepted.cleanup,
        )
        verdict = judge_spawn(config, self._rules.requester(self._opened(accepted.requester)), wish)
        if isinstance(verdict, SpawnRefused):
            return Refusal(verdict.code, verdict.error)
        policy = self._rules.judge_child(accepted.child)
        return None if policy.allowed else Refusal("policy_denied", policy.rule)

    def asked(self, key: str, command: Enqueue, limits: Sequence[Limits]) -> Enqueue:
        """Return a message as a door would hand it on today that somebody outside of all flows asks an answer for.

        `limits` are those in force, and those that were before: a door looks some time before what it lets in is recorded.
        """
        budget = None if command.queue is None else command.queue.budget
        if command.queue is None or command.queue.flow is not None or budget is None:
            return command
        path = (key,) if budget.root == command.queue.run_id else (*budget.path[:-1], key)
        given = budget.limits if budget.limits in limits else limits[0]
        return msgspec.structs.replace(
            command, budget=msgspec.structs.replace(budget, path=path, limits=given)
        )

    def _run_named(self, accepted: ExchangeAccepted) -> str | None:
        """Return the run that a caller was at, if it is one of its session's."""
        run, requester = accepted.requester_run_id, accepted.requester
        if run is None or requester is None:
            return run
        stream = session_stream(requester)
        of_run = self._recording.of_run(run)
        return run if any(item.stream == stream for item in of_run) else None

    def goes_on(self, accepted: ExchangeAccepted | SpawnAccepted, config: Config) -> Budget | Refusal | None:
        """Return what the causal chain of a send or a spawn may use from there on today, or that it may not come there (LOOP-5).

        None where it is not known with what the caller went on.
        """
        recorded, requester = accepted.budget, accepted.requester
        if recorded is None or requester is None:
            return None
        limits = config.session.limits
        before = begun(accepted.run_id, (requester,), limits, recorded.started_ms)
        if recorded.root != accepted.run_id:
            running = self._session(requester).running
            if running is None or running.waiting.queued.run_id != accepted.requester_run_id:
                return None
            before = running.waiting.budget
        if isinstance(accepted, ExchangeAccepted):
            target, field = accepted.target, "sessionKey"
        else:
            target, field = accepted.child, "task"
        tripped = check_hop(before, limits, target)
        if tripped is not None:
            return Refusal("limit", tripped.told(field))
        return one_hop_on(before, target, limits)

    def checked(self, delivery: str, asked: CheckSend, key: str) -> CheckSend:
        """Return the question whether a text may go out, so that it is answered as the session stood when it was asked.

        Between the word of a session and what the outbox records of it, somebody may have changed the session's settings.
        """
        told = asked.answer

        def answered(verdict: Verdict | Refused) -> None:
            if told is not None:
                told(self._of_then(delivery, asked.channel, key, verdict))

        return msgspec.structs.replace(asked, answer=answered)

    def stepped(self, flow: str, step: Enqueue, key: str) -> Enqueue | Refused:
        """Return the step of a flow as a session took it up that would not have it: the send policy's word is of a moment before."""
        if not step.check_policy:
            return step
        ahead = [item.event for item in self._recording.append_ahead(flow)]
        denied = next((note for reason, note in map(_why_no_turn, ahead) if reason == "policy_denied"), None)
        for stood in self._stood(key, since=self._recording.looked_since(flow)):
            verdict = self._judged(key, stood.channel, stood)
            if verdict.allowed and denied is None:
                return msgspec.structs.replace(step, check_policy=False)
            words = f"sessionKey: {verdict.rule}"
            if not verdict.allowed and denied == words:
                return Refused(code="policy_denied", error=words)
        return step

    def _judged(self, key: str, channel: str | None, stood: Session) -> Verdict:
        return self._rules.judge_send(
            key=key, channel=channel, chat_type=stood.chat_type, override=stood.send_override
        )

    def _of_then(
        self, delivery: str, channel: str | None, key: str, verdict: Verdict | Refused
    ) -> Verdict | Refused:
        coming = self._recording.ahead(delivery)
        match coming.event if coming is not None else None:
            case facts.DeliveryStarted(rule=rule):
                was = (True, rule)
            case facts.DeliveryDenied(rule=rule):
                was = (False, rule)
            case _:
                return verdict
        since = self._recording.past(delivery)[-1].position
        said = [self._judged(key, channel or stood.channel, stood) for stood in self._stood(key, since=since)]
        return next((one for one in said if (one.allowed, one.rule) == was), verdict)

    # --- the sessions as they stood

    def _as_judged(self, recorded: Recorded, accepted: ExchangeAccepted) -> Iterable[Session]:
        """Return how the target of a send stood when that was judged; in each way that it may have, where that was not recorded."""
        if accepted.target_version is None:
            return self._stood(
                accepted.target,
                since=self._recording.caused_at(recorded),
                since_ms=recorded.time - _CLOSE_MS,
            )
        return (
            (self._at(accepted.target, accepted.target_version),) if accepted.target_version else (Session(),)
        )

    def _at(self, key: str, version: int) -> Session:
        """Return what the send policy looked at in a session when its stream had come so far."""
        now = self._session(key)
        return next((stood.session for stood in self._before.get(key, ()) if stood.version > version), now)

    def _knows(self, key: str | None) -> bool:
        """Whether the recording has how a session was opened that asked; the operator is none."""
        return key is None or self._session(key).opened is not None

    def _opened(self, key: str | None) -> SessionOpened | None:
        return None if key is None else self._session(key).opened

    def _in_tree(self, above: str | None, target: str) -> bool:
        """Whether one session started another one, directly or not."""
        seen = set[str]()
        at: str | None = target
        while at is not None and at not in seen:
            seen.add(at)
            opened = self._opened(at)
            at = None if opened is None else opened.spawned_by
            if at is not None and at == above:
                return True
        return False

    def _stood(self, key: str, *, since: int, since_ms: int = _NEVER) -> Iterator[Session]:
        """Yield how a session stood since a position or a time, whichever is earlier, the present last."""
        now = self._session(key)
        for stood in self._before.get(key, ()):
            if stood.until_ms >= since_ms or stood.until > since:
                yield stood.session
        yield now

    def _session(self, key: str) -> Session:
        stream = session_stream(key)
        if key not in self._sessions and (begun := self._recording.begun.get(stream)) is not None:
            self._sessions[key], self._versions[key] = begun.session, begun.version
        state, version = self._sessions.get(key, Session()), self._versions.get(key, 0)
        while version < self._recording.version(stream):
            version += 1
            recorded = self._recording.at(stream, version)
            if recorded is None:
                break
            after = evolve(state, recorded)
            if _was_changed(state, after):
                self._before.setdefault(key, []).append(
                    _Stood(state, recorded.time, recorded.position, version)
                )
            state = after
        self._sessions[key], self._versions[key] = state, version
        return state


def _why_no_turn(event: facts.Event) -> tuple[facts.LoopEnd | None, str | None]:
    """Return why a loop ended, or would end, by an event, and what that notes."""
    match event:
        case facts.LoopEnded(reason=reason, note=note) | facts.ExchangeHeld(next_end=reason, next_note=note):
            return reason, note
        case _:
            return None, None


def _channel(session: Session) -> str | None:
    opened, route = session.opened, session.route
    return (opened and opened.channel) or (route and route.channel) or session.channel


def _was_changed(before: Session, after: Session) -> bool:
    """Whether an event changed what the send policy looks at. Most are of runs, and leave all of it as it is."""
    if (
        before.opened is after.opened
        and before.route is after.route
        and before.channel is after.channel
        and before.chat_type is after.chat_type
        and before.settings is after.settings
    ):
        return False
    return _looked_at(before) != _looked_at(after)


def _looked_at(session: Session) -> tuple[object, ...]:
    return _channel(session), session.chat_type, session.send_override

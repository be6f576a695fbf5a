"""Makes the events of a reconstructed exchange's stream, marked as inferred, with the evidence for each (IMP-4). Pure."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from intersession_events import facts
from intersession_events.basics import ids
from intersession_events.basics.plain_json import JsonObject
from intersession_events.transcripts.openclaw.reading.foreign_json import a_text
from intersession_events.transcripts.openclaw.reading.lines import Line, evidence_of
from intersession_events.transcripts.openclaw.reconstruction.drafts import (
    Links,
    Place,
    Planned,
    StreamPlan,
    beside,
)
from intersession_events.transcripts.openclaw.reconstruction.exchanges import REPLY_SKIP, Exchange, Turn
from intersession_events.transcripts.openclaw.reconstruction.steps import Step

ANNOUNCE_SKIP: Final = "ANNOUNCE_SKIP"
_TURN_LIMIT: Final = "session.agentToAgent.maxPingPongTurns"
_DEFAULT_WAIT_MS: Final = 30_000


class Chain(NamedTuple):
    """A run's place in a causal chain."""

    sessions: tuple[str, ...]
    hops: int
    root: str
    run_id: str
    started_ms: int


class World(NamedTuple):
    """What the events need to know beside the exchange itself.

    `channels` are those of the sessions, `routed` the sessions that OpenClaw could have delivered to, `mirrors` the
    lines that note a text as delivered, by text.
    """

    log_id: str
    max_turns: int
    links: Links
    channels: Mapping[str, str]
    routed: Collection[str]
    mirrors: Mapping[str, Sequence[Line]]


def exchange_id_of(log_id: str, exchange: Exchange) -> str:
    """Return the id of an exchange: it depends on its first message alone."""
    message = exchange.primary.at.step.message
    return ids.derive(
        log_id, "import", "exchange", exchange.target, exchange.primary.at.session_id, message.identity
    )


def exchange_facts(
    exchange: Exchange, world: World, chains: dict[tuple[str, int], Chain], used: set[tuple[str, int]]
) -> list[Planned]:
    """Return the events of an exchange's stream.

    `chains` knows the chain of each message seen so far, and learns those of this exchange; `used` learns which
    mirror was its announce.
    """
    return _Facts(exchange, world, chains, used).all()


class _Facts:
    def __init__(
        self,
        exchange: Exchange,
        world: World,
        chains: dict[tuple[str, int], Chain],
        used: set[tuple[str, int]],
    ) -> None:
        self._exchange = exchange
        self._world = world
        self._chains = chains
        self._used = used
        self._id = exchange_id_of(world.log_id, exchange)
        self._plan = StreamPlan(world.log_id, ids.exchange_stream(self._id))
        primary = exchange.primary.at.step
        told = a_text(exchange.send.call.details.get("runId")) if exchange.send is not None else None
        self._run_id = told or ids.derive(world.log_id, "import", self._id, "run")
        self._wait_ms = exchange.send.wait_ms if exchange.send is not None else _DEFAULT_WAIT_MS
        self._root = world.links.root_of(world.links.id_of(primary.message))
        self._closed: tuple[facts.CloseReason, str | None] = ("inferred", None)

    def all(self) -> list[Planned]:
        self._accepted()
        self._primary()
        if self._exchange.primary.at.step.status == "ok" and (
            self._exchange.primary.at.step.said is not None or self._exchange.turns or self._exchange.announce
        ):
            self._turns()
            self._announce()
        self._add(facts.ExchangeClosed(reason=self._closed[0], note=self._closed[1]), self._after())
        return self._plan.planned

    def _accepted(self) -> None:
        exchange, at = self._exchange, self._exchange.primary.at
        send, message = exchange.send, at.step.message
        provenance = message.message.provenance if message.message is not None else None
        chain = self._chain()
        self._learn(exchange.primary, chain, self._run_id)
        self._add(
            facts.ExchangeAccepted(
                exchange_id=self._id,
                run_id=self._run_id,
                target=exchange.target,
                target_session_id=at.session_id,
                message_id=_message_id(message),
                message=send.message if send is not None else at.step.text,
                settings=facts.ExchangeSettings(
                    max_turns=self._world.max_turns, turn_timeout_ms=self._wait_ms
                ),
                caller=exchange.requester,
                requester=exchange.requester,
                requester_session_id=send.within.session_id if send is not None else None,
                requester_channel=provenance.source_channel if provenance is not None else None,
                requester_run_id=chain.run_id or None,
                target_channel=self._world.channels.get(exchange.target),
                loop=exchange.requester != exchange.target,
                loop_reason="inferred" if exchange.requester == exchange.target else None,
                timeout_ms=send.timeout_ms if send is not None else 0,
                budget=facts.Budget(
                    root=chain.root, started_ms=chain.started_ms, path=chain.sessions, hops=chain.hops
                ),
                inferred=True,
                evidence=self._evidence(),
            ),
            beside(message),
            causation=self._world.links.id_of(send.call.line if send is not None else message),
        )

    def _chain(self) -> Chain:
        """Return the chain this exchange is a link of: a call made within a step of another one prolongs that."""
        exchange = self._exchange
        parent = (
            self._chains.get(exchange.send.within.step.message.place) if exchange.send is not None else None
        )
        if parent is None:
            started = exchange.primary.at.step.time
            return Chain((exchange.requester, exchange.target), 1, self._run_id, "", started)
        return parent._replace(sessions=(*parent.sessions, exchange.target), hops=parent.hops + 1)

    def _learn(self, turn: Turn, chain: Chain, run_id: str) -> None:
        self._chains[turn.at.step.message.place] = chain._replace(run_id=run_id)

    def _primary(self) -> None:
        step = self._exchange.primary.at.step
        self._add(
            facts.TurnEnded(
                turn=0,
                speaker=self._exchange.target,
                run_id=self._run_id,
                status=step.status,
                said="nothing" if step.said is None else "text",
                text=step.said,
                error=step.error,
                usage=step.usage,
            ),
            beside(step.reply or step.message),
            causation=self._world.links.id_of(step.reply),
        )
        match step.status:
            case "ok":
                self._closed = ("no_reply", None)
            case "aborted":
                self._closed = ("aborted", step.error)
            case "interrupted":
                self._closed = ("inferred", step.error)
            case "error" | "timeout":
                self._closed = ("run_failed", step.error)

    def _turns(self) -> None:
        turns = self._exchange.turns
        chain = self._chains[self._exchange.primary.at.step.message.place]
        for number, turn in enumerate(turns, start=1):
            step = turn.at.step
            run_id = ids.derive(self._world.log_id, "import", self._id, "turn", number)
            self._learn(turn, chain, run_id)
            self._add(
                facts.TurnRequested(
                    turn=number, speaker=turn.at.key, run_id=run_id, message_id=_message_id(step.message)
                ),
                beside(step.message),
                step=number,
            )
            late = number == len(turns) and self._is_late(step)
            said = None if late else step.said
            self._add(
                facts.TurnEnded(
                    turn=number,
                    speaker=turn.at.key,
                    run_id=run_id,
                    status="timeout" if late else step.status,
                    said="nothing" if said is None else "skip" if said == REPLY_SKIP else "text",
                    text=said,
                    error=f"the reply came after the wait of {self._wait_ms} ms" if late else step.error,
                    usage=step.usage,
                ),
                self._replied_at(step),
                causation=self._world.links.id_of(step.reply),
                step=number,
            )
        reason, limit, note = self._why_ended()
        self._add(facts.LoopEnded(reason=reason, turns=len(turns), limit=limit, note=note), self._after())

    def _why_ended(self) -> tuple[facts.LoopEnd, str | None, str | None]:
        """Return why there is no further turn, as far as the transcripts show it."""
        exchange = self._exchange
        if exchange.requester == exchange.target:
            return "inferred", None, "a session that sends to itself has no loop"
        if not exchange.goes_on:
            return (
                "inferred",
                None,
                "the reply came after the wait was over, and then OpenClaw begins no loop",
            )
        if exchange.turns:
            step = exchange.last.at.step
            if self._is_late(step):
                return "turn_timeout", None, None
            if step.status == "aborted":
                return "aborted", None, step.error
            if step.status != "ok":
                return "turn_failed", None, step.error
            if step.said is None:
                return "no_text", None, None
            if step.said == REPLY_SKIP:
                return "reply_skip", None, None
        if len(exchange.turns) >= self._world.max_turns:
            return "turn_limit", _TURN_LIMIT, None
        return (
            "inferred",
            None,
            f"no turn {len(exchange.turns) + 1} is in the transcripts, and nothing says why",
        )

    def _announce(self) -> None:
        announce = self._exchange.announce
        if announce is None:
            self._closed = ("inferred", "no announce step is in the transcripts")
            return
        step = announce.at.step
        run_id = ids.derive(self._world.log_id, "import", self._id, "announce")
        self._add(
            facts.AnnounceRequested(
                speaker=announce.at.key, run_id=run_id, message_id=_message_id(step.message)
            ),
            beside(step.message),
        )
        decided = facts.AnnounceDecided(text=step.said, run_id=run_id, usage=step.usage)
        if step.status != "ok":
            decided = msgspec.structs.replace(decided, text=None, silent=True, why="run_failed")
            self._closed = ("announce_failed", step.error)
        elif step.said is None or step.said == ANNOUNCE_SKIP:
            why = "no_text" if step.said is None else "announce_skip"
            decided = msgspec.structs.replace(decided, text=None, silent=True, why=why)
            self._closed = ("silent", None)
        else:
            self._closed = self._delivered(step, step.said)
        self._add(decided, beside(step.reply or step.message), causation=self._world.links.id_of(step.reply))

    def _delivered(self, step: Step, text: str) -> tuple[facts.CloseReason, str | None]:
        for line in self._world.mirrors.get(text, ()):
            if line.place not in self._used and line.time >= step.end:
                self._used.add(line.place)
                return "announced", f"noted as delivered at {line}"
        if self._exchange.target not in self._world.routed:
            return "no_route", None
        return "inferred", "there was a route, but nothing says whether it was delivered"

    def _is_late(self, step: Step) -> bool:
        """Whether a turn's reply came after OpenClaw had given up waiting; there is no turn after such a one."""
        return step.status == "ok" and step.end - step.time > self._wait_ms

    def _replied_at(self, step: Step) -> Place:
        announce = self._exchange.announce
        place = beside(step.reply or step.message)
        if announce is not None and announce.at.step.time < place.time:
            # A late reply: the exchange had gone on by then.
            return beside(announce.at.step.message, time=announce.at.step.time)._replace(rank=-2)
        return place

    def _after(self) -> Place:
        return self._plan.planned[-1].place

    def _add(
        self, event: facts.ExchangeEvent, place: Place, *, causation: str | None = None, step: int = 0
    ) -> None:
        cause = causation or self._plan.last_id
        self._plan.add(event, place, causation=cause, correlation=self._root, step=step)

    def _evidence(self) -> str:
        exchange = self._exchange
        evidence: JsonObject = {"message": evidence_of(exchange.primary.at.step.message)}
        if exchange.send is not None:
            call = exchange.send.call
            evidence["call"] = evidence_of(call.line)
            evidence["result"] = evidence_of(call.result)
            evidence["status"] = call.status
        else:
            evidence["call"] = None
        evidence["reply"] = evidence_of(exchange.primary.at.step.reply)
        evidence["turns"] = [_turn_evidence(turn) for turn in exchange.turns]
        evidence["announce"] = _turn_evidence(exchange.announce) if exchange.announce is not None else None
        return msgspec.json.encode(evidence, order="sorted").decode()


def _turn_evidence(turn: Turn) -> JsonObject:
    evidence: JsonObject = {
        "message": evidence_of(turn.at.step.message),
        "reply": evidence_of(turn.at.step.reply),
    }
    if turn.stale:
        evidence["stale"] = True
    if turn.rivals:
        evidence["rivals"] = turn.rivals
    return evidence


def _message_id(line: Line) -> str:
    return line.message.id if line.message is not None else ""

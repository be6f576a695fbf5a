"""What the records of doors owe: each tells of a judgement that was made, and what that knew is what the world held."""

import json
from collections.abc import Iterator
from typing import Any

from intersession_actors.hindsight.replaying.redeciding.judging_again import judged_in
from intersession_actors.owners.streams.judgements import judged_by_door
from intersession_actors.owners.streams.records import record_in
from intersession_actors.rules.errors import Judgement
from intersession_actors.rules.policy.access import ListSessions, SeeSession, Sight
from intersession_actors.rules.policy.chain import CarryOn, Chain, WaitFor, Waits
from intersession_actors.rules.policy.sending import Speak, Speech
from intersession_actors.rules.policy.spawning import Nursery
from intersession_events.basics.ids import session_stream, spawn_stream
from intersession_events.facts import (
    ChildEnded,
    ConfigLoaded,
    ExchangeAccepted,
    RunQueued,
    SendRefused,
    SessionArchived,
    SessionOpened,
    SessionPatched,
    SpawnAccepted,
    SpawnClosed,
)
from intersession_events.log.recorded import Recorded
from support.history.evidence import Evidence


def judged_as_it_was(evidence: Evidence) -> Iterator[str]:
    """C8: what the record of a door says was known is what the log and the settings held when it was judged."""
    if evidence.judged is None:
        return
    for item in evidence.events:
        for judgement in _judgements(item):
            for words in _wrong(evidence, item, judgement):
                yield f"#{item.position} of {item.stream} knew {item.decision}, and {words}"


def _judgements(item: Recorded) -> Iterator[Judgement]:
    if not item.decision:
        return
    found = judged_in(item, lambda _: None)
    if found is not None:
        yield found
    if isinstance(item.event, ExchangeAccepted | SpawnAccepted):
        yield from judged_by_door(record_in(item.decision), item.event, lambda _: None)


def _wrong(evidence: Evidence, item: Recorded, judgement: Judgement) -> Iterator[str]:
    match (judgement.asked, judgement.known):
        case CarryOn() as hop, Chain() as chain:
            yield from _wrong_chain(evidence, item, hop, chain)
        case ListSessions(), Sight() as sight:
            yield from _wrong_settings(evidence, sight, item.position)
        case WaitFor(), Waits() as waits:
            made = [known for _, asked, known in evidence.judged or () if asked == judgement.asked]
            if not any(isinstance(one, Waits) and {*waits.waits} <= {*one.waits} for one in made):
                yield "nobody waited so when it was judged"
        case _:
            heads = [
                head
                for head, *made in evidence.judged or ()
                if tuple(made) == judgement and head <= item.position
            ]
            if not heads:
                yield "nothing was judged so"
            found = [[*_wrong_at(evidence, judgement, head)] for head in heads]
            if found and all(found):
                yield found[-1][0]


def _wrong_at(evidence: Evidence, judgement: Judgement, head: int) -> Iterator[str]:
    match (judgement.asked, judgement.known):
        case SeeSession() as seen, Sight() as sight:
            yield from _wrong_settings(evidence, sight, head)
            if seen.key is not None:
                yield from _wrong_session(evidence, seen.key, sight, head, by_key=seen.by_key)
        case Speak() as spoken, Speech() as speech:
            override = _override(evidence, spoken.key, head)
            if speech.override != override:
                yield f"the session's own setting was {override}"
        case _, Nursery(requester=str() as requester) as nursery:
            at_work = _at_work(evidence, requester, head)
            if nursery.running != at_work:
                yield f"{at_work} sub-agents were at work"
        case _:
            pass


def _wrong_settings(evidence: Evidence, sight: Sight, head: int) -> Iterator[str]:
    tools = _config(evidence, head)["tools"]
    settings = (tools["sessions"]["visibility"], tools["agentToAgent"]["enabled"])
    if (sight.visibility, sight.agent_to_agent) != settings:
        yield f"the settings were {settings}"


def _wrong_session(evidence: Evidence, key: str, sight: Sight, head: int, *, by_key: bool) -> Iterator[str]:
    there = _opened(evidence, key, head) is not None
    if by_key and sight.exists != there and not key.endswith(":main"):
        yield f"{key} was {'there' if there else 'not there'}"
    above = _above(evidence, key, head)
    if sight.requester is not None and sight.in_tree != (sight.requester in above):
        yield f"above {key} were {above}"


def _wrong_chain(evidence: Evidence, item: Recorded, hop: CarryOn, chain: Chain) -> Iterator[str]:
    del hop
    root = item.event.root if isinstance(item.event, SendRefused) else item.correlation
    queued = [event.budget for _, event in evidence.of(RunQueued) if event.budget is not None]
    came = [(one.path, one.hops) for one in queued if one.root == root]
    if chain.hops and (chain.path, chain.hops) not in came:
        yield f"the chain had come {came}"
    limits = _config(evidence, item.position)["session"]["agentToAgent"]["limits"]
    if (chain.limits.hops, chain.limits.runs) != (limits["hops"], limits["runs"]):
        yield f"the limits were {limits}"


def _config(evidence: Evidence, head: int) -> dict[str, Any]:
    loaded = [event.config for item, event in evidence.of(ConfigLoaded) if item.position <= head]
    config: dict[str, Any] = json.loads(loaded[-1])
    return config


def _opened(evidence: Evidence, key: str, head: int) -> SessionOpened | None:
    """Return how a session was opened that is there; None where it is not."""
    found: SessionOpened | None = None
    for item in evidence.streams.get(session_stream(key), ()):
        if item.position <= head and isinstance(item.event, SessionOpened):
            found = item.event
        if item.position <= head and isinstance(item.event, SessionArchived):
            found = None
    return found


def _above(evidence: Evidence, key: str, head: int) -> list[str]:
    above: list[str] = []
    at: str | None = key
    while at is not None:
        opened = [
            one.event.spawned_by
            for one in evidence.streams.get(session_stream(at), ())
            if one.position <= head and isinstance(one.event, SessionOpened)
        ]
        at = opened[-1] if opened else None
        if at is not None:
            above.append(at)
    return above


def _override(evidence: Evidence, key: str, head: int) -> str | None:
    override: str | None = None
    for item in evidence.streams.get(session_stream(key), ()):
        if item.position <= head and isinstance(item.event, SessionOpened):
            override = None
        if item.position <= head and isinstance(item.event, SessionPatched):
            patched = item.event
            if "sendPolicy" in patched.values or "sendPolicy" in patched.cleared:
                override = patched.values.get("sendPolicy")
    return override


def _at_work(evidence: Evidence, requester: str, head: int) -> int:
    begun = {
        event.spawn_id
        for item, event in evidence.of(SpawnAccepted)
        if event.requester == requester and item.position <= head
    }
    return sum(
        not any(
            isinstance(one.event, ChildEnded | SpawnClosed) and one.position <= head
            for one in evidence.streams[spawn_stream(spawn_id)]
        )
        for spawn_id in begun
    )

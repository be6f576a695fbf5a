"""Stored bytes are canonical JSON, and anybody with an RFC 8785 library can hash them again."""

import hashlib

import msgspec
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from intersession_events.facts import registry
from intersession_events.log.envelope import FIRST, seal, unseal
from intersession_events.log.recorded import Draft
from intersession_events.log.storable import payload_of
from support.vocabulary import strategy_of

TEXT = st.text(st.characters(codec="utf-8"), max_size=30)
EVENTS = st.sampled_from(list(registry.TOPICS.values())).flatmap(strategy_of)


@given(
    event=EVENTS,
    name=TEXT,
    stream=TEXT,
    causes=st.tuples(st.none() | TEXT, st.none() | TEXT),
    numbers=st.tuples(st.integers(0, 2**53 - 1), st.integers(1, 2**31), st.integers(1, 1000)),
    salt=st.binary(min_size=16, max_size=16),
    decision=st.sampled_from(["", "{}", '{"asked":"ä\\n"}']),
)
def test_hash_and_bytes_are_those_of_rfc_8785(
    *,
    event: registry.Event,
    name: str,
    stream: str,
    causes: tuple[str | None, str | None],
    numbers: tuple[int, int, int],
    salt: bytes,
    decision: str,
) -> None:
    time, version, epoch = numbers
    draft = Draft(
        event=event, id=name, time=time, causation=causes[0], correlation=causes[1], decision=decision
    )
    topic, payload = payload_of(draft)
    prev = hashlib.sha256(name.encode()).hexdigest() if version > 1 else FIRST

    state, recorded = seal(
        draft, topic, payload, log_id="log", stream=stream, version=version, epoch=epoch, prev=prev, salt=salt
    )

    stored = msgspec.json.decode(state)
    assert rfc8785.dumps(stored) == state
    digest = hashlib.sha256(salt + rfc8785.dumps(stored["data"])).hexdigest()
    hashed: dict[str, str | int | None] = {
        "logId": "log",
        "stream": stream,
        "version": version,
        "topic": topic,
        "eventId": name,
        "timeMs": time,
        "causation": causes[0],
        "correlation": causes[1],
        "epoch": epoch,
        "prev": prev,
        "payloadDigest": digest,
    }
    if decision:
        hashed["decision"] = decision
    assert (recorded.digest, recorded.hash) == (digest, hashlib.sha256(rfc8785.dumps(hashed)).hexdigest())
    assert (
        unseal(log_id="log", position=0, stream=stream, version=version, topic=topic, state=state) == recorded
    )

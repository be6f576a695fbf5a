"""An envelope is read from the state of a row as it was, in each form; what no writer wrote is refused."""

import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import UUID

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from intersession_events.basics.errors import CorruptEvent
from intersession_events.basics.ids import event_id, session_stream
from intersession_events.facts import SessionArchived
from intersession_events.log.recorded import Draft, StreamAppend
from intersession_events.log.row_state import (
    Envelope,
    Named,
    as_state,
    is_short,
    links_in,
    named_in,
    of_id,
    opened,
    payload_in,
)
from intersession_events.log.verifying.verification import verify_log
from intersession_events.proofs.hashed import Hashed
from intersession_events.stores.sqlite.log import SqliteLog

_ID: Final = "0b7c0f2e-3b1a-5c57-9a55-0f0e3c1d2a4b"
_LOG: Final = "6a4d280b-fc53-4c01-9c8c-4d77a60bfa97"
_ENVELOPE: Final = opened(
    b"\x01"
    + bytes(range(1, 97))
    + bytes(16)
    + bytes(range(16))
    + b"\x00\x00\x00\x07"
    + b"1795349606803"
    + b'0000{"a":1}',
    where="a row",
)

ids = st.one_of(st.uuids().map(str), st.just(str(_ID).upper()), st.sampled_from(["", "x", str(_ID) + "0"]))
envelopes = st.builds(
    msgspec.structs.replace,
    st.just(_ENVELOPE),
    id=ids,
    causation=st.none() | ids,
    correlation=st.none() | ids,
    epoch=st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**53 - 1]),
    time=st.sampled_from([-1, 0, 1, 10**13 - 1, 10**13, 2**53 - 1]),
    decision=st.sampled_from(["", "{}", '{"asked":"ä\\""}', "9" * 9_999, "9" * 10_000]),
)
"""All that an envelope can hold, and the bounds of what fits."""


@given(envelopes)
@example(msgspec.structs.replace(_ENVELOPE, id="00000000-0000-0000-0000-000000000000"))
@example(msgspec.structs.replace(_ENVELOPE, causation="00000000-0000-0000-0000-000000000000"))
@example(msgspec.structs.replace(_ENVELOPE, hash="g" * 64))
def test_an_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    state = as_state(envelope)

    assert opened(state, where="a row") == envelope
    assert named_in(state) == Named(envelope.id, envelope.causation, envelope.correlation)
    assert payload_in(state) == bytes(envelope.data)


@pytest.mark.parametrize("state", [b"", b"\x01", b"{}", b"[", b"\xff", b"[" * 5_000])
def test_what_is_no_envelope_has_no_names(state: bytes) -> None:
    assert named_in(state) is None


def test_the_places_are_those_of_the_page() -> None:
    state = as_state(_ENVELOPE)

    assert (state[1:33].hex(), state[33:65].hex(), state[65:81].hex()) == (
        _ENVELOPE.hash,
        _ENVELOPE.prev,
        _ENVELOPE.salt,
    )
    assert (_ENVELOPE.causation, _ENVELOPE.epoch, _ENVELOPE.time) == (None, 7, 1795349606803)
    assert (state[133:146], state[146:]) == (b"1795349606803", b'0000{"a":1}')
    with_record = as_state(msgspec.structs.replace(_ENVELOPE, decision='{"ä":1}'))
    assert with_record == state[:146] + '0008{"ä":1}{"a":1}'.encode()


def test_a_state_without_a_payload_or_with_numbers_of_no_digits_is_refused() -> None:
    state = as_state(_ENVELOPE)

    for broken in (
        b"",
        state[:1],
        state[:150],
        state[:133] + b"1795349606 03" + state[146:],
        state[:146] + b"00 0" + state[150:],
        state[:146] + b"0007" + state[150:],
        state[:146] + b"0001\xff{}",
    ):
        with pytest.raises(CorruptEvent, match="no envelope"):
            opened(broken, where="a row")


def test_an_erased_payload_has_its_digest_beside_it() -> None:
    erased = msgspec.structs.replace(_ENVELOPE, salt="", data=msgspec.Raw(b'{"a":null}'))

    state = as_state(erased)

    assert not is_short(state)
    assert opened(state, where="a row").digest == _ENVELOPE.digest


@pytest.mark.clause("V1")
def test_a_log_has_format_1_and_short_states(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    event = SessionArchived(session_id=_ID, reason="deleted")
    for version in (0, 1):
        with SqliteLog(path) as log:
            own = event_id(log.log_id, session_stream("a"), version + 1, "session_archived.1")
            draft = Draft(event=event, id=own, time=5)
            log.append_now([StreamAppend(stream=session_stream("a"), expected=version, drafts=(draft,))])

    with SqliteLog(path, read_only=True) as log:
        assert [one.event for one in log.all()] == [event, event]
        assert log.query("SELECT format FROM log_identity") == [(1,)]
        assert [state[:1] for *_, state in log.rows()] == [b"\x01"] * 2
        assert verify_log(log).ok


@pytest.mark.clause("PLACE-1")
@given(st.uuids(), st.uuids(), st.integers(1, 36), st.booleans())
def test_a_row_is_found_by_the_beginning_of_its_id_in_either_form(
    own: UUID, other: UUID, length: int, is_short: bool
) -> None:
    envelope = msgspec.structs.replace(_ENVELOPE, id=str(own), correlation=str(other), decision="{}")
    state = as_state(envelope) if is_short else msgspec.json.encode(envelope)
    with closing(sqlite3.connect(":memory:")) as connection:
        for beginning in (str(own)[:length], str(other)):
            found = any(
                connection.execute(
                    f"SELECT {condition} FROM (SELECT ? AS state)",  # noqa: S608 - the log's own words
                    (*parameters, state),
                ).fetchone()[0]
                for condition, parameters in of_id(beginning)
            )
            assert found == str(own).startswith(beginning)


@pytest.mark.parametrize("salt", ["3" * 32, ""])
def test_the_id_of_a_json_row_is_where_it_is_looked_for_first(salt: str) -> None:
    envelope = msgspec.structs.replace(_ENVELOPE, id=_ID, salt=salt, decision="{}")
    ((condition, parameters), _) = of_id(_ID[:9])
    with closing(sqlite3.connect(":memory:")) as connection:
        state = msgspec.json.encode(envelope)
        asked = f"SELECT {condition} FROM (SELECT ? AS state)"  # noqa: S608 - the log's own words
        assert connection.execute(asked, (*parameters, state)).fetchone() == (1,)


@pytest.mark.clause("FORK-2")
@given(envelopes, st.sampled_from(["session:agent:a:main", 'session:agent:"ä\\b\n:main', "log"]))
def test_a_short_state_is_proven_without_an_envelope_as_with_one(envelope: Envelope, stream: str) -> None:
    def found(state: bytes, version: int = 3) -> tuple[str, str] | None:
        return links_in(state, log_id=_LOG, stream=stream, version=version, topic="run_queued.1")

    digest = sha256(bytes.fromhex(envelope.salt) + envelope.data).hexdigest()
    envelope = msgspec.structs.replace(envelope, digest=digest)
    hashed = Hashed(
        causation=envelope.causation,
        correlation=envelope.correlation,
        decision=envelope.decision,
        epoch=envelope.epoch,
        event_id=envelope.id,
        log_id=_LOG,
        payload_digest=digest,
        prev=envelope.prev,
        stream=stream,
        time_ms=envelope.time,
        topic="run_queued.1",
        version=3,
    ).hash
    state = as_state(msgspec.structs.replace(envelope, hash=hashed))

    if is_short(state):
        assert found(state) == (envelope.prev, hashed)
        assert found(state[:-1] + b"!") is None
        assert found(state, version=4) is None
        assert found(state[:150]) is None
    else:
        assert found(state) is None

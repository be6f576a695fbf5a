"""Whatever can be read as two requests, or in two ways, is refused and the connection closed (C5)."""

import logging
import socket
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession import SessionSystem, echo
from intersession.gateway.admission.complaints import limited_logger
from intersession.gateway.process.framing import BadFraming, Framing
from support.doors.gateway_live import GATEWAY, TOKEN, WAIT, LiveGateway
from support.fakes import ManualClock
from support.running import SEES_ALL, merged

BODY = b'{"tool":"agents_list"}'
SMUGGLED = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n"


def post(*headers: bytes, body: bytes = b"", version: bytes = b"1.1", end: bytes = b"\r\n") -> bytes:
    lines = [
        b"POST /tools/invoke HTTP/" + version,
        b"host: localhost",
        b"content-type: application/json",
        f"authorization: Bearer {TOKEN}".encode(),
        *headers,
    ]
    return end.join(lines) + end + end + body


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


CHUNKED = b"transfer-encoding: chunked"
LENGTH = b"content-length: %d" % len(BODY)

BAD: dict[str, bytes] = {
    "CL.TE": post(LENGTH, CHUNKED, body=chunked(BODY) + b"0\r\n\r\n" + SMUGGLED),
    "TE.CL": post(CHUNKED, LENGTH, body=chunked(BODY) + b"0\r\n\r\n" + SMUGGLED),
    "CL 0 beside TE": post(b"content-length: 0", CHUNKED, body=chunked(BODY) + b"0\r\n\r\n" + SMUGGLED),
    "TE in another case": post(LENGTH, b"Transfer-ENCODING: Chunked", body=BODY + SMUGGLED),
    "TE.TE": post(CHUNKED, b"transfer-encoding: identity", body=chunked(BODY) + b"0\r\n\r\n"),
    "TE twice": post(CHUNKED, CHUNKED, body=chunked(BODY) + b"0\r\n\r\n"),
    "TE of two codings": post(b"transfer-encoding: gzip, chunked", body=chunked(BODY) + b"0\r\n\r\n"),
    "TE of no coding": post(b"transfer-encoding: xchunked", body=chunked(BODY) + b"0\r\n\r\n"),
    "TE with a vertical tab": post(b"transfer-encoding:\x0bchunked", body=chunked(BODY) + b"0\r\n\r\n"),
    "TE in HTTP/1.0": post(CHUNKED, version=b"1.0", body=chunked(BODY) + b"0\r\n\r\n" + SMUGGLED),
    "two lengths": post(LENGTH, b"content-length: 5", body=BODY + SMUGGLED),
    "one length twice": post(LENGTH, LENGTH, body=BODY),
    "a list of lengths": post(b"content-length: 22, 22", body=BODY),
    "a signed length": post(b"content-length: +22", body=BODY),
    "a length that is none": post(b"content-length: 0x16", body=BODY),
    "a length with an underscore": post(b"content-length: 2_2", body=BODY),
    "a length below zero": post(b"content-length: -1", body=BODY),
    "an empty length": post(b"content-length:", body=BODY),
    "a length beyond all": post(b"content-length: " + b"9" * 30, body=BODY),
    "a folded header": post(b"x-one: a\r\n b", LENGTH, body=BODY),
    "a folded coding": post(b"transfer-encoding:\r\n chunked", body=chunked(BODY) + b"0\r\n\r\n"),
    "a space before the colon": post(b"content-length : 22", body=BODY),
    "a tab before the name": post(b"\tcontent-length: 22", body=BODY),
    "a header without a colon": post(b"content-length 22", body=BODY),
    "bare LF in the head": post(LENGTH, end=b"\n", body=BODY),
    "bare LF in one line": post(b"x-one: a\nx-two: b", LENGTH, body=BODY),
    "bare LF before a coding": post(b"x-one: a\ntransfer-encoding: chunked", LENGTH, body=BODY),
    "bare CR in one line": post(b"x-one: a\rtransfer-encoding: chunked", LENGTH, body=BODY),
    "NUL in a value": post(b"x-one: a\0b", LENGTH, body=BODY),
    "a chunk extension": post(CHUNKED, body=b"16;a=b\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a chunk extension with LF": post(CHUNKED, body=b"16;\n\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a blank behind a chunk's size": post(CHUNKED, body=b"16 \r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a chunk's size with a sign": post(CHUNKED, body=b"+16\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a chunk's size with 0x": post(CHUNKED, body=b"0x16\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "a chunk's size beyond all": post(CHUNKED, body=b"f" * 17 + b"\r\n" + BODY),
    "bare LF behind a chunk's size": post(CHUNKED, body=b"16\n" + BODY + b"\r\n0\r\n\r\n"),
    "bare LF behind a chunk": post(CHUNKED, body=b"16\r\n" + BODY + b"\n0\r\n\r\n" + SMUGGLED),
    "a chunk that is longer": post(CHUNKED, body=b"2\r\n" + BODY + b"\r\n0\r\n\r\n"),
    "trailers": post(CHUNKED, body=chunked(BODY) + b"0\r\ncontent-length: 5\r\n\r\n"),
    "a second one that is bad": post(LENGTH, body=BODY) + post(LENGTH, CHUNKED, body=BODY),
}
GOOD: dict[str, tuple[bytes, int]] = {
    "a length": (post(LENGTH, body=BODY), 1),
    "chunks": (post(CHUNKED, body=chunked(BODY[:5], BODY[5:]) + b"0\r\n\r\n"), 1),
    "chunks in capitals": (post(b"Transfer-Encoding: Chunked", body=b"16\r\n" + BODY + b"\r\n0\r\n\r\n"), 1),
    "one after the other": (post(LENGTH, body=BODY) * 3, 3),
    "chunks, then a length": (
        post(CHUNKED, body=chunked(BODY) + b"0\r\n\r\n") + post(LENGTH, body=BODY) + SMUGGLED,
        3,
    ),
}


def verdict(data: bytes, cuts: list[int]) -> str | None:
    framing = Framing()
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    try:
        for start, end in pairwise(places):
            framing.take(data[start:end])
    except BadFraming as bad:
        return str(bad)
    return None


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveGateway]:
    path = tmp_path_factory.mktemp("framing") / "log.db"
    with (
        SessionSystem(path, agents={"main": echo()}, config=merged(SEES_ALL, GATEWAY)) as system,
        LiveGateway(system) as made,
    ):
        yield made


def said(live: LiveGateway, *parts: bytes, most: int | None = None) -> bytes:
    """Send, and return all that is said until the connection is closed, or until so many answers came."""
    found = b""
    with socket.create_connection(("127.0.0.1", live.port), WAIT) as opened:
        for part in parts:
            opened.sendall(part)
        while most is None or found.count(b"HTTP/1.1 ") < most or not found.rstrip().endswith(b"}"):
            part = opened.recv(65536)
            if not part:
                return found
            found += part
    return found


@pytest.mark.clause("X5", "L6")
@pytest.mark.parametrize("name", BAD)
def test_what_can_be_read_in_two_ways_is_refused_and_the_connection_closed(
    live: LiveGateway, name: str
) -> None:
    answer = said(live, BAD[name])

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"\r\nconnection: close\r\n" in answer
    assert answer.count(b"HTTP/1.1 ") == 1
    assert b"openapi" not in answer


@pytest.mark.clause("X5")
@pytest.mark.parametrize("name", GOOD)
def test_what_can_be_read_in_one_way_only_is_served(live: LiveGateway, name: str) -> None:
    data, answers = GOOD[name]

    answer = said(live, data, most=answers)

    assert answer.count(b"HTTP/1.1 200 ") == answers


@pytest.mark.clause("X5")
@given(st.sampled_from([*BAD]), st.lists(st.integers(0, 1000), max_size=12))
def test_it_does_not_matter_in_which_pieces_it_comes(name: str, cuts: list[int]) -> None:
    assert verdict(BAD[name], cuts) is not None


@given(st.sampled_from([*GOOD]), st.lists(st.integers(0, 1000), max_size=12))
def test_nor_for_what_is_good(name: str, cuts: list[int]) -> None:
    assert verdict(GOOD[name][0], cuts) is None


def test_a_head_is_bounded_and_costs_no_more_for_its_pieces() -> None:
    framing = Framing()
    framing.take(b"GET / HTTP/1.1\r\n")
    for _ in range(65_536 - len(b"GET / HTTP/1.1\r\n")):
        framing.take(b"a")
    with pytest.raises(BadFraming, match="too large"):
        framing.take(b"a")


# --- what is told of it (C7)


def test_garbage_is_told_of_so_often_a_minute_and_counted(
    live: LiveGateway, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(40):
        said(live, b"\x16\x03\x01 no HTTP at all\r\n\r\n")
        said(live, b"GET / HTTP/1.1\r\n folded\r\n\r\n")

    told = [
        record.getMessage() for record in caplog.records if record.name.startswith("intersession.gateway")
    ]
    assert 2 <= len(told) <= 90  # with what other tests of the same gateway were told of
    assert all("\r" not in line and "\n" not in line for line in told)


def test_a_kind_has_its_lines_a_minute_and_the_next_one_says_how_many_there_were(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = ManualClock()
    logger = limited_logger("intersession.gateway.test", clock.monotonic)
    for number in range(100):
        logger.warning("garbage from %s", number)
        logger.warning("another kind")
    logger.error("a fault")
    clock.advance(60_000)
    logger.warning("garbage from %s", "late")

    told = [record.getMessage() for record in caplog.records if record.name == "intersession.gateway.test"]
    assert [line for line in told if line.startswith("garbage")] == [
        *(f"garbage from {number}" for number in range(29)),
        "garbage from 29 (more of this kind are only counted for a minute)",
        "garbage from late (and 70 like it before, which were only counted)",
    ]
    assert len([line for line in told if line.startswith("another")]) == 30
    assert "a fault" in told


def test_who_silences_the_gateways_logger_silences_these_lines_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, logger="intersession.gateway.test")

    limited_logger("intersession.gateway.test", ManualClock().monotonic).warning("garbage")

    assert not [record for record in caplog.records if record.name == "intersession.gateway.test"]

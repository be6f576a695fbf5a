"""A socket of TLS that one thread reads while another one writes, as clients of the gateway do (WORK-12)."""

import socket
import ssl
import threading
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from intersession import ToolRefused
from intersession.gateway.protocol.client import GatewayClient
from intersession.gateway.protocol.shared_tls import shared_tls
from support.doors.gateway_live import TOKEN, WAIT
from support.doors.tls import certified

MUCH = bytes(2**20)
"""More than the buffers between two ends hold."""
NEW_SESSION_TICKET = 4


class Ends(NamedTuple):
    client: ssl.SSLSocket
    server: ssl.SSLSocket


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ssl.SSLContext, Path]]:
    made = certified(tmp_path_factory.mktemp("tls"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SSL_CERT_FILE", str(made[1]))
        yield made


@pytest.fixture
def at_once() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor() as threads:
        yield threads


@contextmanager
def connected(
    served: ssl.SSLContext,
    heard: Callable[[str, int], None] | None = None,
) -> Generator[Ends]:
    """`heard` gets the direction and the kind of each message that OpenSSL reads or writes for the client, while it does."""
    near, far = socket.socketpair()
    context = shared_tls()
    if heard is not None:
        setattr(context, "_msg_callback", lambda _, way, *said: heard(way, said[2]))  # noqa: B010
    with ThreadPoolExecutor(1) as other:
        accepted = other.submit(served.wrap_socket, far, server_side=True)
        client = context.wrap_socket(near, server_hostname="localhost")
        server = accepted.result(WAIT)
    client.settimeout(WAIT)
    server.settimeout(WAIT)
    with closing(client), closing(server):
        yield Ends(client, server)


def read(end: ssl.SSLSocket, count: int) -> int:
    left = count
    while left and (some := end.recv(65536)):
        left -= len(some)
    return count - left


@pytest.mark.clause("WORK-12")
def test_a_request_waits_while_a_ticket_is_read(
    certificate: tuple[ssl.SSLContext, Path], at_once: ThreadPoolExecutor
) -> None:
    """OpenSSL would lose it, now and then."""
    sent: list[Future[None]] = []
    was_sent: list[bool] = []

    def heard(way: str, kind: int) -> None:
        if way == "read" and kind == NEW_SESSION_TICKET and not sent:
            sent.append(at_once.submit(ends.client.sendall, b"request"))
            with suppress(TimeoutError):
                sent[0].result(0.1)
            was_sent.append(sent[0].done())

    with connected(certificate[0], heard) as ends:
        answer = at_once.submit(ends.client.recv, 100)
        assert ends.server.recv(100) == b"request"
        ends.server.sendall(b"answer")
        assert answer.result(WAIT) == b"answer"

    assert was_sent == [False]


@pytest.mark.clause("WORK-12")
def test_both_ends_send_before_they_read(
    certificate: tuple[ssl.SSLContext, Path], at_once: ThreadPoolExecutor
) -> None:
    with connected(certificate[0]) as ends:
        counted = at_once.submit(read, ends.client, len(MUCH))
        sent = at_once.submit(ends.client.sendall, MUCH)
        ends.server.sendall(MUCH)
        assert read(ends.server, len(MUCH)) == len(MUCH)
        assert counted.result(WAIT) == len(MUCH)
        assert sent.result(WAIT) is None


def test_what_comes_after_the_client_has_said_all_is_read_as_tls(
    certificate: tuple[ssl.SSLContext, Path],
) -> None:
    with connected(certificate[0]) as ends:
        ends.client.shutdown(socket.SHUT_WR)
        ends.server.sendall(b"the last")
        assert ends.client.recv(100) == b"the last"


def test_a_time_out_ends_a_handshake_a_read_and_a_write(certificate: tuple[ssl.SSLContext, Path]) -> None:
    near, far = socket.socketpair()
    near.settimeout(0.01)
    with far, pytest.raises(TimeoutError):
        shared_tls().wrap_socket(near, server_hostname="localhost")
    with connected(certificate[0]) as ends:
        ends.client.settimeout(0.01)
        with pytest.raises(TimeoutError):
            ends.client.recv(100)
        with pytest.raises(TimeoutError):
            ends.client.sendall(MUCH)


def test_close_ends_a_read_of_another_thread(
    certificate: tuple[ssl.SSLContext, Path], at_once: ThreadPoolExecutor
) -> None:
    began = threading.Event()

    def heard(way: str, kind: int) -> None:
        if way == "read" and kind == NEW_SESSION_TICKET:
            began.set()

    with connected(certificate[0], heard) as ends:
        ended = at_once.submit(ends.client.recv, 100)
        assert began.wait(WAIT)
        ends.client.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            ended.result(WAIT)


@pytest.mark.clause("WORK-12")
def test_a_gateway_behind_tls_that_says_nothing_is_given_up(
    certificate: tuple[ssl.SSLContext, Path],
    at_once: ThreadPoolExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A paused one; its proxy goes on to speak TLS. Its tickets were read, and no answer, until the other side gave up."""
    monkeypatch.setattr("intersession.gateway.protocol.client.OPEN_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"https://localhost:{listening.getsockname()[1]}"
        opening = at_once.submit(GatewayClient, address, TOKEN)
        listening.settimeout(WAIT)
        with ExitStack() as held:
            with suppress(OSError):  # on a busy machine it is given up before
                opened, _ = listening.accept()
                held.enter_context(certificate[0].wrap_socket(opened, server_side=True))
            with pytest.raises(ToolRefused, match="timed out"):
                opening.result(WAIT)


@pytest.mark.ci
def test_no_request_is_lost_that_meets_tickets(
    certificate: tuple[ssl.SSLContext, Path], at_once: ThreadPoolExecutor
) -> None:
    """One in five was, of those that were sent at once."""
    for _ in range(300):
        with connected(certificate[0]) as ends:
            answer = at_once.submit(ends.client.recv, 100)
            ends.client.sendall(b"request")
            assert ends.server.recv(100) == b"request"
            ends.server.sendall(b"answer")
            assert answer.result(WAIT) == b"answer"

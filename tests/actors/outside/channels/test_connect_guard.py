import socket
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from intersession_actors.outside.channels.addresses import guarded
from support.loopback import WAIT, Loopback


def connected(address: tuple[str, int]) -> None:
    socket.create_connection(address, WAIT).close()


@pytest.mark.clause("X13")
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0x7f.1"])
def test_a_guarded_block_reaches_no_private_address_however_it_is_written(host: str) -> None:
    with Loopback() as server:
        connected((host, server.port))
        with guarded() as guard, pytest.raises(PermissionError):
            connected((host, server.port))
        connected((host, server.port))

    assert set(guard.refused) <= {"127.0.0.1", "::1"}
    assert guard.refused


def test_what_is_allowed_is_reached() -> None:
    with Loopback() as server, guarded({"127.0.0.1"}) as guard:
        connected(("127.0.0.1", server.port))

    assert guard.refused == []


def udp() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", 9))


def udp_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))


def without_raising() -> None:
    with socket.socket() as client:
        client.connect_ex(("127.0.0.1", 9))


def unix() -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect("/nowhere/docker.sock")


def process() -> None:
    subprocess.run([sys.executable, "-c", ""], check=True)


@pytest.mark.clause("X13")
@pytest.mark.parametrize("way", [udp, udp_message, without_raising, unix, process])
def test_no_other_way_leads_out_of_a_guarded_block(way: Callable[[], None]) -> None:
    with guarded() as guard, pytest.raises(OSError, match="guard"):
        way()

    assert len(guard.refused) == 1


def test_other_threads_are_not_guarded() -> None:
    problems: list[BaseException] = []

    def elsewhere(port: int, inside: threading.Event) -> None:
        try:
            assert inside.wait(WAIT)
            connected(("127.0.0.1", port))
        except BaseException as error:  # noqa: BLE001 - shown below
            problems.append(error)

    with Loopback() as server:
        inside = threading.Event()
        other = threading.Thread(target=elsewhere, args=(server.port, inside))
        other.start()
        with guarded():
            inside.set()
            other.join(WAIT)

    assert problems == []

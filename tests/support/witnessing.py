"""Witnesses under test: real ones, each with its key and its file, that listen on this machine."""

import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from intersession.cli.proofs.witness import Witnessed, WitnessServer
from intersession_events.proofs.signatures import NamedKey, PrivateKey
from support.checkpointed import key_of
from support.loopback import free_port

ORIGIN = "acme.example/assistant"
HOST_KEY = key_of(7)


class LiveWitness(NamedTuple):
    """A witness that listens: its URL and its vkey."""

    url: str
    vkey: str
    witnessed: Witnessed
    address: tuple[str, int]


@contextmanager
def live_witness(
    state: Path,
    *,
    seed: int = 8,
    name: str = "witness.example/w1",
    port: int = 0,
    keys: Sequence[PrivateKey] = (HOST_KEY,),
) -> Generator[LiveWitness]:
    """Serve a witness of one log."""
    logs = {ORIGIN: [NamedKey(ORIGIN, key.public) for key in keys]}
    witnessed = Witnessed(state, logs, key_of(seed), name)
    server = WitnessServer(("127.0.0.1", port or free_port()), witnessed)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        address = ("127.0.0.1", int(server.server_address[1]))
        yield LiveWitness(f"http://127.0.0.1:{address[1]}", str(witnessed.name), witnessed, address)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        witnessed.close()

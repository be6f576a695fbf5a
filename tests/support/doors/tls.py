"""A proxy that speaks TLS before a gateway, with a certificate of its own for `localhost`, and keeps what it was told."""

import datetime as dt
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


class TlsProxy:
    """Hands on to a port of this machine what comes by TLS. `heard` is all of it, in the clear."""

    def __init__(self, target: int, folder: Path) -> None:
        self._context, self.certificate = certified(folder)
        """To be trusted by its clients (`SSL_CERT_FILE`)."""
        self.heard = b""
        self._serving: list[threading.Thread] = []
        self._target = target
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"https://localhost:{self._listening.getsockname()[1]}"

    @contextmanager
    def running(self) -> Generator["TlsProxy"]:
        thread = threading.Thread(target=self._accept, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._listening.shutdown(socket.SHUT_RDWR)
            self._listening.close()
            for each in (thread, *self._serving):
                each.join(20)

    def _accept(self) -> None:
        while True:
            try:
                opened, _ = self._listening.accept()
            except OSError:
                return
            self._serving.append(threading.Thread(target=self._serve, args=(opened,), daemon=True))
            self._serving[-1].start()

    def _serve(self, opened: socket.socket) -> None:
        with opened, suppress(OSError), self._context.wrap_socket(opened, server_side=True) as client:
            client.settimeout(0.01)  # one thread carries both ways
            with socket.create_connection(("127.0.0.1", self._target)) as behind:
                behind.settimeout(0.01)
                while True:
                    if (data := _some(client)) is not None:
                        self.heard += data
                        behind.sendall(data)
                    if (answer := _some(behind)) is not None:
                        client.sendall(answer)
                    if b"" in {data, answer}:
                        return


def certified(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """Return the settings of a server `localhost`, and its certificate."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    _make(certificate, key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate


def _some(end: socket.socket) -> bytes | None:
    try:
        return end.recv(65536)
    except TimeoutError:
        return None


def _make(certificate: Path, key_file: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )

"""A channel that posts each text to a URL as JSON: one attempt, no redirect, an answer of limited length and time (X13)."""

import base64
import http.client
import json
import socket
import ssl
import threading
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlsplit

import msgspec

from intersession_actors.outside.channels.addresses import (
    THIS_NETWORK,
    Network,
    addresses_of,
    check_as_written,
    plain_host,
)
from intersession_actors.outside.channels.channels import (
    Channel,
    DeliveryInDoubt,
    DeliveryLater,
    DeliveryRefused,
    Outbound,
)
from intersession_actors.outside.channels.url import SCHEMES, BadChannelUrl, ChannelUrl, channel_url
from intersession_events.basics.plain_json import JsonObject

T = TypeVar("T")

CONNECT_SECONDS: Final = 10.0
MOST_SECONDS: Final = 30.0
"""How long one attempt may take from the connection to the end of the answer."""
MOST_ANSWER_BYTES: Final = 4096
"""A longer answer is no receipt; no more of it is read."""

_MOST_DIGITS: Final = 9
_OK: Final = range(200, 300)
_REDIRECT: Final = range(300, 400)
_NEVER: Final = frozenset(range(400, 500)) - {408, 409, 425, 429}


def webhook(url: ChannelUrl, *, allowed: Collection[str] = (), network: Network = THIS_NETWORK) -> Channel:
    """Make a channel of a URL. It posts `{channel, to, thread, account, text, key}`, with `key` as `Idempotency-Key` too.

    Where files go with the text, `files` are there as well: `[{name, mimeType, size, sha256, content}]`, content in base64.

    Raises:
        BadChannelUrl: it has no host, or a user name.
        DeliveryRefused: its host can be seen to be private, and is not `allowed`.
    """
    check_as_written(_host(_split(url.samples()[0])), allowed)

    def deliver(outbound: Outbound) -> JsonObject:
        return _post(_split(url.for_text(outbound)), _body(outbound), outbound.key, allowed, network)

    return Channel(deliver=deliver)


def _body(outbound: Outbound) -> bytes:
    body: JsonObject = msgspec.to_builtins(msgspec.structs.replace(outbound, files=()))
    for field in ("files", "receipt", "unfinished"):
        body.pop(field, None)
    if outbound.files:
        body["files"] = [
            {
                "name": file.name,
                "mimeType": file.mime_type,
                "size": file.size,
                "sha256": file.sha256,
                "content": base64.b64encode(file.read()).decode(),
            }
            for file in outbound.files
        ]
    return msgspec.json.encode(body)


def posting(
    text: str, *, allowed: Collection[str] = (), kind: str = "application/json"
) -> Callable[[bytes, str], JsonObject]:
    """Return a function that posts a document to one URL under an idempotency key, once, and returns the answer.

    The rules for channels hold: public hosts only, no redirect (X13). It raises what a channel raises.

    Raises:
        BadChannelUrl: it is no http or https URL, or has places to fill in.
        DeliveryRefused: its host can be seen to be private, and is not `allowed`.
    """
    url, hosts = _one_place(text, allowed)

    def post(body: bytes, key: str) -> JsonObject:
        return _post(_split(url), body, key, hosts, THIS_NETWORK, kind=kind)

    return post


class Answered(NamedTuple):
    """An answer of whatever status, with the beginning of its content."""

    status: int
    content: bytes


def asking(text: str, *, allowed: Collection[str] = ()) -> Callable[[bytes], Answered]:
    """Return a function that posts plain text to one URL, once, and returns the answer, whatever its status.

    The rules for channels hold, and it raises what `posting` raises; where nothing answers, what a channel raises.
    """
    url, hosts = _one_place(text, allowed)

    def ask(body: bytes) -> Answered:
        headers = {"Content-Type": "text/plain"}
        return _sent(_split(url), body, headers, _as_it_is, allowed=hosts, network=THIS_NETWORK)

    return ask


def _as_it_is(answer: http.client.HTTPResponse) -> Answered:
    try:
        return Answered(answer.status, answer.read(MOST_ANSWER_BYTES))
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"the answer broke off ({type(error).__name__}: {error})") from error


def _one_place(text: str, allowed: Collection[str]) -> tuple[str, Collection[str]]:
    url = channel_url(text)
    if url.scheme not in SCHEMES or url.places:
        raise BadChannelUrl("is no http or https URL without places to fill in")
    hosts = frozenset(map(plain_host, allowed))
    check_as_written(_host(_split(url.text)), hosts)
    return url.text, hosts


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadChannelUrl("has an invalid host or port") from error
    if parts.username is not None or parts.password is not None:
        raise BadChannelUrl("has a user name or password; put a token into the path or the query")
    if not parts.hostname or port == 0:
        raise BadChannelUrl("has no host or port to connect to")
    return parts


def _host(parts: SplitResult) -> str:
    return parts.hostname or ""


def _post(
    parts: SplitResult,
    body: bytes,
    key: str,
    allowed: Collection[str],
    network: Network,
    *,
    kind: str = "application/json",
) -> JsonObject:
    headers = {"Content-Type": kind, "Idempotency-Key": key}
    return _sent(parts, body, headers, _read, allowed=allowed, network=network)


def _sent(
    parts: SplitResult,
    body: bytes,
    headers: Mapping[str, str],
    read: Callable[[http.client.HTTPResponse], T],
    *,
    allowed: Collection[str],
    network: Network,
) -> T:
    secure, host = parts.scheme.lower() == "https", _host(parts)
    port = parts.port or (443 if secure else 80)
    addresses = addresses_of(host, port, allowed, network)
    connected = _connected(addresses, port, network)
    with connected, _at_most(MOST_SECONDS, connected):
        if not secure:
            return _exchange(connected, parts, body, headers, read)
        with ssl.create_default_context().wrap_socket(connected, server_hostname=host) as sealed:
            return _exchange(sealed, parts, body, headers, read)


@contextmanager
def _at_most(seconds: float, connected: socket.socket) -> Generator[None]:
    """End a connection that is still open after this time, however slowly the other side goes on talking."""
    with connected.dup() as handle:  # TLS takes the socket itself over
        watchdog = threading.Timer(seconds, _cut, (handle,))
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()


def _connected(addresses: Collection[str], port: int, network: Network) -> socket.socket:
    problem = OSError("no address to connect to")
    for address in addresses:
        try:
            return network.connect((address, port), CONNECT_SECONDS)
        except OSError as error:
            problem = error
    raise problem


def _exchange(
    connected: socket.socket,
    parts: SplitResult,
    body: bytes,
    said: Mapping[str, str],
    read: Callable[[http.client.HTTPResponse], T],
) -> T:
    line = http.client.HTTPConnection(_host(parts))
    line.sock = connected
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    headers = {"Host": parts.netloc, "User-Agent": "intersession", "Connection": "close", **said}
    try:
        line.request("POST", target, body=body, headers=headers)
        answer = line.getresponse()
    except (OSError, http.client.HTTPException) as error:
        # It may have been read and shown all the same.
        raise DeliveryInDoubt(f"no answer ({type(error).__name__}: {error})") from error
    with answer:
        return read(answer)


def _read(answer: http.client.HTTPResponse) -> JsonObject:
    """Return an answer's receipt, or raise its error."""
    if answer.status in _OK:
        return {"status": answer.status, **_receipt(answer)}
    said = f"HTTP {answer.status} {answer.reason}".strip()
    if answer.status in _REDIRECT:
        raise DeliveryRefused(f"{said}: redirects are not followed; give the URL it leads to")
    if answer.status in _NEVER:
        raise DeliveryRefused(said)
    later = _later(answer.headers.get("Retry-After"), answer.headers.get("Date"))
    if later is not None:
        scope = answer.headers.get("X-RateLimit-Scope") or ""
        is_global = answer.headers.get("X-RateLimit-Global") or ""
        whole = scope.lower() == "global" or is_global.lower() == "true"
        raise DeliveryLater(later, said, whole_channel=whole)
    raise ConnectionError(said)  # this time; later it may be taken


def _later(said: str | None, now: str | None) -> float | None:
    """Return after how many seconds a `Retry-After` wants to be asked again: it has a number, or a date by the clock over there."""
    text = (said or "").strip()
    if text.isascii() and text.isdigit():
        return float(text[:_MOST_DIGITS])
    try:
        at, since = (parsedate_to_datetime(date or "") for date in (text, now))
    except (TypeError, ValueError):
        return None
    apart = at.replace(tzinfo=at.tzinfo or UTC) - since.replace(tzinfo=since.tzinfo or UTC)
    return max(apart.total_seconds(), 0.0)


def _receipt(answer: http.client.HTTPResponse) -> JsonObject:
    """Return the content of the answer, if it is short and JSON. The text is delivered either way."""
    try:
        content = answer.read(MOST_ANSWER_BYTES + 1)
        return {"answer": json.loads(content)} if 0 < len(content) <= MOST_ANSWER_BYTES else {}
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return {}


def _cut(connected: socket.socket) -> None:
    with suppress(OSError):
        connected.shutdown(socket.SHUT_RDWR)

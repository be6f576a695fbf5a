"""A channel that sends through an Apprise service: one attempt a call, plain text, errors without secrets.

Each call makes the service anew from the channel's URL. Apprise's own retries are off, because the outbox retries.
"""

import logging
import re
import warnings
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeAlias
from urllib.parse import quote, quote_plus, unquote

from intersession_actors.outside.attachments.stored import StoredFile
from intersession_actors.outside.channels.addresses import (
    THIS_NETWORK,
    Network,
    blocked,
    check_as_written,
    guarded,
    literal_address,
)
from intersession_actors.outside.channels.channels import (
    Channel,
    DeliveryInDoubt,
    DeliveryLater,
    DeliveryRefused,
    Outbound,
    with_lines,
)
from intersession_actors.outside.channels.url import BadChannelUrl, ChannelUrl

MOST_SECONDS: Final = 30.0
"""The longest that a service may wait for a connection or an answer, whatever its URL says."""
MOST_REASON: Final = 500
SHORTEST_SECRET: Final = 3
PORT: Final = re.compile(r"[0-9]{1,5}")
HIDDEN: Final = "<hidden>"

# The loggers that write parts of a service's URL, the second one each request's path.
_loggers: Final = tuple(map(logging.getLogger, ("apprise", "urllib3.connectionpool")))
_secrets: ContextVar[tuple[str, ...]] = ContextVar("secrets of a channel's URL", default=())
# Libraries of services that connect nowhere. By others, a service would get round the guard: on threads, or in C.
_UNCONNECTED: Final = frozenset({"cryptography", "nacl", "pgpy"})
# What Apprise says where a request failed without an answer. It says so of a connection that was not made, too.
_NO_ANSWER: Final = re.compile(r"connection error|exception|time[d ]?-?out", re.IGNORECASE)
# Of an answer Apprise tells the reason alone; some services name there when they want to be asked again.
_AGAIN_IN: Final = re.compile(r"retry[ _-]after[^0-9]{0,3}([0-9]{1,6}(?:\.[0-9]{1,3})?)", re.IGNORECASE)
# Words that call people: what an agent says must not ring for a whole room.
_CALLS: Final = re.compile(r"@(?=everyone\b|here\b|channel\b|all\b)|<(?=[@!#&])", re.IGNORECASE)


def apprise_channel(
    url: ChannelUrl, *, allowed: Collection[str] = (), network: Network = THIS_NETWORK
) -> Channel:
    """Make a channel from an Apprise URL. It reaches public addresses only, and the `allowed` hosts.

    Raises:
        BadChannelUrl: no service takes this URL, or it names more than one place.
        DeliveryRefused: its host can be seen to be private, and is not `allowed`.
    """
    _check_scheme(url.scheme)
    sample, filled_in = _first_taken(url)
    if len(sample) > 1:
        raise BadChannelUrl(
            f"names {len(sample)} places; give one, such as {{to}}: a text that reached only some can't be sent again"
        )
    if "host" in sample.template_tokens:
        # A service that takes a host may read one that it does not know (127.1) as something else, as ntfy reads it as a
        # topic of its public server: the text would go out to the world instead of to this machine.
        check_as_written(str(sample.host or _host(filled_in)), allowed)
    shown = str(sample.host) if "host" in sample.template_tokens and sample.host else None

    def deliver(outbound: Outbound) -> dict[str, str]:
        filled = url.for_text(outbound)
        with _hiding(url.text, filled, but=shown):
            return _notify(filled, outbound, allowed, network)

    longest = sample.body_maxlen
    return Channel(
        deliver=deliver,
        escape=without_calls,
        max_chars=longest if isinstance(longest, int) and longest > 0 else None,
    )


def without_calls(text: str) -> str:
    """Return a text in which `@everyone`, `<!channel>`, `<@user>` and the like notify nobody; it looks the same."""
    return _CALLS.sub(lambda found: f"{found[0]}\u200b", text)


def _notify(url: str, outbound: Outbound, allowed: Collection[str], network: Network) -> dict[str, str]:
    addresses = [address for host in allowed for address in _addresses(host, network)]
    with guarded(addresses) as guard:
        try:
            service = _made(url)
        except BadChannelUrl as error:
            raise DeliveryRefused(f"with this chat, the channel's URL {error}") from error
        asked = _apprise().Apprise(asset=service.asset)
        asked.add(service)
        shows = bool(getattr(service, "attachment_support", False))
        files = _attached(outbound.files) if shows else None
        text = outbound.text if shows else with_lines(outbound.text, outbound.files)
        result = asked.notify(body=text, body_format=_apprise().NotifyFormat.TEXT, attach=files)
    if result:
        return {"service": str(service.service_name)}
    if guard.refused:
        raise blocked(f"{service.service_name} led to {guard.refused[0]}")
    said = [hidden(str(entry.message)) for entry in result.logs()]
    reason = "; ".join(dict.fromkeys(said))[:MOST_REASON] or "Apprise gave no reason"
    if guard.sent and (not said or _NO_ANSWER.search(said[-1])):
        raise DeliveryInDoubt(reason)
    asked = _AGAIN_IN.search(reason)
    if asked is not None:
        raise DeliveryLater(float(asked[1]), reason)
    raise ConnectionError(reason)


def _attached(files: Sequence[StoredFile]) -> object:
    """Return files as Apprise takes them; None for none."""
    if not files:
        return None
    attached = _apprise().AppriseAttachment()
    memory = import_module("apprise.attachment.memory")
    for file in files:
        attached.add(memory.AttachMemory(content=file.read(), name=file.name, mimetype=file.mime_type))
    return attached


def _addresses(host: str, network: Network) -> Collection[str]:
    literal = literal_address(host)
    if literal is not None:
        return [str(literal)]
    try:
        return network.resolve(host, 0)
    except OSError:
        return []  # then it is nowhere, and nothing is allowed by its name


# --- making services

_Service: TypeAlias = Any  # one of Apprise's, which has no types for what they have in common


def _apprise() -> ModuleType:
    """Return the library. It is an extra, and has types for some of itself."""
    return import_module("apprise")


def _check_scheme(scheme: str) -> None:
    services = _apprise().NotificationManager()
    with warnings.catch_warnings():
        # The services are imported here, some with what a later Python will not have: nothing a host can mend.
        warnings.simplefilter("ignore", DeprecationWarning)
        known = sorted(services.schemas())
    if scheme not in known:
        close = get_close_matches(scheme, [*known, "http", "https"], n=1)
        hint = f"did you mean {close[0]}?" if close else "Apprise's documentation lists those there are"
        raise BadChannelUrl(f"has the scheme {scheme!r}, which nobody knows; {hint}")
    own = sorted({*services[scheme].runtime_deps()} - _UNCONNECTED)
    if own:
        raise BadChannelUrl(
            f"has the scheme {scheme!r}, which connects by {own[0]}, where it can't be watched; write a channel for it"
        )
    if not services[scheme].enabled:
        needed = services[scheme].requirements.get("packages_required") or ["something"]
        packages = ", ".join([needed] if isinstance(needed, str) else needed)
        raise BadChannelUrl(f"has the scheme {scheme!r}, for which Apprise needs {packages}; install it")


def _first_taken(url: ChannelUrl) -> tuple[_Service, str]:
    """Return the service for the first of the URL's samples that makes one, and that sample."""
    problem: Exception | None = None
    for sample in url.samples():
        with _hiding(url.text, sample), guarded():
            try:
                return _made(sample), sample
            except BadChannelUrl as error:
                problem = problem or error
    raise problem or BadChannelUrl("is not one that Apprise takes")


def _host(url: str) -> str:
    authority = re.split("[/?#]", url.partition("://")[2], maxsplit=1)[0]
    return unquote(re.sub(":[0-9]*$", "", authority.rpartition("@")[2]))


def _made(url: str) -> _Service:
    asset = _apprise().AppriseAsset(
        async_mode=False,  # on this thread, where the guard is
        service_timeout=0,
        http_redirects=False,
        storage_mode="memory",
        app_id="Intersession",
        app_desc="Intersession",
        image_url_mask="",
        image_url_logo="",
    )
    try:
        service = _apprise().Apprise.instantiate(url, asset=asset, suppress_exceptions=False)
    except Exception as error:  # noqa: BLE001 - whatever a service raises of a URL it does not take
        raise BadChannelUrl(f"is not one that Apprise takes ({hidden(str(error))[:MOST_REASON]})") from None
    if service is None:
        raise BadChannelUrl("is not one that Apprise takes; its documentation shows how this service's look")
    # What its URL may ask for otherwise.
    service.retry = 0
    service.optional = False
    service.redirects = False
    service.overflow_mode = _apprise().OverflowMode.TRUNCATE
    service.socket_connect_timeout = min(service.socket_connect_timeout or MOST_SECONDS, MOST_SECONDS)
    service.socket_read_timeout = min(service.socket_read_timeout or MOST_SECONDS, MOST_SECONDS)
    return service


# --- secrets


def hidden(text: str) -> str:
    """Return a text without the parts of the channel's URL."""
    for secret in _secrets.get():
        text = text.replace(secret, HIDDEN)
    return text


@contextmanager
def _hiding(*urls: str, but: str | None = None) -> Generator[None]:
    """Keep parts of these URLs out of log lines and errors of the block."""
    parts = {part for url in urls for part in _parts(url)} - {but}
    for logger in _loggers:
        if not any(isinstance(kept, _Hiding) for kept in logger.filters):
            logger.addFilter(_Hiding())
    token = _secrets.set(tuple(sorted(parts, key=len, reverse=True)))
    try:
        yield
    finally:
        _secrets.reset(token)


def _parts(url: str) -> Generator[str]:
    path, _, query = url.partition("://")[2].partition("?")
    values = (
        pair.partition("=")[2] or pair for pair in query.split("&")
    )  # what a value is called is no secret
    for part in re.split(r"[/:@?&=#,;]+", "/".join((path, *values))):
        plain = unquote(part)
        for form in (part, plain, quote(plain), quote(plain, safe=""), quote_plus(plain)):
            if len(form) >= SHORTEST_SECRET and not PORT.fullmatch(form) and "{" not in form:
                yield form


class _Hiding(logging.Filter):
    """Removes a channel's secrets from log lines while its URL is in use."""

    def filter(self, record: logging.LogRecord) -> bool:
        if _secrets.get():
            record.msg, record.args = hidden(record.getMessage()), ()
        return True

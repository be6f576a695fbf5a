"""Serves the web debugger's files. Every address of the debugger is the same page, which reads the address itself.

The page holds nothing but links to its own files: what it shows it asks for itself.
"""

import hashlib
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

HOME: Final = "/debug"
API: Final = f"{HOME}/api/"
LOGIN: Final = f"{HOME}/login"
LOGOUT: Final = f"{HOME}/logout"
_STATIC: Final = f"{HOME}/static/"
_KINDS: Final = {
    "css": "text/css; charset=utf-8",
    "mjs": "text/javascript; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "LICENSE": "text/plain; charset=utf-8",
}

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
    "require-trusted-types-for 'script'; trusted-types 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Own files and own answers; nothing inline, nothing from elsewhere, no text as markup."""

_SAFE: Final = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)


class WebFile(NamedTuple):
    """A file as it goes over the wire."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def is_static(path: str) -> bool:
    """Whether an address is of one of the page's own files."""
    return path.startswith(_STATIC)


def is_ours(path: str) -> bool:
    """Whether an address is of the web debugger."""
    return path in {"/", HOME} or path.startswith(f"{HOME}/")


def file_at(path: str, *, known: str | None = None) -> WebFile | None:
    """Return what a browser gets at a path; None for what is asked of the API, and where there is nothing.

    `known` is the tag of the file that the browser has already.
    """
    if path.startswith(_STATIC):
        return _static(path.removeprefix(_STATIC), known)
    if not is_ours(path) or path.startswith(API):
        return None
    depth = 0 if path == "/" else path.count("/") - 1
    base = "debug/" if path in {"/", HOME} else "../" * (depth - 1) or "./"
    page = _read("index.html")[0].replace(b"{base}", base.encode())
    headers = (*_SAFE, ("content-type", "text/html; charset=utf-8"), ("cache-control", "no-store"))
    return WebFile(200, (*headers, ("vary", "accept")), page)


def _static(name: str, known: str | None) -> WebFile | None:
    kind = _KINDS.get(name.rpartition("/")[2].rpartition(".")[2])
    if kind is None or name not in _names():
        return None
    body, tag = _read(name)
    # What is asked for again is compared, so that a new version is never mixed with an old one.
    headers = (*_SAFE, ("content-type", kind), ("cache-control", "no-cache"), ("etag", tag))
    return WebFile(304, headers, b"") if known == tag else WebFile(200, headers, body)


@cache
def _names() -> frozenset[str]:
    """Return what there is; a path is looked up and never walked."""
    found: set[str] = set()
    waiting = [("", files("intersession.web") / "static")]
    while waiting:
        before, folder = waiting.pop()
        for each in folder.iterdir():
            if each.is_dir():
                waiting.append((f"{before}{each.name}/", each))
            else:
                found.add(f"{before}{each.name}")
    return frozenset(found)


@cache
def _read(name: str) -> tuple[bytes, str]:
    body = (files("intersession.web") / "static" / name).read_bytes()
    return body, f'"{hashlib.sha256(body).hexdigest()[:24]}"'

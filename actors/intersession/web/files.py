"""Serves the web debugger's files. Every address of the debugger is the same page, which reads the address itself.

The page holds nothing but links to its own files: what it shows it asks for itself. Their addresses have a tag of what
is in them all, so a browser keeps them for good, asks for none of them again, and never mixes two versions.
"""

import gzip
import hashlib
from functools import cache, lru_cache
from importlib.resources import files
from typing import Final, NamedTuple

HOME: Final = "/debug"
API: Final = f"{HOME}/api/"
LOGIN: Final = f"{HOME}/login"
LOGOUT: Final = f"{HOME}/logout"
_STATIC: Final = f"{HOME}/static/"
_PAGE: Final = "index.html"
_FIRST: Final = "app.js"
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

SAFE: Final = (
    ("content-security-policy", POLICY),
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
)
"""The headers of whatever a browser may show."""


class WebFile(NamedTuple):
    """A file as it is sent."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def is_static(path: str) -> bool:
    """Whether an address belongs to one of the page's own files."""
    return path.startswith(_STATIC)


def is_ours(path: str) -> bool:
    """Whether an address belongs to the web debugger."""
    return path in {"/", HOME} or path.startswith(f"{HOME}/")


def file_at(path: str, *, encodings: str | None = None) -> WebFile | None:
    """Return the file at a path; None for addresses of the API, and where there is no file.

    `encodings` is what it says of those that it reads (`Accept-Encoding`).
    """
    packed = "gzip" in (encodings or "")
    if path.startswith(_STATIC):
        tag, _, name = path.removeprefix(_STATIC).partition("/")
        kind = _KINDS.get(name.rpartition("/")[2].rpartition(".")[2])
        if kind is None or tag != _tag() or name not in _names():
            return None
        kept = "public, max-age=31536000, immutable"
        return _sent(_read(name, packed=packed), kind, kept, "accept-encoding", packed=packed)
    if not is_ours(path) or path.startswith(API):
        return None
    depth = 0 if path == "/" else path.count("/") - 1
    base = "debug/" if path in {"/", HOME} else "../" * (depth - 1) or "./"
    page = _page(base)
    return _sent(
        gzip.compress(page) if packed else page,
        "text/html; charset=utf-8",
        "no-store",
        "accept, accept-encoding",
        packed=packed,
    )


def _sent(body: bytes, kind: str, kept: str, vary: str, *, packed: bool) -> WebFile:
    encoding = (("content-encoding", "gzip"),) if packed else ()
    headers = (*SAFE, ("content-type", kind), ("cache-control", kept), ("vary", vary), *encoding)
    return WebFile(200, headers, body)


@lru_cache(maxsize=16)
def _page(base: str) -> bytes:
    """Return the page with links that hold from where it is asked. It names all modules: none is found by reading another."""
    files = f"{base}static/{_tag()}/"
    modules = sorted(name for name in _names() if name.endswith((".js", ".mjs")) and name != _FIRST)
    asked = "\n".join(f'<link rel="modulepreload" href="{files}{name}">' for name in modules)
    text = _read(_PAGE, packed=False).decode()
    return text.replace("{files}", files).replace("{modules}", asked).encode()


@cache
def _names() -> frozenset[str]:
    """Return the existing files; a path is looked up and never walked."""
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
def _tag() -> str:
    """Return what stands for all files as they are."""
    whole = hashlib.sha256()
    for name in sorted(_names()):
        whole.update(
            hashlib.sha256(name.encode()).digest() + hashlib.sha256(_read(name, packed=False)).digest()
        )
    return whole.hexdigest()[:16]


@cache
def _read(name: str, *, packed: bool) -> bytes:
    if packed:
        return gzip.compress(_read(name, packed=False))
    return (files("intersession.web") / "static" / name).read_bytes()

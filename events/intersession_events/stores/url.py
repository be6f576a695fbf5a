"""Reads the address of a log: `sqlite:///file.db`, `sqlite:////absolute`, `:memory:`, `postgresql://…`, or that in the environment."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from intersession_events.basics.errors import NoSuchStore

DEFAULT_PATH: Final = "intersession.db"
VARIABLE: Final = "INTERSESSION_STORE"

_LONGEST: Final = 256
_SQLITE: Final = "sqlite:///"
_FORMS: Final = (
    "sqlite:///relative.db, sqlite:////absolute.db, :memory: or postgresql://user@host/database?schema=name"
)
_WINDOWS: Final = re.compile(r"/*[A-Za-z]:[\\/]")
_LIBPQS: Final = re.compile(r"\s*(host|hostaddr|port|dbname|user|password|service)\s*=")


def sqlite_path(url: str | None, environment: Mapping[str, str]) -> str:
    """Return the path of the SQLite file that a URL (or else `$INTERSESSION_STORE`, or else nothing) names.

    `sqlite:///notes.db` is relative, `sqlite:////srv/notes.db` absolute, `:memory:` and `sqlite:///:memory:` a log
    that lives as long as its process. A bare path is a path.

    Raises:
        NoSuchStore: the URL names a store that is not here, or is no URL of a store.
    """
    if not isinstance(url, str | None):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
        raise NoSuchStore(
            repr(url)[:128],
            "give its URL as a text: sqlite:///relative.db, sqlite:////absolute.db or :memory:",
        )
    place = url or environment.get(VARIABLE) or DEFAULT_PATH
    try:
        if "\0" in place:
            raise NoSuchStore(
                repr(place), "no name of a file has a null character; give the file another one"
            )
        place.encode()
    except UnicodeEncodeError:
        shown = _shown(place) if "://" in place else place
        raise NoSuchStore(ascii(shown), "its name is not valid Unicode; give the file another one") from None
    if _WINDOWS.match(place.removeprefix(_SQLITE)):
        raise NoSuchStore(place, f"it is a path of Windows, where this does not run: write {_FORMS}")
    if place.startswith(_SQLITE):
        path = place.removeprefix(_SQLITE)
        if path:
            return path
        raise NoSuchStore(place, "a file is missing, as in sqlite:///intersession.db")
    if is_postgres(place):
        raise NoSuchStore(_shown(place), "it is on PostgreSQL, and this wants a file")
    if "://" in place or place.startswith("sqlite:"):
        raise NoSuchStore(_shown(place), f"write {_FORMS}")
    if _LIBPQS.match(place):
        raise NoSuchStore("…", f"these are settings of libpq and no URL: write {_FORMS}")
    return place


def is_postgres(url: str) -> bool:
    """Return whether a URL is of a log on PostgreSQL."""
    return url[: len("postgresql:")].lower().startswith(("postgresql:", "postgres:"))


def _shown(url: str) -> str:
    """Return a URL that is refused, without what may be a password."""
    return f"{url.partition('://')[0]}://…" if "@" in url else url.partition("?")[0]


def is_base_url(text: str) -> bool:
    """Return whether a text is a URL of a server, by HTTP or HTTPS, with nothing behind its host and port, and no user."""
    try:
        parts = urlsplit(text)
        return (
            len(text) <= _LONGEST
            and text.isascii()
            and text.isprintable()
            and parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and (parts.port is None or parts.port > 0)
            and text == f"{parts.scheme}://{parts.netloc}"
            and not {"@", " ", "\\"} & {*parts.netloc}
        )
    except ValueError:
        return False

"""Reads the URL of a log on PostgreSQL: the settings of libpq, the schema of the log, and what of it may be shown."""

import os
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

from intersession_events.basics.errors import NoSuchStore

SCHEMA: Final = "intersession"
"""The schema of a log whose URL names none."""

_NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")
_SECRET: Final = frozenset({"password", "sslpassword"})
_HIDDEN: Final = "postgresql://…"
_FORM: Final = (
    "write postgresql://user:password@host:5432/database?schema=name, with @ : / ? # and % of a user or a password as "
    "%40 %3A %2F %3F %23 and %25"
)
_HOST: Final = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(:\d*)?")
_SETTING: Final = re.compile(r"[a-z_]+")
_WHERE: Final = frozenset({"host", "hostaddr", "port", "dbname", "user", "service"})
"""Settings of libpq's that say which log it is."""
_DATABASE: Final = frozenset({"dbname", "service"})
_WAKES: Final = ("notify", "poll")
_OURS: Final = frozenset({"schema", "wake", "files"})
_PATIENCE: Final[Mapping[str, str]] = {
    "connect_timeout": "5",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "intersession",
}
"""What libpq is told unless the URL tells it: a network that stalls is given up after some ten seconds."""


class Address(NamedTuple):
    """The place of a log."""

    conninfo: str
    """The URL for libpq, with its password."""
    schema: str
    shown: str
    """The URL as it may be shown: no password, no settings but the schema and the folder of its files, if one is named."""
    secrets: tuple[str, ...]
    """What must not be in any message."""
    place: str
    """Beside which path lies what is kept in files: forks, views that follow the log in their own time, workspaces."""
    notifies: bool
    """Whether a commit is announced by NOTIFY; else followers poll (`wake=poll`)."""

    def said(self, error: BaseException) -> str:
        """Return the message of an error in one line, without secrets and without our own statements."""
        words = " ".join(str(error).partition("\nCONTEXT:")[0].split())
        for secret in self.secrets:
            words = words.replace(secret, "***")
        return words


def address_of(url: str) -> Address:
    """Read `postgresql://user:password@host:port/database?schema=name&wake=poll&files=/folder`; all other settings go to libpq.

    What is kept in files lies in a folder of its own in `files`, else in the user's data folder.

    Raises:
        NoSuchStore: it is no such URL.
    """
    parts, settings = _parts_of(url)
    user, _, hosts = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    ours = {key: value for key, value in settings if key in _OURS}
    theirs = [(key, value) for key, value in settings if key not in ours]
    schema, wake = ours.get("schema", SCHEMA), ours.get("wake", _WAKES[0])
    place = f"postgresql://{name + '@' if name else ''}{hosts}{parts.path}"
    where = [*((key, value) for key, value in theirs if key in _WHERE), ("schema", schema)]
    shown = f"{place}?{urlencode(where, quote_via=quote, safe='/')}"
    if not _NAME.fullmatch(schema):
        raise NoSuchStore(place, f"schema={schema!r} is no name: a-z, 0-9 and _, at most 48 of them")
    if schema == "public":
        raise NoSuchStore(
            place, "schema='public' is everybody's: a log has a schema of its own, name another one"
        )
    if schema.startswith("pg_") or schema == "information_schema":
        raise NoSuchStore(place, f"schema={schema!r} is the server's own, name another one")
    if wake not in _WAKES:
        raise NoSuchStore(shown, f"wake={wake!r} is not one of {', '.join(_WAKES)}")
    if ours.get("files") and Path(ours["files"]).exists() and not Path(ours["files"]).is_dir():
        raise NoSuchStore(shown, f"files={ours['files']!r} is no folder")
    secrets = {password, unquote(password), *(value for key, value in theirs if key in _SECRET)}
    told = {key for key, _ in theirs}
    theirs += [(key, value) for key, value in _PATIENCE.items() if key not in told]
    return Address(
        conninfo=f"postgresql://{parts.netloc}{parts.path}?{urlencode(theirs, quote_via=quote)}",
        schema=schema,
        # Opening the log by the shown URL finds the same files.
        shown=f"{shown}&{urlencode({'files': ours['files']}, safe='/')}" if ours.get("files") else shown,
        secrets=tuple(secret for secret in secrets if secret),
        place=_place(_without_role(hosts, parts.path, name, where), ours.get("files")),
        notifies=wake == _WAKES[0],
    )


def _parts_of(url: str) -> tuple[SplitResult, list[tuple[str, str]]]:
    """Return the parts of a URL and its settings. One that may be read in another way is refused, and nothing of it is shown.

    Raises:
        NoSuchStore: it is no URL, or it has what belongs to a password where none is looked for.
    """
    try:
        url.encode()
        parts = urlsplit(url)
        settings = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except UnicodeEncodeError:
        raise NoSuchStore(_HIDDEN, "its URL is not valid Unicode") from None
    except ValueError as error:
        raise NoSuchStore(_HIDDEN, f"this is no URL ({type(error).__name__}): {_FORM}") from None
    if not url.partition(":")[2].startswith("//"):
        raise NoSuchStore(_HIDDEN, f"// is missing after postgresql: {_FORM}")
    user, _, hosts = parts.netloc.rpartition("@")
    if (
        "@" in user + parts.path
        or parts.fragment
        or not all(_HOST.fullmatch(host) for host in hosts.split(","))
        or not all(_SETTING.fullmatch(key) for key, _ in settings)
    ):
        raise NoSuchStore(_HIDDEN, f"where its parts begin can't be told: {_FORM}")
    twice = next((key for key in _OURS if [name for name, _ in settings].count(key) > 1), None)
    if twice is not None:
        raise NoSuchStore(_HIDDEN, f"it says {twice} twice")
    return parts, settings


def _without_role(hosts: str, path: str, name: str, where: Sequence[tuple[str, str]]) -> str:
    """Return where a log is, the same for every caller: its owner, its writer and its readers find the same files.

    Where no database is named, libpq takes that of the role's name.
    """
    is_named = path.strip("/") or any(key in _DATABASE for key, _ in where)
    settings = [(key, value) for key, value in where if not (is_named and key == "user")]
    return f"{'' if is_named or not name else f'{name}@'}{hosts}{path}?{urlencode(settings, quote_via=quote, safe='/')}"


def _place(shown: str, folder: str | None) -> str:
    """Return the path beside which files lie: in a folder of the log's own, named after where it is."""
    data = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    place = Path(folder or f"{data}/intersession").expanduser()
    name = re.sub(r"[^A-Za-z0-9]+", "-", shown.rpartition("@")[2]).strip("-")
    digest = sha256(shown.encode()).hexdigest()
    return os.path.realpath(place / f"{name[:_NAME_LENGTH]}-{digest[:8]}" / "log")


_NAME_LENGTH: Final = 64

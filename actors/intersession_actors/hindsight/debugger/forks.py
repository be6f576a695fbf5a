"""Names of forks in place of runs: a fork's id, or its beginning, means the run that the fork was made for (FORK-9)."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.view import View
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.closing import Closing
from intersession_events.basics.errors import LogError
from intersession_events.copies.forks.files import forks_called
from intersession_events.stores.database import MEMORY
from intersession_events.stores.opened import open_log
from intersession_projections.copies.forks.summary import fork_summary
from intersession_projections.views.inline_views import inline_views

A = TypeVar("A", bound=msgspec.Struct)
P = TypeVar("P")
R = TypeVar("R")


class ForkViews(Closing):
    """Opens named forks for reading, for the time of a block. Only the operator sees them."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._open = ExitStack()
        self._found: dict[Path, tuple[View, str]] = {}

    def close(self) -> None:
        """Close what was opened."""
        self._open.close()

    def of(self, names: Sequence[object], *, field: str) -> tuple[View, list[object]]:
        """Return the one log that names of runs and places refer to, and the names as that log has them.

        Names that are of no fork stay as they are.

        Raises:
            ToolRefused: several forks have that name, or a run as well; or the names are of different forks.
        """
        forks = {
            name: fork for name in names if isinstance(name, str) and (fork := self._called(name, field))
        }
        if not forks:
            return self._view, list(names)
        fork, *others = dict.fromkeys(forks.values())
        if others:
            raise _refused(field, "these are different forks: name one, or compare them with diff")
        view, run = self._opened(fork, field)
        return view, [
            _renamed(name, run) if isinstance(name, str) and name in forks else name for name in names
        ]

    def meant(self, name: str, *, field: str) -> tuple[View, str]:
        """Return the log that a run's or place's name refers to, and the name as that log has it.

        Raises:
            ToolRefused: as `of`.
        """
        view, (meant,) = self.of([name], field=field)
        return view, str(meant)

    def placed(self, run: str, at: P, *, field: str) -> tuple[View, str, P | str]:
        """Return the log that a run's name refers to, and the run and a place of it as that log has them.

        Raises:
            ToolRefused: as `of`.
        """
        if not isinstance(run, str):  # pyright: ignore[reportUnnecessaryIsInstance] - a host gives what it likes
            return self._view, run, at
        view, name = self.meant(run, field=field)
        if not isinstance(at, str) or _PLACE not in at:
            return view, name, at
        of_place, place = self.meant(at, field=field)
        if of_place is not view:
            raise _refused(field, "the run and the place are of different logs: name the place without a run")
        return view, name, place

    def _called(self, name: str, field: str) -> Path | None:
        base = _base(name)
        if not self._view.is_operator or self._view.log.place == MEMORY:
            return None
        found = forks_called(self._view.log.place, base)
        if not found:
            return None
        if len(found) > 1:
            named = ", ".join(file.stem for file in found)
            raise _refused(
                field,
                f"several forks have ids that begin with {base[:64]!a}, give more of the one you mean: {named}",
            )
        if found[0].stem != base and self._view.is_run(base):
            raise _refused(
                field,
                f"{base!a}: a run has that id, and the fork {found[0].stem}: give more of the id you mean",
            )
        return found[0]

    def _opened(self, fork: Path, field: str) -> tuple[View, str]:
        if fork not in self._found:
            reader = self._view.reader
            try:
                log = self._open.enter_context(open_log(str(fork), read_only=True, inline=inline_views()))
                told = fork_summary(log)
            except LogError as error:
                raise _refused(field, f"the fork {fork.stem} can't be read ({error})") from None
            inside = Reader(log, config=lambda: reader.config, clock=reader.clock, smells=reader.smells)
            view = View(inside)
            view = view.hiding() if self._view.hides else view
            view.touched = self._view.touched
            self._found[fork] = (view, "" if told is None else told.outcome.run)
        return self._found[fork]


def naming_forks(call: Callable[[View, A], R], *fields: str) -> Callable[[View, A], R]:
    """Return a verb that also takes names of forks in some of its fields, and then looks into the fork."""

    def called(view: View, given: A) -> R:
        with ForkViews(view) as forks:
            inside, names = forks.of([getattr(given, field) for field in fields], field=fields[0])
            return call(inside, msgspec.structs.replace(given, **dict(zip(fields, names, strict=True))))

    return called


_PLACE: Final = "@"


def _base(name: str) -> str:
    return name.partition(_PLACE)[0]


def _renamed(name: str, run: str) -> str:
    return f"{run}{name[len(_base(name)) :]}"


def _refused(field: str, error: str) -> ToolRefused:
    return ToolRefused("invalid_request", f"{field}: {error}")

"""Runs one command: parse, do, print, exit code; no input leads to a traceback."""

import gc
import logging
import re
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from intersession.cli.app import app, overview
from intersession.cli.shell.answer import BROKEN_PIPE, INTERRUPTED, OK, REFUSED, Answer, Failure, as_typed
from intersession.cli.shell.output import help_console
from intersession.cli.shell.terminal import Screen, give_up_output, have_streams, json_text, safe, shown

_OBJECTS: Final = 50_000
"""The number of new objects after which cycles are collected.

Modules and events live as long as a command: the usual 700 cost it a tenth of its time.
"""


def main(tokens: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Without tokens it runs this process's command line and exits."""
    if tokens is None:
        have_streams()
    given = list(sys.argv[1:] if tokens is None else tokens)
    screen = Screen()
    warnings = _Warnings(screen, as_json=wants_json(given))
    logging.getLogger().addHandler(warnings)
    level, thresholds = logging.getLogger(ROOT).level, gc.get_threshold()
    gc.set_threshold(_OBJECTS, *thresholds[1:])
    try:
        exit_code = _run(given, screen)
        warnings.end()
        screen.flush()
    except BrokenPipeError:
        give_up_output()
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        logging.getLogger().removeHandler(warnings)
        logging.getLogger(ROOT).setLevel(level)
        gc.set_threshold(*thresholds)
        if tokens is None:
            # The process ends now, and Python would go through all that is in memory twice more.
            gc.freeze()
    return exit_code


def _run(tokens: list[str], screen: Screen) -> int:
    as_json = wants_json(tokens)
    table = overview() if not tokens or tokens[0] in {"--help", "-h"} else app
    try:
        answer = table(
            tokens,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
            console=help_console(),
        )
        if not isinstance(answer, Answer):
            return OK  # it was --help or --version, which have printed already
        # An answer that is shown is made of many objects, and none of them is garbage.
        with searching_after(0):
            if as_json:
                _print_json(answer.value)
            else:
                with screen.together():
                    answer.show(screen)
    except BrokenPipeError:
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, a program that reads JSON must get JSON
        from intersession.cli.shell.failures import failure_of  # noqa: PLC0415 - most commands need none of it

        failure = failure_of(error, tokens)
        if failure is None:
            traceback.print_exc()
            failure = Failure(
                REFUSED, "internal", f"a fault of this software: {type(error).__name__}: {error}"
            )
        _tell(failure, screen, tokens, as_json=as_json)
        return failure.exit_code
    return answer.exit_code


@contextmanager
def searching_after(objects: int) -> Generator[None]:
    """Set Python's garbage collection to run after a number of new objects (0: never), never sooner than before."""
    before = gc.get_threshold()
    gc.set_threshold(max(objects, before[0]) if objects and before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def wants_json(tokens: Sequence[str]) -> bool:
    """Whether `--json` is among the options: even a command that can't be parsed answers in JSON then."""
    options = tokens[: tokens.index("--")] if "--" in tokens else tokens
    return "--json" in options


def _tell(failure: Failure, screen: Screen, tokens: Sequence[str], *, as_json: bool) -> None:
    """Report a failure: to programs in the words of every door, to people by what they typed."""
    if as_json:
        _print_json(failure.value)
        return
    screen.note(
        safe(f"{failure.status} ({failure.code}): ", "bold red"),
        failure.error if failure.code == "invalid_config" else as_typed(failure.error, tokens),
    )


def _print_json(value: object) -> None:
    sys.stdout.write(json_text(value, sys.stdout.encoding) + "\n")


class _Warnings(logging.Handler):
    """Shows the system's warnings beside the result, without stack traces, and inert."""

    def __init__(self, screen: Screen, *, as_json: bool) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen
        self._as_json = as_json
        self._waiting = Counter[str]()
        self._given_up = Counter[str]()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            said = record.getMessage()
            if is_new(said) and not self._is_told(getattr(record, "failure", None)):
                self._screen.note(safe(f"{record.levelname.lower()}: ", "yellow"), said)
        except Exception:  # noqa: BLE001 - the way of all handlers: logging never ends a program
            self.handleError(record)

    def _is_told(self, failure: "Told | None") -> bool:
        """Whether a failure is counted and told at the end: thousands of texts may wait for a channel, and be given up."""
        if failure is None:
            return False
        channel = failure.channel or ""
        if failure.kind == "delivery_parked":
            self._waiting[channel] += 1
            return self._waiting[channel] > 1
        if failure.kind == "delivery_failed" and (failure.error or "").startswith(_GIVEN_UP):
            self._given_up[channel] += 1
            return not self._as_json
        return False

    def end(self) -> None:
        """Say how many texts were given up for each channel, and how many more wait for it."""
        for channel, count in tuple(self._given_up.items()):
            self._screen.note(safe("note: ", "yellow"), f"given up for {channel}, unsent: {count}")
        for channel, count in tuple(self._waiting.items()):
            if count > 1:
                more = f"{count - 1} more for {channel}; `intersession deliveries --pending` lists what waits"
                self._screen.note(safe("warning: ", "yellow"), more)


_GIVEN_UP: Final = "given up by "
"""How the error of a text begins that an operator gave up. The rules of deliveries have it, which few commands load."""
_ID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_lock = threading.Lock()
_said: list[set[str]] = []


@contextmanager
def saying_once() -> Generator[None]:
    """Show warnings that differ only in ids once, for the time of a block."""
    _said.append(set())
    try:
        yield
    finally:
        _said.pop()


def is_new(said: str) -> bool:
    """Whether a warning is the first of its kind since the block began."""
    with _lock:
        if not _said:
            return True
        alike = _ID.sub("", said)
        if alike in _said[-1]:
            return False
        _said[-1].add(alike)
        return True


if TYPE_CHECKING:
    from intersession_actors.rules.config.host import Logging
    from intersession_actors.running.failures.failure import Failure as Told

ROOT: Final = "intersession"


class _Lines(logging.Formatter):
    """Times in UTC, and nothing that steers a terminal."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self.default_msec_format = "%s.%03dZ"
        self.converter = time.gmtime

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as it is printed."""
        return shown(super().format(record))


@contextmanager
def console_log(settings: "Logging") -> Generator[None]:
    """Print our loggers' messages to standard error for the time of a block, from the configured level on."""
    logger = logging.getLogger(ROOT)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    use_level(settings)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before
        logger.setLevel(before[0])


def use_level(settings: "Logging") -> None:
    """Log only messages of the configured `logging.level` and above."""
    logging.getLogger(ROOT).setLevel(settings.threshold)

"""Settles what all tests share, and adds `--clause LIST-4`: run only the tests that prove a clause."""

import gc
import os
import shutil
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings

from support.run_context import differing

pytest_plugins = ["support.fixtures", "support.workers"]

# No test is about how fast an example is, and a busy machine is slow. In CI, the same examples each time.
settings.register_profile("here", deadline=None, max_examples=10)
settings.register_profile(
    "ci",
    settings.get_profile("here"),
    max_examples=25,
    derandomize=True,
    database=None,
    print_blob=True,
)
settings.register_profile("nightly", settings.get_profile("here"), max_examples=2000)
settings.load_profile("ci" if os.environ.get("CI") else "here")

# Hundreds of child processes import the same modules. Where nothing may be kept, each would compile them all again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False


# Thousands of small logs, each synced many times: on a disk, the tests would wait for it a third of their time.
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its user's own in it
ENOUGH: Final = 2**30
if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free >= ENOUGH:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


NIGHTLY_S: Final = 1_800
"""What a slow test may take that does not say it itself: the night may have other work."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--clause",
        action="append",
        default=[],
        metavar="ID",
        help="run only tests marked with this clause of docs/protocol.md (may be given again)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("long") is None)
    for item in items:
        sample = item.get_closest_marker("sampled")
        is_on_server = item.get_closest_marker("postgres") is not None
        if sample and is_on_server and not item.name.endswith(tuple(f"-{name}]" for name in sample.args)):
            item.add_marker(pytest.mark.nightly)
        if item.get_closest_marker("nightly") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(NIGHTLY_S))
    wanted = set(config.getoption("--clause") or ())
    if not wanted:
        return
    proving = [
        item
        for item in items
        if wanted & {clause for mark in item.iter_markers("clause") for clause in mark.args}
    ]
    config.hook.pytest_deselected(items=[item for item in items if item not in proving])
    items[:] = proving


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None]:
    """Look for garbage less often, and not among the tests themselves: that took a fifth of their time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(10_000, 10, 10)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def nothing_is_left_at_home(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    """Have what a log on PostgreSQL keeps in files lie with the tests' own, where a URL does not say where."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session", autouse=True)
def nothing_is_made_of_finalizers_without_a_stack() -> Generator[None]:
    """Leave out finalizers that ran where something nested deeply was just decoded.

    The collector of garbage may run there, at the end of the stack: what other tests have left can't be closed in order then.
    """
    hook = sys.unraisablehook

    def has_stack(frames: int = 60) -> bool:
        return not frames or has_stack(frames - 1)

    def heard(unraisable: "sys.UnraisableHookArgs") -> None:
        try:
            is_told = has_stack() and not isinstance(unraisable.exc_value, RecursionError)
        except RecursionError:
            return
        if is_told:
            hook(unraisable)

    sys.unraisablehook = heard
    yield
    sys.unraisablehook = hook


@pytest.fixture(scope="session", autouse=True)
def every_run_is_as_recorded() -> Generator[None]:
    """Hold the context of each run of each system that a test closes against its hash (finding A11, LENS-1)."""
    from intersession import SessionSystem  # noqa: PLC0415 - not where nothing is run
    from intersession_events.basics.errors import LogError  # noqa: PLC0415

    close = SessionSystem.close

    def looked_at(self: SessionSystem, grace: float | None = None) -> None:
        try:
            different = differing(self.log) if self._started else []
        except (LogError, LookupError, TypeError):
            different = []  # what a test damaged, erased or made up
        close(self, grace)
        assert different == []

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SessionSystem, "close", looked_at)
        yield

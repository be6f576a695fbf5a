"""A rule that says something else for a while, so that a test sees whether that is noticed."""

import inspect
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def rewritten(module: ModuleType, was: str, now: str) -> Generator[None]:
    """Have a module be as if its source said something else."""
    source, before = inspect.getsource(module), {**vars(module)}
    assert source.count(was) == 1
    exec(compile(source.replace(was, now), module.__file__ or "", "exec"), vars(module))  # noqa: S102
    try:
        # What others imported of it goes on to work with what it says now.
        yield
    finally:
        vars(module).clear()
        vars(module).update(before)

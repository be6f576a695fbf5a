"""Has the workers of a run share its beginning: each asks pytest for the same modules, and so all would rewrite each first."""

import os
from collections.abc import Generator

import pytest

WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have each worker begin elsewhere in a folder: what the others have rewritten meanwhile, it finds in their cache."""
    report = yield
    if isinstance(collector, pytest.Dir) and report.passed:
        begin = len(report.result) * WORKER // WORKERS
        report.result[:] = report.result[begin:] + report.result[:begin]
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Have all workers have the tests in the same order again, before it is drawn by lot."""
    if WORKERS > 1:
        items.sort(key=lambda item: item.path)
    return (yield)

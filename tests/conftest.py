"""Adds `--clause LIST-4`: run only the tests that prove a clause."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--clause",
        action="append",
        default=[],
        metavar="ID",
        help="run only tests marked with this clause of docs/protocol.md (may be given again)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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

"""A log that the demo left, for tests of every door that read."""

import pytest

from support.doors.command_line import DemoLog


@pytest.fixture(scope="session")
def demo_log(tmp_path_factory: pytest.TempPathFactory) -> DemoLog:
    """Return the log of one demo, the same for all tests."""
    return DemoLog(tmp_path_factory.mktemp("demo") / "demo.db")

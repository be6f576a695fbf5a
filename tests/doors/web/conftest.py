"""What the tests of the web debugger share: the log of one demo."""

import pytest

from support.doors.command_line import DemoLog


@pytest.fixture(scope="session")
def demo_log(tmp_path_factory: pytest.TempPathFactory) -> DemoLog:
    """Return the log of one demo, the same for all tests."""
    return DemoLog(tmp_path_factory.mktemp("demo") / "demo.db")

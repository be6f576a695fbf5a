"""A log to import into, and what an import made of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_projections.views.inline_views import inline_views


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PortableLog]:
    with open_log(f"sqlite:///{tmp_path}/import.db", inline=inline_views()) as opened:
        yield opened

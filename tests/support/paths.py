"""Where things lie in the repository, for tests that read its pages, its sources or the data of tests."""

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
TESTS: Final = ROOT / "tests"
DATA: Final = TESTS / "data"

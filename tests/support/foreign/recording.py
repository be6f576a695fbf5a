"""Records databases of frameworks for the tests: `python tests/support/foreign/recording.py --write`, with the group `frameworks` installed."""

import lzma
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # as a script, it is not found otherwise

from support.foreign import agents_sdk, langgraph_graph
from support.paths import TESTS

DATA: Final = TESTS / "data" / "foreign"


def langgraph(play: Callable[[Any], None], path: Path) -> None:
    """Write a database of LangGraph's own saver."""
    with import_module("langgraph.checkpoint.sqlite").SqliteSaver.from_conn_string(str(path)) as saver:
        play(saver)


RECORDED: Final[dict[str, Callable[[Path], None]]] = {
    "langgraph": partial(langgraph, langgraph_graph.play),
    "langgraph-deltas": partial(langgraph, langgraph_graph.play_deltas),
    "agents-plain": agents_sdk.play_plain,
    "agents-advanced": agents_sdk.play_advanced,
    "agents-sqlalchemy": agents_sdk.play_sqlalchemy,
}


def recorded(name: str, folder: Path) -> Path:
    """Return a recorded database, unpacked into a folder."""
    path = folder / f"{name}.db"
    with lzma.open(DATA / f"{name}.db.xz") as packed, path.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return path


def write(names: Sequence[str]) -> None:
    """Record some of them anew, or all."""
    DATA.mkdir(exist_ok=True)
    for name in names or RECORDED:
        play = RECORDED[name]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"{name}.db"
            play(path)
            with sqlite3.connect(path) as database:
                database.execute("PRAGMA journal_mode = DELETE")
            database.close()
            (DATA / f"{name}.db.xz").write_bytes(lzma.compress(path.read_bytes(), preset=9))


if __name__ == "__main__" and "--write" in sys.argv:
    write(sys.argv[sys.argv.index("--write") + 1 :])

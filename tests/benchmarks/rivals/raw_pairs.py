"""`sqlite3` and nothing else: a turn is a transaction with the message, its answer and where the exchange stands; a send is two."""

import sqlite3
import threading
from pathlib import Path
from typing import Any

from benchmarks.rivals import meter


def main(directory: Path, sizes: dict[str, Any]) -> None:
    connection = sqlite3.connect(directory / "raw.db", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE messages (id INTEGER PRIMARY KEY, session TEXT, role TEXT, text TEXT)")
    connection.execute("CREATE TABLE exchanges (id TEXT PRIMARY KEY, turn INTEGER, latest TEXT)")
    alone = threading.Lock()

    def exchange(pair: int, number: int) -> None:
        said = meter.MESSAGE
        for turn in range(sizes["turns"]):
            session = f"agent:{'main' if turn % 2 else 'desk'}:{pair}"
            with alone:
                connection.execute("BEGIN IMMEDIATE")
                message(session, "user", said)
                if sizes["turns"] == 1:
                    connection.execute("COMMIT")
                    connection.execute("BEGIN IMMEDIATE")
                said = meter.REPLY
                message(session, "assistant", said)
                row = (f"{pair}-{number}", turn, said)
                connection.execute("INSERT OR REPLACE INTO exchanges VALUES (?, ?, ?)", row)
                connection.execute("COMMIT")

    def message(session: str, role: str, text: str) -> None:
        connection.execute(
            "INSERT INTO messages (session, role, text) VALUES (?, ?, ?)", (session, role, text)
        )

    meter.talk(exchange, sizes)


if __name__ == "__main__":
    main(*meter.given())

"""DBOS on SQLite or PostgreSQL: an exchange is a workflow, a turn one of its steps."""

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.rivals import meter


def main(directory: Path, sizes: dict[str, Any]) -> None:
    DBOS: Any = import_module("dbos").DBOS  # noqa: N806 - its own name
    DBOS(
        config={
            "name": "pairs",
            "system_database_url": sizes.get("url") or f"sqlite:///{directory / 'dbos.db'}",
            "dbos_system_schema": directory.parent.name,
            "run_admin_server": False,
            "log_level": "ERROR",
        }
    )

    @DBOS.step()  # type: ignore[untyped-decorator]  # it is not installed where types are checked
    def answer(_asked: str) -> str:
        return meter.REPLY

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def talk_over(said: str) -> str:
        for _ in range(sizes["turns"]):
            said = str(answer(said))
        return said

    DBOS.launch()
    meter.talk(lambda _pair, _number: talk_over(meter.MESSAGE), sizes)
    DBOS.destroy()


if __name__ == "__main__":
    main(*meter.given())

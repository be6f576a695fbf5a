"""Pykka and the eventsourcing library, as their pages show them: an actor a session, an aggregate each, `save` at each turn."""

from pathlib import Path
from typing import Any, cast
from uuid import NAMESPACE_URL, UUID, uuid5

import pykka
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event

from benchmarks.rivals import meter


class Session(Aggregate):
    """One session's messages."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.said: int = 0

    @staticmethod
    def create_id(key: str) -> UUID:
        return uuid5(NAMESPACE_URL, key)

    @event("Asked")
    def ask(self, text: str) -> None:
        """Take what was asked, before it is answered."""
        del text
        self.said += 1

    @event("Answered")
    def answer(self, asked: str, text: str, exchange: str, turn: int) -> None:
        """Take what was asked and what was answered, and where the exchange stands."""
        del asked, text, exchange, turn
        self.said += 1


class SessionActor(pykka.ThreadingActor):
    """Owns one session; hands each answer to the other one of its pair, until the exchange is over."""

    use_daemon_thread = True

    def __init__(self, app: "Application[UUID]", key: str, turns: int) -> None:
        super().__init__()
        self._app = app
        self._turns = turns
        self._session = Session(key)

    def on_receive(self, message: Any) -> None:
        asked, exchange, turn, other, over = message
        if self._turns == 1:
            self._session.ask(asked)
            self._app.save(self._session)
        text = meter.REPLY
        self._session.answer(asked, text, exchange, turn)
        self._app.save(self._session)
        if turn + 1 == self._turns:
            over.set(None)
        else:
            other.tell((text, exchange, turn + 1, self.actor_ref, over))


def main(directory: Path, sizes: dict[str, Any]) -> None:
    app: Application[UUID] = Application(
        env={
            "PERSISTENCE_MODULE": "eventsourcing.sqlite",
            "SQLITE_DBNAME": str(directory / "plain.db"),
            "SQLITE_LOCK_TIMEOUT": "600",
            "SQLITE_POOL_TIMEOUT": "600",
        }
    )
    pairs = [
        [SessionActor.start(app, f"agent:{agent}:{number}", sizes["turns"]) for agent in ("desk", "main")]
        for number in range(sizes["pairs"])
    ]

    def exchange(pair: int, number: int) -> None:
        first, other = pairs[pair]
        over = cast("pykka.ThreadingFuture[None]", pykka.ThreadingFuture())
        first.tell((meter.MESSAGE, f"{pair}-{number}", 0, other, over))
        over.get(timeout=600)

    meter.talk(exchange, sizes)
    pykka.ActorRegistry.stop_all()


if __name__ == "__main__":
    main(*meter.given())

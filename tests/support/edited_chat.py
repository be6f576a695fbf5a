"""A chat whose messages can be edited, and agents that say their answer in pieces, for answers that are shown while they are said."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from intersession import Channel, Outbound, Turn
from support.running import WAIT, Gate


class Chat:
    """A chat whose messages can be edited: what people see is `messages`. `refuses` is raised by edits, as long as it is there."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self.messages: dict[int, str] = {}
        self.calls: list[tuple[str, str, bool]] = []
        self.refuses: Exception | None = None
        self.fails: Exception | None = None

    @property
    def channel(self) -> Channel:
        return Channel(deliver=self.deliver, edit=self.edit, edit_every=0.0)

    def deliver(self, out: Outbound) -> Mapping[str, int]:
        with self.changed:
            self.calls.append(("deliver", out.text, out.unfinished))
            self.changed.notify_all()
            if self.fails is not None:
                raise self.fails
            number = len(self.messages) + 1
            self.messages[number] = out.text
            return {"id": number}

    def edit(self, out: Outbound) -> None:
        assert isinstance(out.receipt, dict)
        with self.changed:
            self.calls.append(("edit", out.text, out.unfinished))
            if self.refuses is not None:
                raise self.refuses
            self.messages[out.receipt["id"]] = out.text
            self.changed.notify_all()

    def until(self, *texts: str) -> None:
        """Wait until people see these messages, and no others."""
        with self.changed:
            assert self.changed.wait_for(lambda: tuple(self.messages.values()) == texts, WAIT), self.calls


def talking(gate: Gate, *pieces: str, error: Exception | None = None) -> Any:
    """Return an agent that says the first piece, stops at the gate, and says the rest, or fails."""

    def agent(turn: Turn) -> Iterator[str]:
        yield pieces[0]
        gate.stop(turn)
        yield from pieces[1:]
        if error is not None:
            raise error

    return agent

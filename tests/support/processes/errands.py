"""Agents that run an errand of several steps, to be killed in the middle of it: what they send, start and pay may happen once only."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from intersession import Turn

RUN: Final = "run the errand"
RESEARCH: Final = "agent:research:main"

SENDS: Final = ("pay invoice 7", "again", "again", "thanks", "by the key")
SPAWNS: Final = ("dig here", "dig there")
PAYS: Final = (7, 8, 8)
"""The same words twice are two calls."""
STEPS: Final = len(SENDS) + len(SPAWNS) + len(PAYS)


class Lines(Protocol):
    """A file of JSON lines."""

    def add(self, line: Mapping[str, Any]) -> None: ...
    def all(self) -> list[dict[str, Any]]: ...


class Bank:
    """A service outside: it pays once for each key, and is called as often as anybody likes."""

    def __init__(self, paid: Lines) -> None:
        self._paid = paid

    def pay(self, key: str, invoice: int) -> str:
        """Pay an invoice, unless that was done under this key."""
        if all(line["key"] != key for line in self._paid.all()):
            self._paid.add({"key": key, "invoice": invoice})
        return f"paid {invoice} as {key}"


class Errand:
    """Runs the errand where its session is told to; else it is another agent. `steps` tells how far it has come."""

    def __init__(self, steps: Lines, bank: Bank, other: Callable[[Turn], Any], turns: Lines) -> None:
        self._steps = steps
        self._bank = bank
        self._other = other
        self._turns = turns

    def _is_told(self, turn: Turn) -> bool:
        if turn.step != "message" or turn.message != RUN:
            return False
        self._turns.add({"run": turn.run_id, "attempt": turn.attempt, "partial": len(turn.partial)})
        return True

    def _pay(self, turn: Turn, invoice: int) -> str:
        call = turn.record_call("pay", {"invoice": invoice})
        self._steps.add({"asked": call})
        made = turn.made_before.get(call)
        result = (made.result if made is not None and made.has_ended else None) or self._bank.pay(
            call, invoice
        )
        turn.record_result(call, "pay", result)
        return result

    def _told(self, answer: Any) -> None:
        self._steps.add({"answer": answer})


class StepByStep(Errand):
    """One step after the other: some are waited for, some are not."""

    def __call__(self, turn: Turn) -> Any:
        if not self._is_told(turn):
            return self._other(turn)
        first, *others = SENDS
        self._told(turn.tools.call("sessions_send", sending(first, 20)))
        self._told(turn.tools.call("sessions_spawn", {"task": SPAWNS[0]}))
        self._told(self._pay(turn, PAYS[0]))
        for number, text in enumerate(others):
            self._told(turn.tools.call("sessions_send", sending(text, 20 * (number % 2))))
        for invoice in PAYS[1:]:
            self._told(self._pay(turn, invoice))
        self._told(turn.tools.call("sessions_spawn", {"task": SPAWNS[1]}))
        return "all done"


class SideBySide(Errand):
    """All at once, on asyncio, in another order in each attempt."""

    async def __call__(self, turn: Turn) -> Any:
        if not self._is_told(turn):
            return await asyncio.to_thread(self._other, turn)
        steps = [
            *(
                turn.tools.acall("sessions_send", sending(text, 20 * (number % 2)))
                for number, text in enumerate(SENDS)
            ),
            *(turn.tools.acall("sessions_spawn", {"task": task}) for task in SPAWNS),
            *(asyncio.to_thread(self._pay, turn, invoice) for invoice in PAYS),
        ]
        await asyncio.gather(*map(self._awaited, steps[:: 1 if turn.attempt % 2 else -1]))
        return "all done"

    async def _awaited(self, step: Any) -> None:
        self._told(await step)


def sending(text: str, timeout: int) -> dict[str, Any]:
    """Return the arguments of a send."""
    key = {"idempotencyKey": text} if text == "by the key" else {}
    return {"sessionKey": RESEARCH, "message": text, "timeoutSeconds": timeout, **key}


ERRANDS: Final[Mapping[str, type[StepByStep | SideBySide]]] = {"errand": StepByStep, "errands": SideBySide}
"""By the scenario, what kind of agent runs the errand."""

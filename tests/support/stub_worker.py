"""A worker that a test plays by hand: it asks the methods of a system as the credential of a worker, in the test's own process."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from intersession import SessionSystem, StoreUnavailable, ToolRefused
from intersession_actors.calls.service.callers import Caller
from intersession_actors.outside.agents.result import AgentResult, Answered, sent_result

CREDENTIAL = Caller.by_credential("work", (), agents=("*",), channels=("*",))


class StubWorker:
    """Asks the methods of a system. `system` may become another one: the writer that took over."""

    def __init__(
        self,
        system: SessionSystem,
        *agents: str,
        name: str = "one",
        channels: Mapping[str, str] | None = None,
    ) -> None:
        self.system = system
        self.name = name
        self.agents = agents
        self.channels = channels or {}

    def ask(self, method: str, /, **params: object) -> Any:
        return self.system.gateway.perform(f"worker.{method}", params, caller=CREDENTIAL)

    def announce(self, *, is_draining: bool = False, **said: str) -> None:
        agents = dict.fromkeys(self.agents, "") | said
        self.ask(
            "announce",
            worker=self.name,
            host="here",
            version="1",
            agents=agents,
            channels=self.channels,
            seats=8,
            isDraining=is_draining,
        )

    def take(self, most: int = 1, wait: float = 20.0) -> list[dict[str, Any]]:
        offers: list[dict[str, Any]] = self.ask("take", worker=self.name, most=most, wait=wait)["offers"]
        return offers

    def one(self) -> dict[str, Any]:
        (offer,) = self.take()
        return offer

    def act(self, offer: Mapping[str, Any], type_: str, /, **act: object) -> Any:
        for _ in range(1_000):
            try:
                return self.ask("act", **call_of(offer), secret=offer["secret"], act={"type": type_, **act})
            except ToolRefused as refused:  # a writer that has only just started
                if refused.code != "unavailable":
                    raise
            self.system.log.wait_for(self.system.log.head() + 1, timeout=0.02)
        raise AssertionError("the writer never took the act")

    def ask_over_take_over(self, offer: Mapping[str, Any], type_: str, /, **act: object) -> Any:
        """Ask until there is an answer, whichever writer gives it."""
        while True:
            system = self.system
            try:
                return self.ask("act", **call_of(offer), secret=offer["secret"], act={"type": type_, **act})
            except (ToolRefused, StoreUnavailable, RuntimeError) as error:
                if isinstance(error, ToolRefused) and error.code != "unavailable":
                    raise
            with suppress(StoreUnavailable, RuntimeError):
                system.log.wait_for(system.log.head() + 1, timeout=0.02)

    def answer(self, offer: Mapping[str, Any], result: AgentResult | str) -> bool:
        told = self.ask("answer", worker=self.name, **answer_to(offer, result))
        counts: bool = told["counts"]
        return counts

    def renew(self, *offers: Mapping[str, Any]) -> list[dict[str, Any]]:
        lost: list[dict[str, Any]] = self.ask(
            "renew", worker=self.name, calls=[call_of(one) for one in offers]
        )["lost"]
        return lost

    def leave(self) -> None:
        self.ask("leave", worker=self.name)

    def serve(self, answers: Sequence[str]) -> None:
        for text in answers:
            self.answer(self.one(), text)


def call_of(offer: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": offer["kind"], "id": offer["id"], "attempt": offer["attempt"]}


def answer_to(offer: Mapping[str, Any], result: AgentResult | str) -> dict[str, Any]:
    told = Answered(text=result) if isinstance(result, str) else result
    return call_of(offer) | {"content": sent_result(told).decode()}


def plain(value: object) -> Any:
    return msgspec.to_builtins(value)

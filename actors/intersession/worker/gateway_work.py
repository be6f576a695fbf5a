"""The queue of calls through the gateway of the log's writer, for workers without a way to the log's database (WORK-14)."""

from collections.abc import Collection, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Final

from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import StoreUnavailable, WorkRefused
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.recorded import Recorded
from intersession_events.log.sent import received
from intersession_events.log.work_queue import ALIVE_S, MOST_AT_ONCE, CallId, Offer, Worker

if TYPE_CHECKING:
    from intersession.gateway.protocol.line import Line

_ANSWER_S: Final = 5.0
"""How long a gateway may take to answer; then the next address is tried."""

_NEXT: Final = "worker.next"


class GatewayWork:
    """The queue as workers have it, by requests to the writer's gateway."""

    def __init__(self, line: "Line") -> None:
        self._line = line
        self.alive_s: float = ALIVE_S
        self._given: dict[CallId, list[JsonObject]] = {}
        """The events that came with offers, until they are asked for."""

    def announce(self, worker: Worker) -> None:
        """Say that a worker lives, and what it has."""
        answer = self._ask(
            "worker.announce",
            {
                "worker": worker.name,
                "host": worker.host,
                "version": worker.version,
                "agents": dict(worker.agents),
                "channels": dict(worker.channels),
                "seats": worker.seats,
                "isDraining": worker.is_draining,
            },
        )
        self.alive_s = float(answer["aliveSeconds"])

    def take(self, worker: str, most: int, wait: float) -> Sequence[Offer]:
        """Take up to `most` calls, oldest first; wait for the first one."""
        return self._offers(self._ask("worker.take", {"worker": worker, "most": most, "wait": wait}, wait))

    def _offers(self, answer: JsonObject) -> Sequence[Offer]:
        offers = [_offer(given) for given in answer["offers"]]
        # The events of a call are asked for as it begins. What is left is of calls that were over by then.
        while len(self._given) > MOST_AT_ONCE:
            self._given.pop(next(iter(self._given)), None)
        for offer, given in zip(offers, answer["offers"], strict=True):
            if given.get("events"):
                self._given[offer.call] = given["events"]
        return offers

    def renew(self, worker: str, calls: Collection[CallId]) -> Collection[CallId]:
        """Say that a worker lives and has these calls; return those that are no longer its own."""
        answer = self._ask("worker.renew", {"worker": worker, "calls": [one._asdict() for one in calls]})
        return [CallId(**one) for one in answer["lost"]]

    def answer(self, worker: str, call: CallId, content: bytes) -> bool:
        """Say what came of a call, durably; False if it is no longer this worker's."""
        said = {"worker": worker, **call._asdict(), "content": content.decode()}
        return bool(self._ask("worker.answer", said)["counts"])

    def go_on(
        self, worker: str, call: CallId, content: bytes, most: int, wait: float
    ) -> tuple[Sequence[Offer], bool]:
        """Say what came of a call, as `answer` does, and take others in the same request, as `take` does.

        It takes none where the writer is of a version before that request (WORK-19).
        """
        if _NEXT not in self._line.methods:
            return (), self.answer(worker, call, content)
        said = {**call._asdict(), "content": content.decode()}
        came = self._ask(_NEXT, {"worker": worker, "answer": said, "most": most, "wait": wait}, wait)
        return self._offers(came), bool(came["counts"])

    def events(self, worker: str, call: CallId, after: int) -> Sequence[Recorded]:
        """Return events of the stream of a call, behind a version, up to the call's own."""
        given = [received(event) for event in self._given.pop(call, ())]
        if given and given[0].version <= after + 1 and given[-1].version > after:
            return given[after + 1 - given[0].version :]
        answer = self._ask("worker.events", {"worker": worker, **call._asdict(), "after": after})
        return [received(event) for event in answer["events"]]

    def leave(self, worker: str) -> None:
        """Say that a worker ends."""
        self._ask("worker.leave", {"worker": worker})

    def gateway(self) -> str | None:
        """Return None: the worker knows its gateways."""
        return None

    def close(self) -> None:
        """Do nothing: what waits ends with the worker's connection."""

    def _ask(self, method: str, params: JsonObject, wait: float = 0.0) -> JsonObject:
        asked = self._line.ask(method, params, again=False)
        try:
            return asked.result(wait + _ANSWER_S)
        except TimeoutError:
            asked.cancel()
            self._line.lose()
            raise StoreUnavailable(f"the gateway did not answer {method} in time") from None
        except CancelledError:
            raise StoreUnavailable("the worker has ended") from None
        except ToolRefused as refused:
            raise WorkRefused(refused.error) from None


def _offer(given: JsonObject) -> Offer:
    return Offer(
        kind=given["kind"],
        id=given["id"],
        attempt=given["attempt"],
        name=given["name"],
        stream=given["stream"],
        version=given["version"],
        secret=given["secret"],
        context_hash=given["contextHash"],
        content=given["content"].encode(),
        deadline=given["deadline"],
    )

"""A worker: takes the calls of agents and channels that a log's writer offers, makes them in this process, and says what came of each (WORK-10)."""

import asyncio
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self, cast

import msgspec

from intersession.worker.calls import TAKE_S, Calls
from intersession.worker.gateway_work import GatewayWork
from intersession_actors.outside.agents.agents import Agent
from intersession_actors.outside.agents.configured import configured_agents
from intersession_actors.outside.channels.channels import AnyChannel
from intersession_actors.outside.channels.configured import configured_channels
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.gate.limits import RUN_TIME
from intersession_actors.rules.gate.shapes import mapping_of, text_of, texts_of
from intersession_actors.rules.gate.values import invalid, seconds_of
from intersession_actors.running.host.extras import imported
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.host.own_threads import to_its_end
from intersession_events.basics.closing import Closing
from intersession_events.basics.errors import LogError, StoreUnavailable, WorkRefused
from intersession_events.basics.machine import VERSION, random_id
from intersession_events.basics.plain_json import JsonMapping
from intersession_events.log import work_queue
from intersession_events.log.work_queue import MOST_AT_ONCE, TakesWork
from intersession_events.stores.opened import work_at

if TYPE_CHECKING:
    from intersession.gateway.protocol.line import Line

logger = logging.getLogger("intersession.worker")

TOKEN_VARIABLE: Final = "INTERSESSION_WORKER_TOKEN"  # noqa: S105 - its name

_AGAIN_S: Final = 0.5
_BEATS: Final = 4
"""How often a worker says that it lives in the time after which its calls are lost to it."""

_LOOK_S: Final = 1.0
"""A worker that has calls asks at least this often which of them are over."""


class Worker(Closing):
    """A worker for agents and channels of a log that has its writer elsewhere.

    `store` is the log's database (`postgresql://…`): calls are taken there, under a role that may do nothing else. `gateway` are
    the addresses of gateways, of which one is the writer's at a time; without a store all goes there. With a store they may be
    left out: the log says where its writer's is. `token` proves to the gateway which credential the worker has (scope
    `worker`); without it `$INTERSESSION_WORKER_TOKEN`.

    `agents` answer for agent ids; or they are the ids of agents that `config` gives a model, by default those with `worker`, else
    all. `channels` take texts out, by name; or they are the names of channels that `config` gives a URL. With channels and without
    `agents` it has no agents. `seats` is how many calls are made at once. `name` names the worker; no two may have the same.

    Use it as a context manager, plain or async: it works until the end of the block, at which it takes no more calls and gives
    those that it has `runs.shutdownGraceSeconds`. With `async with`, async agents run on the host's event loop.

    Raises:
        ConfigError: the configuration was refused.
        ToolRefused: an argument is invalid; or the gateway does not know the token (`forbidden`).
        WorkRefused: what the worker says of itself is not taken.
        NoSuchStore: `store` is no database that workers take calls from.
        MissingExtra: the extra `gateway` is not installed.
    """

    def __init__(
        self,
        store: str | TakesWork | None = None,
        *,
        gateway: str | Sequence[str] = (),
        agents: Mapping[str, Agent] | Sequence[str] = (),
        channels: Mapping[str, AnyChannel] | Sequence[str] = (),
        config: Config | JsonMapping | Path | str | None = None,
        name: str | None = None,
        seats: int = 8,
        token: str | None = None,
    ) -> None:
        self.config = load_config(config).config
        self.channels = _channels(channels, self.config)
        has_channels_alone = self.channels and not agents
        self.agents: Mapping[str, Agent] = {} if has_channels_alone else _agents(agents, self.config)
        self.seats = _seats(seats)
        self.name = random_name() if name is None else text_of("name", name)
        self.addresses = addresses = texts_of("gateway", (gateway,) if isinstance(gateway, str) else gateway)
        for address in addresses:
            if not address.startswith(("http://", "https://")):
                raise invalid(
                    "gateway", f"{address!r} is no address; give http:// or https://, a host, and a port"
                )
        if store is None and not addresses:
            raise invalid("gateway", "neither this nor a store is given: say where the log's writer is")
        secret = token or os.environ.get(TOKEN_VARIABLE)
        if not secret:
            raise invalid("token", f"there is none: give one, or set ${TOKEN_VARIABLE}")
        self._hosts_loop = HostsLoop()
        self._closing = threading.Lock()
        self._saying = threading.Lock()
        """Is held while the worker is announced again, or leaves: who has left is not there any more."""
        self._ended = threading.Event()
        self._is_away = False
        self._is_draining = False
        self._beats_at = 0.0
        self._pause_s = 0.0
        lines = imported(
            "intersession.gateway.protocol.line", what="a worker", library="websockets", extra="gateway"
        )
        self._line: Line = lines.Line(
            lambda: addresses or self._address_in_log(), secret, announced=not addresses
        )
        self._work: TakesWork = (
            GatewayWork(self._line) if store is None else work_at(store) if isinstance(store, str) else store
        )
        self._calls = Calls(
            self._work,
            self._line,
            self.agents,
            self.channels,
            name=self.name,
            config=lambda: self.config,
            seats=self.seats,
            hosts_loop=self._hosts_loop,
        )
        self._line.open()
        try:
            self._announce()
        except StoreUnavailable as error:
            self._tell(error)
        except BaseException:
            self._work.close()
            self._line.close()
            raise
        for run in (self._taking, self._beating):
            threading.Thread(target=run, name=f"worker{run.__name__}", daemon=True).start()

    # --- life

    @property
    def calls(self) -> int:
        """How many calls it has."""
        return self._calls.busy

    def drain(self) -> None:
        """Take no more calls, and go on with those that it has. Any thread may call it, and it does not block."""
        with self._calls.changed:
            self._is_draining = True
            self._calls.changed.notify_all()
        threading.Thread(target=self._say_draining, name="worker-drains", daemon=True).start()

    def close(self, grace: float | None = None) -> None:
        """Take no more calls, give those that it has `grace` seconds, and leave. What is cut off is tried again by others.

        Raises:
            ToolRefused: `grace` is no time; the worker goes on.
        """
        seconds = self.config.runs.shutdown_grace_seconds
        if grace is not None:
            seconds = seconds_of("grace", grace, most=RUN_TIME.most)
        with self._closing:
            if self._ended.is_set():
                return
            self.drain()
            self._calls.stop(seconds)
            self._ended.set()
            try:
                with self._saying:
                    self._work.leave(self.name)
            except LogError as error:
                logger.info("the worker could not say that it ends: %s", error)
            self._work.close()
            self._line.close()

    async def aclose(self, grace: float | None = None) -> None:
        """Like `close`, without blocking the event loop."""
        await to_its_end(self.close, grace)

    async def __aenter__(self) -> Self:
        self._hosts_loop.adopt(asyncio.get_running_loop())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # --- what it does all the time

    def _taking(self) -> None:
        """Take calls while there are seats."""
        calls = self._calls
        while True:
            with calls.changed:
                calls.changed.wait_for(lambda: self._is_draining or calls.free > 0)
                free = calls.free
            if self._is_draining:
                return
            self._tried(partial(self._take, free))

    def _take(self, most: int) -> None:
        asked_at = time.monotonic()
        try:
            offers = self._work.take(self.name, most, TAKE_S)
        except WorkRefused:
            self._announce_again()  # it was forgotten: it could not say for long that it lives
            return
        for offer in offers:
            self._calls.begin(offer, asked_at)

    def _beating(self) -> None:
        """Say again and again that it lives, and has its calls; where it has some, it asks often which are over."""
        while not self._ended.wait(self._pause_s):
            if self.calls or time.monotonic() >= self._beats_at:
                self._tried(self._beat)

    def _beat(self) -> None:
        asked_at = time.monotonic()
        calls = self._calls.under_way
        for lost in self._work.renew(self.name, calls):
            self._calls.lose(lost)
        self._calls.renewed(calls, asked_at)
        beat = self._work.alive_s / _BEATS
        self._beats_at, self._pause_s = time.monotonic() + beat, min(beat, _LOOK_S)

    def _announce(self) -> None:
        self._work.announce(
            work_queue.Worker(
                name=self.name,
                host=socket.gethostname() or "localhost",
                version=VERSION,
                agents={
                    agent: msgspec.json.encode(self._calls.window(agent)).decode() for agent in self.agents
                },
                channels=self._calls.channels.said,
                seats=self.seats,
                is_draining=self._is_draining,
            )
        )

    def _announce_again(self) -> None:
        with self._saying:
            if not self._ended.is_set():
                self._announce()

    def _say_draining(self) -> None:
        self._tried(self._announce_again)

    def _tried(self, what: Callable[[], object]) -> None:
        """Do something, and go on whatever comes of it: calls that it has are not given up because of it."""
        try:
            what()
        except StoreUnavailable as error:
            self._tell(error)
        except WorkRefused as refused:  # until somebody lets it
            logger.warning("the worker is refused: %s", refused)
            self._ended.wait(TAKE_S)
        except Exception:
            if self._ended.is_set():
                return
            logger.exception("the worker goes on, but something went wrong")
        else:
            self._tell(None)
            return
        self._ended.wait(_AGAIN_S)

    def _tell(self, problem: Exception | None) -> None:
        """Log once that the queue can't be reached, and that it can again."""
        was, self._is_away = self._is_away, problem is not None
        if problem is not None and not was:
            logger.warning("the queue of calls can't be reached, and is tried again: %s", problem)
        elif problem is None and was:
            logger.warning("the queue of calls is reached again")

    def _address_in_log(self) -> Sequence[str]:
        try:
            address = self._work.gateway()
        except LogError:
            return ()
        return () if address is None else (address,)


def _agents(given: object, config: Config) -> Mapping[str, Agent]:
    """Return the agents that are given, or those of the configuration that are named."""
    if isinstance(given, Mapping):
        agents = mapping_of("agents", cast("Mapping[str, Agent]", given))
    else:
        named = texts_of("agents", given) or [one for one in config.agent_ids if config.at_workers(one)]
        made = configured_agents(config, named or config.agent_ids)
        for notice in made.notices:
            logger.warning("%s", notice)
        agents = {**made.agents}
    if not agents:
        raise invalid("agents", "there are none with a model: a worker without agents has no use")
    return agents


def _channels(given: object, config: Config) -> Mapping[str, AnyChannel]:
    """Return the channels that are given, or those of the configuration that are named."""
    if isinstance(given, Mapping):
        return mapping_of("channels", cast("Mapping[str, AnyChannel]", given))
    named = texts_of("channels", given)
    return {**configured_channels(config, of_worker=named)} if named else {}


def random_name() -> str:
    """Return a name that no other worker has: the host's, the process's, and a part by chance."""
    return f"{socket.gethostname()[:64] or 'localhost'}-{os.getpid()}-{random_id()[:6]}"


def _seats(seats: object) -> int:
    if not isinstance(seats, int) or isinstance(seats, bool) or not 0 < seats <= MOST_AT_ONCE:
        raise invalid("seats", f"{seats!r} is no number of calls at once, give one from 1 to {MOST_AT_ONCE}")
    return seats

"""Agents and channels of a simulation: they do their best, unless chance has something else in mind."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from intersession import Channel, DeliveryInDoubt, DeliveryRefused, Outbound, Reply, Turn
from support.history import Asked, Shown

if TYPE_CHECKING:
    from simulation.world import World

AGENTS: Final = ("main", "desk", "aide")
CHANNELS: Final = ("keyed", "plain")
MAINS: Final = tuple(f"agent:{name}:main" for name in AGENTS)
IN_TIME_S: Final = 20.0
"""Well below the time that a call of a channel has, by what passes early."""


class Agents:
    """What all agents of a simulation do; one function for each."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.asked: list[Asked] = []
        self._said: Counter[str] = Counter()

    def __call__(self, turn: Turn) -> object:
        """Answer, or not."""
        world, strikes, name = self._world, self._world.faults.strikes, turn.agent_id
        world.check_alive()
        self.asked.append(
            Asked(
                run_id=turn.run_id,
                attempt=turn.attempt,
                position=world.log.head(),
                given=tuple(message.id for message in turn.transcript),
                partial=len(turn.partial),
            )
        )
        if strikes("agent_records", 0.3, where=name):
            call = turn.record_call("search", {"for": turn.message[:20]})
            turn.record_result(call, "search", "found nothing")
        self._use_tools(turn)
        if strikes("agent_error", 0.2, where=name):
            raise RuntimeError("the model is down")
        if strikes("agent_exit", 0.1, where=name):
            raise SystemExit("the model has gone")
        if strikes("agent_hang", 0.1, where=name):
            world.runtime.pause(5_000)
        if strikes("agent_late", 0.2, where=name):
            world.runtime.pause(1 + world.chance.fixed(f"late {name}", 90))
        if strikes("agent_lie", 0.1, where=name):
            lies = (7, b"bytes", "lone \udce9", {"not": "a reply"}, Reply("x", model="m" * 10_000))
            return lies[world.chance.fixed(f"lies {name}", len(lies) - 1)]
        if strikes("agent_silent", 0.1, where=name):
            return None
        if strikes("agent_skip", 0.2, where=name):
            return Reply.skip()
        self._said[name] += 1
        words = f"{name} says {self._said[name]}"
        if strikes("agent_quotes", 0.2, where=name):
            return f"{words}: REPLY_SKIP is a word, so is ANNOUNCE_SKIP and NO_REPLY"
        return words

    def _use_tools(self, turn: Turn) -> None:
        world, name = self._world, turn.agent_id
        if world.faults.strikes("agent_sends", 0.3, where=name):
            others = [key for key in MAINS if key != turn.session_key]
            target = others[world.chance.fixed(f"sends {name}", len(others) - 1)]
            arguments: dict[str, Any] = {
                "sessionKey": target,
                "message": f"from {turn.run_id} {turn.attempt}",
                "timeoutSeconds": world.chance.fixed(f"waits {name}", 2) * 5,
            }
            world.saw("sessions_send", turn.tools.call("sessions_send", arguments))
        if world.faults.strikes("agent_spawns", 0.2, where=name):
            arguments = {"task": f"task of {turn.run_id} {turn.attempt}"}
            if world.chance.fixed(f"cleans {name}", 1):
                arguments["cleanup"] = "delete"
            world.saw("sessions_spawn", turn.tools.call("sessions_spawn", arguments))


class Channels:
    """`keyed` shows a key once, `plain` shows whatever it gets."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.called: list[str] = []
        self.shown: list[Shown] = []
        self._keys: set[str] = set()
        self.all = {
            "keyed": Channel(deliver=self._keyed, idempotent=True),
            "plain": Channel(deliver=self._plain),
        }

    def _keyed(self, outbound: Outbound) -> object:
        return self._deliver(outbound, once=True)

    def _plain(self, outbound: Outbound) -> object:
        return self._deliver(outbound, once=False)

    def _deliver(self, outbound: Outbound, *, once: bool) -> object:
        world, strikes, name = self._world, self._world.faults.strikes, outbound.channel
        world.check_alive()
        self.called.append(outbound.key)
        began = world.clock.monotonic()
        if strikes("channel_refuses", 0.1, where=name):
            raise DeliveryRefused("no such room")
        if strikes("channel_slow", 0.2, where=name):
            world.runtime.pause(1 + world.chance.fixed(f"slow {name}", 40))
        if strikes("channel_fails", 0.2, where=name):
            raise ConnectionError("the network is down")
        if not once or outbound.key not in self._keys:
            self._keys.add(outbound.key)
            self.shown.append(Shown(key=outbound.key, text=outbound.text))
        if strikes("channel_again", 0.2, where=name):
            world.system.register_channel(name, self.all[name])
            world.runtime.pause(1)
        if strikes("channel_doubts", 0.2, where=name):
            self.doubt(outbound.key)
            raise DeliveryInDoubt("no answer from the network")
        if world.clock.monotonic() - began > IN_TIME_S:
            self.doubt(outbound.key)
        return {"shown": outbound.key}

    def doubt(self, key: str | None = None) -> None:
        """Note that the system could not hear that a text was shown (None: any of them)."""
        self.shown = [
            Shown(key=one.key, text=one.text, said=False) if key in {None, one.key} else one
            for one in self.shown
        ]

"""Agents and channels of a simulation: they do their best, unless chance has something else in mind."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from intersession import Channel, DeliveryInDoubt, DeliveryRefused, GoingOn, Outbound, Reply, Turn
from intersession_actors.outside.channels.channels import ThreadWanted
from intersession_events.facts import Message, Provenance, Usage
from simulation.disk import missing_files
from support.history import Asked, Shown

if TYPE_CHECKING:
    from simulation.world import World

AGENTS: Final = ("main", "desk", "aide")
CHANNELS: Final = ("keyed", "plain")
MAINS: Final = tuple(f"agent:{name}:main" for name in AGENTS)
TOKENS: Final = (
    "REPLY_SKIP",
    "ANNOUNCE_SKIP",
    "NO_REPLY",
    " \tREPLY_SKIP\r\n",
    "\nANNOUNCE_SKIP ",
    "\r\n NO_REPLY",
    " \n",
    "reply_skip",
    "\u00a0REPLY_SKIP",
    "ANNOUNCE_SKIP\u200b",
    "NO_REPLY.",
    "HEARTBEAT_OK",
)
"""Words that keep silent where they are meant to, and others that only look so; said at any step."""
HURRY_S: Final = 40
"""The time that a sub-agent has who is to hurry."""
COSTS: Final = 100
"""What an answer costs that says so, in tokens and in money."""
IN_TIME_S: Final = 20.0
"""Well below the time that a call of a channel has, by what passes early."""


class Agents:
    """What all agents of a simulation do: one function for each, and a coroutine for `aide`, on whatever loop it is run."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.asked: list[Asked] = []
        self.answers: dict[tuple[str, int], str] = {}
        self._said: Counter[str] = Counter()
        self._given: dict[str, str] = {}
        """The id of the last message that each session's agent was given."""
        self.all: dict[str, Any] = dict.fromkeys(AGENTS, self.answer) | {"aide": self.answer_later}

    def answer(self, turn: Turn) -> object:
        """Answer, or not."""
        world, name = self._world, turn.agent_id
        self._note(turn)
        if world.faults.strikes("agent_records", 0.3, where=name):
            call = turn.record_call("search", {"for": turn.message[:20]})
            turn.record_result(call, "search", "found nothing")
        for tool, arguments in self._calls(turn):
            world.saw(tool, turn.tools.call(tool, arguments))
        self._fail(name)
        if world.faults.strikes("agent_again", 0.2, where=name):
            world.system.register_agent(name, self.all[name])
        if seconds := self._late(name):
            world.runtime.pause(seconds)
        return self._answered(turn)

    async def answer_later(self, turn: Turn) -> object:
        """Answer on an event loop, or not."""
        self._note(turn)
        for tool, arguments in self._calls(turn):
            self._world.saw(tool, await turn.tools.acall(tool, arguments))
        self._fail(turn.agent_id)
        if seconds := self._late(turn.agent_id):
            await asyncio.sleep(seconds)
        return self._answered(turn)

    def _answered(self, turn: Turn) -> object:
        words = self._words(turn)
        if isinstance(words, str) and "\udce9" not in words and not self._world.is_deposed:
            self.answers[turn.run_id, turn.attempt] = words
        return words

    def _note(self, turn: Turn) -> None:
        world = self._world
        world.check_alive()
        if world.is_deposed:
            return  # by now its attempt may be over
        if "files" in world.faults.enabled and ":subagent:" in turn.session_key:
            for words in missing_files(world.disk, world.log.all(), turn.session_key):
                world.wrong("files", f"run {turn.run_id} is begun without {words}")
        if turn.transcript:
            self._given[turn.session_key] = turn.transcript[-1].id
        self.asked.append(
            Asked(
                run_id=turn.run_id,
                attempt=turn.attempt,
                position=world.log.head(),
                given=tuple(message.id for message in turn.transcript),
                partial=len(turn.partial),
            )
        )

    def _fail(self, name: str) -> None:
        strikes = self._world.faults.strikes
        if strikes("agent_error", 0.2, where=name):
            raise RuntimeError("the model is down")
        if strikes("agent_exit", 0.1, where=name):
            raise SystemExit("the model has gone")

    def _late(self, name: str) -> float:
        """Return how long an agent thinks."""
        world, strikes = self._world, self._world.faults.strikes
        seconds = 5_000 if strikes("agent_hang", 0.1, where=name) else 0
        return seconds + (
            1 + world.chance.fixed(f"late {name}", 90) if strikes("agent_late", 0.2, where=name) else 0
        )

    def _words(self, turn: Turn) -> object:
        world, strikes, name = self._world, self._world.faults.strikes, turn.agent_id
        if strikes("agent_lie", 0.1, where=name):
            lies = (7, b"bytes", "lone \udce9", {"not": "a reply"}, Reply("x", model="m" * 10_000))
            return lies[world.chance.fixed(f"lies {name}", len(lies) - 1)]
        if strikes("agent_silent", 0.1, where=name):
            return None
        if strikes("agent_tokens", 0.2, where=name):
            return TOKENS[world.chance.fixed(f"tokens {name}", len(TOKENS) - 1)]
        if strikes("agent_skip", 0.2, where=name):
            return Reply.skip()
        self._said[name] += 1
        words = f"{name} says {self._said[name]}"
        if strikes("agent_quotes", 0.2, where=name):
            return f"{words}: REPLY_SKIP is a word, so is ANNOUNCE_SKIP and NO_REPLY"
        if strikes("agent_tells", 0.2, where=name):
            return Reply(words, messages=self._told(turn, words))
        if strikes("agent_costs", 0.5, where=name):
            return Reply(words, usage=Usage(total_tokens=COSTS, cost_micros=COSTS))
        return words

    def _told(self, turn: Turn, words: str) -> tuple[Message, ...]:
        """Return messages that an agent passes off as somebody else's, under an id that a message has, perhaps."""
        fixed, key, name = self._world.chance.fixed, turn.session_key, turn.agent_id
        claims = (
            Provenance(kind="external_user", sender="ada"),
            Provenance(kind="internal_system"),
            Provenance(kind="inter_session", source_session_key=MAINS[0]),
        )
        one = Message(
            id=("", f"{key} 1", self._given.get(key, ""))[fixed(f"ids {name}", 2)],
            role=("user", "system")[fixed(f"roles {name}", 1)],
            content="a person wants it",
            timestamp=0,
            provenance=claims[fixed(f"claims {name}", len(claims) - 1)],
        )
        return one, Message(id="", role="assistant", content=words, timestamp=0)

    def _calls(self, turn: Turn) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the tools that an agent uses."""
        world, name = self._world, turn.agent_id
        if world.faults.strikes("agent_sends", 0.3, where=name):
            others = [key for key in MAINS if key != turn.session_key]
            target = others[world.chance.fixed(f"sends {name}", len(others) - 1)]
            yield (
                "sessions_send",
                {
                    "sessionKey": target,
                    "message": f"from {turn.run_id} {turn.attempt}",
                    "timeoutSeconds": world.chance.fixed(f"waits {name}", 2) * 5,
                },
            )
        if world.faults.strikes("agent_spawns", 0.2, where=name):
            arguments: dict[str, Any] = {"task": f"task of {turn.run_id} {turn.attempt}"}
            if world.chance.fixed(f"cleans {name}", 1):
                arguments["cleanup"] = "delete"
            if world.chance.fixed(f"hurries {name}", 2) == 1:
                arguments["runTimeoutSeconds"] = HURRY_S
            yield "sessions_spawn", arguments


def host_rule(world: "World") -> Callable[[GoingOn], bool | str | None]:
    """Return what a host says of texts that are about to go on: some it holds, now and then it breaks, or takes its time."""

    def rule(going: GoingOn) -> bool | str | None:
        strikes = world.faults.strikes
        world.check_alive()
        if strikes("hold_rule_fails", 0.2):
            raise RuntimeError("whoever knows is not here")
        if world.faults.chance.departs("rule thinks", 0.3):
            world.runtime.pause(1 + world.chance.fixed("rule thinks so long", 90))
        return f"somebody has to look at {going.step}" if strikes("hold_rule", 0.3) else None

    return rule


class Channels:
    """`keyed` shows a key once, `plain` shows whatever it gets. Each opens threads, if chance says so."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self.called: list[str] = []
        self.shown: list[Shown] = []
        self._keys: set[str] = set()
        self._asked: set[tuple[object, str]] = set()
        threads = self._open if "threads" in world.faults.enabled else None
        self.all = {
            "keyed": Channel(deliver=self._keyed, idempotent=True, threads=threads),
            "plain": Channel(deliver=self._plain, threads=threads),
        }

    def _keyed(self, outbound: Outbound) -> object:
        return self._deliver(outbound, once=True)

    def _plain(self, outbound: Outbound) -> object:
        return self._deliver(outbound, once=False)

    def _open(self, wanted: ThreadWanted) -> str:
        """Open a thread, which nobody may ask for twice while he lives: this opens another one each time."""
        world, strikes = self._world, self._world.faults.strikes
        world.check_alive()
        if (world.runtime, wanted.key) in self._asked:
            world.wrong("threads_once", f"thread {wanted.key} of {wanted.channel} is asked for again")
        self._asked.add((world.runtime, wanted.key))
        if strikes("thread_slow", 0.3, where=wanted.channel):
            world.runtime.pause(1 + world.chance.fixed(f"opens {wanted.channel}", 40))
        if strikes("thread_fails", 0.3, where=wanted.channel):
            raise ConnectionError("the network is down")
        return f"thread {len(self._asked)}"

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
            self.shown.append(Shown(key=outbound.key, text=outbound.text, said=not world.is_deposed))
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

"""Clients of a simulation: people, sessions and an operator, who call, and call again until they know what became of it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any, Final, Literal

from intersession import SessionSystem
from intersession_events.basics.ids import session_stream
from intersession_events.facts import SessionOpened, SessionReset, ThreadBound
from simulation.faults import Crash
from simulation.people import AGENTS, CHANNELS, HURRY_S, MAINS
from support.history import Op

if TYPE_CHECKING:
    from simulation.world import World

AGAIN: Final = frozenset({"unavailable", "busy", "internal"})
"""Refusals after which a client tries again: nothing was wrong with the call itself."""
PATIENCE: Final = 12

Answer = Mapping[str, Any]
Call = Callable[[], Answer]


class Client:
    """Makes one call after the other; `go` may be begun anew after a crash, and goes on with the call it was at."""

    def __init__(self, world: "World", number: int) -> None:
        self._world = world
        self.name = f"client {number}"
        self._left = [f"{number}.{call}" for call in range(1 + world.chance.pick(f"calls {number}", 3))]
        self._made: list[str] = []
        self._children: list[str] = []
        self._sends: list[str] = []
        self._targets: dict[str, str] = {}
        self._at: tuple[str, int] | None = None
        """The text of the call under way, and the log's head when it was made."""
        self._in_threads = 0
        self._is_at_door = world.door is not None and world.chance.fixed(f"at the door {number}", 1) == 0
        self.runs: list[str] = []
        self.is_done = False

    def go(self) -> None:
        """Make the calls that are left."""
        world = self._world
        while self._left:
            text = self._left[0]
            self._write(text)
            self._made.append(self._left.pop(0))
            self._beside()
            if world.faults.strikes("client_again", 0.5, where=self.name):
                self._write(self._made[-1 - world.chance.fixed(f"again {self.name}", len(self._made) - 1)])
        for run_id in self.runs:
            self._wait(run_id, 0)
        self.is_done = True

    def cut_off(self) -> None:
        """Note that nobody knows what became of the call under way: its process is gone."""
        if self._at is not None:
            text, began = self._at
            self._note("info", text, began, {})

    def _saw(self, kind: str, answer: Answer) -> None:
        """Take an answer. A client has gone from a writer that was taken over, and goes on at the next one."""
        if self._world.is_deposed:
            raise Crash
        self._world.saw(kind, answer)

    def _hear_late(self, text: str, began: int, answer: Answer) -> None:
        """Hear from a writer that was taken over what became of a call: what it acknowledges is so."""
        if "runId" in answer and "code" not in answer:
            self._note("ok", text, began, answer)
        raise Crash

    @contextmanager
    def _host(self) -> Generator[SessionSystem]:
        """Lend the host that it asks: a door, or the writer."""
        world = self._world
        with (
            world.door.asked() if self._is_at_door and world.door is not None else nullcontext(world.system)
        ) as host:
            yield host

    # --- calls

    def _write(self, text: str) -> None:
        """Call until it is accepted or refused for good."""
        world = self._world
        kind = kind_of(world, text)
        if kind == "inbound" and self._is_at_door:
            kind = "agent"  # what channels tell comes to the writer
        answer: Answer = {}
        for attempt in range(PATIENCE):
            began = world.log.head()
            self._at = (text, began)
            answer = self._called(kind, text)
            if world.is_deposed:
                self._hear_late(text, began, answer)
            self._at = None
            code = answer.get("code")
            self._saw(kind, answer)
            if "runId" in answer and code is None:
                self._note("ok", text, began, answer)
                self.runs.append(answer["runId"])
                self._sends += [answer["runId"]] if kind == "send" else []
                self._children += [answer["childSessionKey"]] if "childSessionKey" in answer else []
                if self._is_at_door and world.chance.departs(f"looks {self.name}", 0.7):
                    mine = MAINS[world.drawn(f"mine {text}", len(MAINS) - 1)]
                    self._read(answer.get("childSessionKey", answer.get("sessionKey", mine)))
                return
            if code not in AGAIN:
                self._note("fail", text, began, answer)
                return
            self._note("info", text, began, answer)
            world.runtime.pause(2**attempt)
        world.wrong("never_taken", f"{self.name} called {kind} {text} {PATIENCE} times: {answer}")

    def _called(self, kind: str, text: str) -> Answer:
        world = self._world
        mine = world.drawn(f"mine {text}", len(MAINS) - 1)
        other = (mine + 1 + world.drawn(f"other {text}", len(MAINS) - 2)) % len(MAINS)
        channel = CHANNELS[world.drawn(f"channel {text}", 1)]
        timeout = (0, 0, 5, 30)[world.drawn(f"timeout {text}", 3)]
        rare = world.drawn(f"rare {text}", 1) == 1
        busy = "interrupt" if rare and "interrupt" in world.faults.enabled else "queue"
        match kind:
            case "inbound":
                said = {
                    "channel": channel,
                    "chat_id": "room",
                    "sender": self.name,
                    "text": text,
                    "message_id": text,
                    "agent_id": AGENTS[mine],
                    "wait": timeout or None,
                }
                return self._says(said)
            case "send":
                if text not in self._targets:  # the youngest child, if there is one and it is not too plain
                    self._targets[text] = self._children[-1] if rare and self._children else MAINS[other]
                target = self._targets[text]
                asked = {
                    "sessionKey": target,
                    "message": text,
                    "timeoutSeconds": timeout,
                    "idempotencyKey": text,
                }
                with self._host() as host:
                    return dict(host.tools(MAINS[mine]).call("sessions_send", asked))
            case "spawn":
                cleanup = "delete" if rare else "keep"
                asked = {"task": text, "cleanup": cleanup, "idempotencyKey": text}
                if world.drawn(f"hurries {text}", 2) == 1:
                    asked["runTimeoutSeconds"] = HURRY_S
                if world.drawn(f"thread {text}", 1) and "threads" in world.faults.enabled:
                    world.tally.add("fault", "threads")
                    asked["thread"] = True
                    self._come_in(channel, AGENTS[mine], f"{text} comes in")
                if world.drawn(f"files {text}", 1) and "files" in world.faults.enabled:
                    world.tally.add("fault", "files")
                    asked["attachments"] = [
                        {"name": f"{name}.txt", "content": f"{name} of {text}"} for name in ("one", "two")
                    ]
                with self._host() as host:
                    return dict(host.tools(MAINS[mine]).call("sessions_spawn", asked))
            case _:
                if busy == "interrupt":
                    world.tally.add("fault", "interrupt")
                asked = {"sessionKey": MAINS[mine], "message": text, "idempotencyKey": text, "busy": busy}
                with self._host() as host:
                    return host.gateway.call("agent", asked | {"deliver": True, "timeout": 20})

    def _come_in(self, channel: str, agent_id: str, text: str) -> None:
        """Say something that nobody is to answer: a thread is opened where somebody has spoken."""
        said: dict[str, Any] = {
            "channel": channel,
            "chat_id": "room",
            "sender": self.name,
            "text": text,
            "message_id": text,
        }
        answer = self._world.system.inbound(**said, agent_id=agent_id, deliver=False)
        self._saw("inbound", answer)

    def _speak_in_thread(self) -> None:
        """Say something in the youngest thread that was given to a session, whoever's it is by now."""
        world = self._world
        routes = [item.event.route for item in world.log.all() if isinstance(item.event, ThreadBound)]
        # What channels tell comes to the writer, and a door does not have to know of it.
        if not routes or self._is_at_door or not world.faults.strikes("thread_said", 0.7, where=self.name):
            return
        self._in_threads += 1
        text = f"{self.name} in a thread {self._in_threads}"
        route = routes[-1]
        said: dict[str, Any] = {
            "channel": route.channel,
            "chat_id": route.to,
            "thread": route.thread,
            "sender": self.name,
        }
        answer = world.system.inbound(**said, text=text, message_id=text)
        self._saw("inbound", answer)
        if "runId" in answer:
            self.runs.append(answer["runId"])

    def _says(self, said: dict[str, Any]) -> Answer:
        """Say something as a channel tells it, perhaps on an event loop that ends with the call."""
        world = self._world
        if not world.faults.strikes("loop_ends", 0.4, where=self.name):
            return dict(world.system.inbound(**said))
        loop = world.runtime.threads.new_event_loop()
        try:
            return dict(loop.run_until_complete(world.system.ainbound(**said)))
        finally:
            loop.close()

    def _note(self, outcome: Literal["ok", "fail", "info"], text: str, began: int, answer: Answer) -> None:
        world = self._world
        world.ops.append(
            Op(
                client=self.name,
                kind="write",
                outcome=outcome,
                began=began,
                # A writer that was taken over answers by what is there, which is more than it knows of.
                position=world.log.events.head() if outcome != "info" else 0,
                call=text,
                text=text,
                run_id=answer.get("runId"),
                answer=answer,
            )
        )

    def _wait(self, run_id: str, seconds: int) -> None:
        world = self._world
        began = world.log.head()
        with self._host() as host:
            answer = host.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": seconds * 1000})
        self._saw("agent.wait", answer)
        outcome: Literal["ok", "info"] = "info" if answer.get("code") in AGAIN else "ok"
        world.ops.append(
            Op(
                client=self.name,
                kind="wait",
                outcome=outcome,
                began=began,
                position=world.log.head(),
                run_id=run_id,
                answer=answer,
            )
        )

    def _read(self, key: str) -> None:
        world = self._world
        began = world.log.head()
        asked = {"sessionKey": key, "limit": 1000, "includeTools": True}
        with self._host() as host:
            answer = host.tools().call("sessions_history", asked)
        if "position" not in answer:
            self._saw("sessions_history", answer)
            return
        world.ops.append(
            Op(
                client=self.name,
                kind="read",
                outcome="ok",
                began=began,
                position=answer["position"],
                session_id=generation(world, key, answer["position"]),
                seen=tuple(message["id"] for message in answer["messages"]),
            )
        )

    # --- what is done beside

    def _beside(self) -> None:
        """Look at a session, or do to one what an operator does."""
        world, strikes = self._world, self._world.faults.strikes
        key = MAINS[world.chance.fixed(f"beside {self.name}", len(MAINS) - 1)]
        operate = world.system.gateway.call
        if world.chance.departs(f"reads {self.name}", 0.5):
            self._read(key)
        if strikes("abort", 0.2, where=self.name):
            world.aborts.add(key)
            self._saw("chat.abort", operate("chat.abort", {"sessionKey": key}))
        if strikes("reset", 0.3, where=self.name):
            world.aborts.add(key)
            self._saw("sessions.reset", operate("sessions.reset", {"key": key}))
        if strikes("patch", 0.2, where=self.name):
            policy = ("deny", "allow", None)[world.chance.fixed(f"patch {self.name}", 2)]
            self._saw("sessions.patch", operate("sessions.patch", {"key": key, "sendPolicy": policy}))
        if strikes("hold", 0.4, where=self.name):
            before = ("reply", "every-turn", "announce", "next")[world.chance.fixed(f"holds {self.name}", 3)]
            self._saw("exchanges.hold", operate("exchanges.hold", {"sessionKey": key, "before": before}))
        self._hold()
        self._speak_in_thread()
        if world.holds and world.chance.departs(f"releases {self.name}", 0.5):
            world.release()
        if strikes("backup", 0.2, where=self.name):
            world.back_up()
        if strikes("delete", 0.4, where=self.name):
            rows = world.system.tools().call("sessions_list", {"kinds": ["other"]}).get("sessions", [])
            for row in rows[:1]:
                self._saw("sessions.delete", operate("sessions.delete", {"key": row["key"]}))

    def _hold(self) -> None:
        """Have one exchange stop, and perhaps think better of it."""
        world, operate = self._world, self._world.system.gateway.call
        if not self._sends or not world.faults.strikes("hold", 0.5, where=f"{self.name} run"):
            return
        run_id = self._sends[-1]
        before = ("announce", "next", "every-turn")[world.chance.fixed(f"holds run {self.name}", 2)]
        self._saw("exchanges.hold", operate("exchanges.hold", {"runId": run_id, "before": before}))
        if world.chance.departs(f"withdraws {self.name}", 0.5):
            self._saw("exchanges.release", operate("exchanges.release", {"runId": run_id}))


KINDS: Final = ("inbound", "send", "spawn", "agent", "inbound", "send", "agent")


def kind_of(world: "World", text: str) -> str:
    """Return which kind of call a text is said with."""
    return KINDS[world.drawn(f"kind {text}", len(KINDS) - 1)]


def generation(world: "World", key: str, position: int) -> str | None:
    """Return the session id that a key had at a position."""
    found: str | None = None
    for item in world.log.stream(session_stream(key)):
        if item.position <= position and isinstance(item.event, SessionOpened | SessionReset):
            found = item.event.session_id
    return found

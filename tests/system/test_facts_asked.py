"""Every fact of a conversation can be asked of its log: a table of questions, each with its answer written out.

The log is played once. Each question is asked as somebody who looks into a log asks it: by the tools and the verbs of the debugger.
So it does not matter in which events a fact is stored, and a fact that is stored no more has no answer here.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from intersession import Outbound, Reply, SessionSystem, Turn, Usage
from intersession_actors.running.simulation.simulated import SimulatedRuntime
from intersession_events.facts import AccessRecorded, SendRefused
from intersession_projections.views.access_receipts import Wanted, receipts
from support.any_log import Logs
from support.running import merged, texts

pytestmark = pytest.mark.clause("FIND-2", "LENS-1", "LIVE-1", "ORIGIN-1", "PLACE-3", "WHY-1", "WHY-2")

MAIN, RESEARCH, OPS, VAULT = (f"agent:{name}:main" for name in ("main", "research", "ops", "vault"))
BEGAN_MS: Final = 1_700_000_000_000
FIRST: Final[dict[str, Any]] = {
    "tools": {
        "sessions": {"visibility": "all"},
        "agentToAgent": {"enabled": True, "allow": ["main", "research", "ops"]},
        "deny": ["sessions_search"],
    },
    "agents": {"defaults": {"contextTokens": 64_000}},
    "session": {"agentToAgent": {"limits": {"hops": 2}}},
}
THEN: Final = merged(FIRST, {"session": {"agentToAgent": {"maxPingPongTurns": 2}}})

FERRY, TIMETABLE, WELL, KEY, HOPS = (
    "What of the ferry?",
    "Does the ferry run?",
    "All well?",
    "Find the key.",
    "And from here?",
)
"""What the conversations are called by: the message that each began with."""
SENT_ON: Final = {"Ask ops.": (OPS, WELL), "Open the vault.": (VAULT, "Open!"), HOPS: (OPS, "Too far.")}
"""What main sends to whom where it is told so."""
ANSWERS: Final[dict[str, str | Reply]] = {
    KEY: "It is under the mat.",
    "Again.": Reply(
        "Once more.",
        usage=Usage(input=20, output=5, total_tokens=25, cost_micros=7),
        model="acme/one",
    ),
}
ANNOUNCE_STEP: Final = (
    "Announce step: say what the channel should hear of this exchange, or answer ANNOUNCE_SKIP."
)
CHILD_STEP: Final = (
    "Announce step: your task is over. Say what your requester should hear of it, or answer ANNOUNCE_SKIP."
)
MAX_TURNS: Final = "session.agentToAgent.maxPingPongTurns"
HOPS_LIMIT: Final = "session.agentToAgent.limits.hops"


class Played:
    """A log in which people, agents and a channel have done what the questions are about, in two lives of one host."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._cut_off = False
        self._line_is_down = True
        self.runtime, self.system = self._life(1, FIRST, at=0)
        for agent, channel, person in (
            ("research", "slack", "rob"),
            ("ops", "telegram", "eve"),
            ("vault", "telegram", "vic"),
        ):
            self._says(person, "Hello.", agent, channel=channel, deliver=False)
        self._says("ada", FERRY)
        assert self.runtime.run_until(lambda: self._cut_off, timeout=60)
        self.system.log.crash()  # type: ignore[attr-defined]  # the logs of a runtime without threads have it
        self.runtime.crash()
        self.runtime, self.system = self._life(2, THEN, at=100)
        self._let_pass_until(200)
        self._says("bob", "Ask ops.")
        self.system.hold(session_key=OPS)
        self._let_pass_until(300)
        (held,) = self.system.status()["held"]
        self.system.release(held["runId"], text="All is fine.")
        self.system.release(session_key=OPS, for_good=True)
        self._let_pass_until(400)
        self._says("cy", "Look it up.")
        self._let_pass_until(500)
        self._says("dan", "Open the vault.")
        self._let_pass_until(600)
        self._says("eve", "Chain.", "ops")
        self._let_pass_until(700)
        self._says("flo", "Fail.")
        self._let_pass_until(800)
        slept = self._says("gus", "Sleep.")
        self._let_pass_until(802)
        self._says("hal", "Me, too.")
        self._let_pass_until(805)
        self.system.abort(slept, by="gus")
        self._let_pass_until(900)
        asked = {"sessionKey": OPS, "message": "From the desk.", "timeoutSeconds": 0}
        self.system.tools(name="desk").call("sessions_send", asked)
        self._let_pass_until(1000)
        self.system.gateway.call("sessions.reset", {"key": MAIN})
        self._says("ada", "Again.")
        self._let_pass_until(1100)

    def _life(
        self, seed: int, config: dict[str, Any], *, at: float
    ) -> tuple[SimulatedRuntime, SessionSystem]:
        runtime = SimulatedRuntime(seed)
        runtime.clock.advance(at)
        agents = {"main": self._main, "research": self._research, "ops": self._ops, "vault": self._ops}
        channels = {"telegram": self._deliver, "slack": lambda _: None}
        return runtime, SessionSystem(
            self._store, runtime=runtime, agents=agents, channels=channels, config=config
        )

    def _let_pass_until(self, second: float) -> None:
        self.runtime.run_for(second - self.runtime.clock.now_ms() / 1000 + BEGAN_MS / 1000)

    def _says(
        self, person: str, text: str, agent: str = "main", *, channel: str = "telegram", deliver: bool = True
    ) -> str:
        return self.system.inbound(
            channel=channel,
            chat_id=person,
            sender=person,
            sender_name=person.title(),
            text=text,
            agent_id=agent,
            deliver=deliver,
        ).get("runId", "")

    # --- who takes part

    def _main(self, turn: Turn) -> str | Reply:
        self.runtime.pause(1)
        if turn.step != "message":
            return "Until when?" if turn.step == "reply" else "It is settled."
        does: Callable[[Turn], str | Reply] | None = {
            FERRY: self._asks_about_the_ferry,
            "Look it up.": self._hands_over,
            "Fail.": self._fails,
            "Sleep.": self._sleeps,
        }.get(turn.message)
        if does is not None:
            return does(turn)
        if (sent := SENT_ON.get(turn.message)) is not None:
            self._sends(turn, *sent)
        return ANSWERS.get(turn.message, "Done.")

    def _asks_about_the_ferry(self, turn: Turn) -> str:
        if turn.attempt == 1:
            turn.record_call("timetable", {"day": "Sunday"})
            self._cut_off = True
            return self._sleeps(turn)
        return f"They say: {self._sends(turn, RESEARCH, TIMETABLE, wait=30)['reply']}"

    @staticmethod
    def _hands_over(turn: Turn) -> str:
        turn.tools.call("sessions_spawn", {"task": KEY, "label": "finder"})
        return "Done."

    @staticmethod
    def _fails(_: Turn) -> str:
        raise ValueError("out of order")

    def _sleeps(self, _: Turn) -> str:
        self.runtime.pause(1_000)
        return "Slept."

    def _research(self, turn: Turn) -> str:
        self.runtime.pause(2)
        if turn.step == "reply":
            return "Until Monday."
        if turn.step == "announce":
            return "The ferry is back on Monday."
        if turn.message == "Hand it on.":
            self._sends(turn, MAIN, HOPS)
            return turn.skip_word
        return "No ferry on Sunday."

    def _ops(self, turn: Turn) -> str:
        if turn.message == "Chain.":
            self._sends(turn, RESEARCH, "Hand it on.")
        return turn.skip_word if turn.step == "announce" else "All is on fire."

    @staticmethod
    def _sends(turn: Turn, target: str, text: str, *, wait: float = 0) -> Any:
        return turn.tools.call(
            "sessions_send", {"sessionKey": target, "message": text, "timeoutSeconds": wait}
        )

    def _deliver(self, outbound: Outbound) -> object:
        if self._line_is_down and outbound.text.startswith("They say"):
            self._line_is_down = False
            raise ConnectionError("no line")
        return {"number": 7}

    # --- how it is asked

    def ask(self, verb: str, **given: object) -> Any:
        """Ask the debugger."""
        return self.system.debug.call(verb, given)

    def run(self, text: str) -> str:
        """Return the run that answers a message."""
        (run,) = {one["runId"] for one in self.ask("messages", limit=200)["messages"] if one["text"] == text}
        return str(run)

    def stood(self, kind: str, text: str) -> Any:
        """Return the run, exchange, spawn or delivery that a message led to, as it stands."""
        (found,) = self.ask("state", of=self.run(text))[kind]
        return found

    def times(self, text: str) -> tuple[str, int, float, float, float]:
        """Return how a run ended: its status, its attempt, and when it was queued, started and ended."""
        run = self.stood("runs", text)
        queued, started, ended = (second(run[name]) for name in ("queuedAt", "startedAt", "endedAt"))
        return run["status"], run["attempt"], queued, started, ended

    def open_at(self, at: float) -> Any:
        """Return what was open at a second."""
        return self.ask("state", at=when(at))["open"]

    def sent(self, text: str) -> list[tuple[str, str, str, str, str, int]]:
        """Return the texts that went outside for a message: purpose, channel, to whom, what, how it stands, attempts."""
        return [
            tuple(one[name] for name in ("purpose", "channel", "to", "text", "state", "attempts"))
            for one in self.ask("deliveries", run=self.run(text))["deliveries"]
        ]

    def given(self, run: str) -> dict[str, Any]:
        """Return what an agent was given."""
        lens = self.ask("lens", run=run)
        provenance = lens["message"]["provenance"]
        return {
            "message": lens["message"]["content"],
            "from": provenance.get("sourceSessionKey") or provenance.get("sender"),
            "turn": provenance.get("turn"),
            "hops": provenance.get("hops"),
            "tools": [tool["title"] for tool in lens["tools"]],
            "contextTokens": lens["contextTokens"],
            "fits": 0 < lens["usedTokens"] < lens["contextTokens"],
            "deadline": second(lens["deadlineMs"]),
            "asRecorded": lens["asRecorded"],
        }

    def root(self, text: str) -> tuple[str, str, str, str]:
        """Return what a conversation began with: of which kind, who, to whom, what."""
        root = self.ask("why", of=self.run(text))["root"]
        return root["kind"], root["who"], root["to"], root["text"]

    def hops(self, words: str) -> list[tuple[float, str, str | None, str]]:
        """Return by which hops words went from one to the other: second, who, to whom, how."""
        found = self.ask("origin", words=words)
        return [
            (second(one["timeMs"]), one["who"], one["to"], one["via"])
            for one in (found["first"], *found["hops"])
        ]

    def why(self, text: str, about: str) -> dict[str, str]:
        """Return why something of a conversation ended: the code, and the sentence."""
        return {name: self._explained(text, about)[name] for name in ("code", "text")}

    def looked_at(self, text: str, about: str) -> dict[str, Any]:
        """Return what the rule looked at that ended something of a conversation."""
        return {one["name"]: one["value"] for one in self._explained(text, about)["inputs"]}

    def _explained(self, text: str, about: str) -> Any:
        explanations = self.ask("why", of=self.run(text))["explanations"]
        (found,) = [one for one in explanations if one["about"] == about]
        return found

    def shown(self, text: str) -> list[tuple[float, str, str]]:
        """Return a conversation as a diagram shows it: second, from whom to whom, what."""
        drawn = self.ask("show", run=self.run(text))
        names = [lane["name"] for lane in drawn["lanes"]]

        def who(row: Any) -> str:
            if row["row"] == "arrow":
                return f"{names[row['source']]} > {names[row['target']]}"
            return "" if row["lane"] is None else names[row["lane"]]

        return [
            (second(row["time"]), who(row), row["text"])
            for row in drawn["rows"]
            if row["row"] != "gap" and row.get("kind") != "tool" and not row.get("caller")
        ]

    def heard(self, **wanted: object) -> list[tuple[float, str, str]]:
        """Return who said what to a session: second, who, text."""
        found = self.ask("messages", limit=200, **wanted)["messages"]
        return [
            (
                second(one["time"]),
                one["person"]["name"] if one["from"] == "person" else one["from"],
                one["text"],
            )
            for one in reversed(found)
        ]

    def named(self, key: str) -> str:
        """Return the key of a session; of the sub-agent's, which is another one each time, a name."""
        return "child" if key == self.stood("spawns", KEY)["child"] else key

    def listed(self) -> Any:
        """Return the rows of all sessions."""
        found: Any = self.system.tools().call("sessions_list", {})
        return found["sessions"]

    def transcript(self, key: str, at: float) -> list[tuple[str, str]]:
        """Return a transcript as it was at a second, without tools: role and text."""
        asked = {"sessionKey": key, "limit": 200, "asOf": when(at), "includeTools": False}
        return texts(self.system.tools().call("sessions_history", asked))


def second(ms: int) -> float:
    """Return a time as seconds since the log began."""
    return (ms - BEGAN_MS) / 1000


def when(at: float) -> str:
    """Return a second as callers write a time."""
    return datetime.fromtimestamp(BEGAN_MS / 1000 + at, UTC).isoformat()


@pytest.fixture(scope="module")
def played(logs: Logs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    """The log that is asked."""
    log = Played(logs.at(tmp_path_factory.mktemp("facts")))
    with log.system:
        yield log


QUESTIONS: Final[dict[str, tuple[Callable[[Played], Any], Any]]] = {
    # --- who said what to whom
    "who said what to main, and when?": (
        lambda log: log.heard(to=MAIN),
        [
            (0, "Ada", FERRY),
            (103, RESEARCH, "No ferry on Sunday."),
            (200, "Bob", "Ask ops."),
            (300, OPS, "All is fine."),
            (400, "Cy", "Look it up."),
            (500, "Dan", "Open the vault."),
            (602, RESEARCH, HOPS),
            (605, RESEARCH, "Until Monday."),
            (606, "system", ANNOUNCE_STEP),
            (700, "Flo", "Fail."),
            (800, "Gus", "Sleep."),
            (802, "Hal", "Me, too."),
            (1000, "Ada", "Again."),
        ],
    ),
    "what did ops hear and answer?": (
        lambda log: log.transcript(OPS, 500),
        [
            ("user", "Hello."),
            ("user", WELL),
            ("assistant", "All is on fire."),
            ("user", "Until when?"),
            ("assistant", "All is on fire."),
            ("user", ANNOUNCE_STEP),
            ("assistant", "ANNOUNCE_SKIP"),
        ],
    ),
    "what did sessions say to each other for Ada?": (
        lambda log: log.heard(interSession=True, person="ada"),
        [
            (101, MAIN, TIMETABLE),
            (103, RESEARCH, "No ferry on Sunday."),
            (104, MAIN, "Until when?"),
        ],
    ),
    "how did the conversation about the ferry go?": (
        lambda log: log.shown(TIMETABLE),
        [
            (101, "main > research", TIMETABLE),
            (103, "research > main", "No ferry on Sunday."),
            (104, "main > research", "Until when?"),
            (106, "research", "turn 2: Until Monday."),
            (106, "", f"The ping-pong ended after 2 turns: the limit of turns was reached ({MAX_TURNS})."),
            (106, "research", f"is told: {ANNOUNCE_STEP}"),
            (108, "research > slack:rob", "The ferry is back on Monday."),
            (108, "slack:rob", "Delivered to slack:rob."),
            (108, "", "The exchange is over: announced"),
        ],
    ),
    "who called which tool, with what, and was it refused?": (
        lambda log: [
            (second(one["timeMs"]), one["sessionKey"], one["tool"], one["arguments"], one["failed"])
            for one in reversed(log.ask("calls", until=when(502))["calls"])
        ],
        [
            (1, MAIN, "timetable", '{"day":"Sunday"}', False),
            (
                101,
                MAIN,
                "sessions_send",
                f'{{"sessionKey":"{RESEARCH}","message":"{TIMETABLE}","timeoutSeconds":30}}',
                False,
            ),
            (
                201,
                MAIN,
                "sessions_send",
                f'{{"sessionKey":"{OPS}","message":"{WELL}","timeoutSeconds":0}}',
                False,
            ),
            (401, MAIN, "sessions_spawn", f'{{"task":"{KEY}","label":"finder"}}', False),
            (
                501,
                MAIN,
                "sessions_send",
                f'{{"sessionKey":"{VAULT}","message":"Open!","timeoutSeconds":0}}',
                True,
            ),
        ],
    ),
    # --- runs: when, how often, why they ended
    "when was a run queued that had to wait, when did it start and end?": (
        lambda log: log.times("Me, too."),
        ("ok", 1, 802, 805, 806),
    ),
    "when was a run queued, started and ended that was cut off?": (
        lambda log: log.times(FERRY),
        ("ok", 2, 0, 100, 103),
    ),
    "when did each of its attempts begin?": (
        lambda log: [
            second(log.ask("lens", run=log.run(FERRY), attempt=number)["place"]["timeMs"])
            for number in (1, 2)
        ],
        [0, 100],
    ),
    "why did its first attempt end, and when?": (
        lambda log: log.why(FERRY, "run") | {"ended": second(log.looked_at(FERRY, "run")["ended"])},
        {
            "code": "interrupted",
            "text": "Attempt 1 was cut off: an attempt that a stop or a crash cuts off is tried again.",
            "ended": 100,
        },
    ),
    "what had its first attempt done, as its second was told?": (
        lambda log: [
            (one["name"], one["ordinal"], one["hasEnded"])
            for one in log.ask("lens", run=log.run(FERRY), attempt=2)["madeBefore"]
        ],
        [("timetable", 1, False)],
    ),
    "why did a run fail?": (
        lambda log: (log.times("Fail."), log.stood("runs", "Fail.")["error"], log.why("Fail.", "run")),
        (
            ("error", 1, 700, 700, 701),
            "backend: ValueError: out of order",
            {
                "code": "backend",
                "text": "The run failed in attempt 1 (backend: ValueError: out of order): an agent that raises has failed its "
                "run.",
            },
        ),
    ),
    "who stopped a run, and when?": (
        lambda log: (log.times("Sleep."), log.why("Sleep.", "run"), log.looked_at("Sleep.", "run")["by"]),
        (
            ("aborted", 1, 800, 800, 805),
            {
                "code": "aborted",
                "text": "gus aborted the run: an abort ends a run and keeps the text so far.",
            },
            "gus",
        ),
    ),
    "which step of which conversation was each run?": (
        lambda log: [
            (
                one["step"],
                one.get("turn"),
                log.named(one["sessionKey"]),
                one[flow] == log.stood(f"{flow[:-2]}s", text)[flow],
            )
            for flow, text in (("exchangeId", TIMETABLE), ("spawnId", KEY))
            for one in reversed(log.ask("state", of=log.run(text))["runs"])
        ],
        [
            ("message", 0, RESEARCH, True),
            ("reply", 1, MAIN, True),
            ("reply", 2, RESEARCH, True),
            ("announce", None, RESEARCH, True),
            ("message", None, "child", True),
            ("announce", None, "child", True),
        ],
    ),
    "what did the operator see of where it failed?": (
        lambda log: [
            one["data"]["traceback"].splitlines()[-1]
            for one in reversed(log.ask("events", kind=["run_failed", "delivery_failed"])["events"])
        ],
        ["ConnectionError: no line", "ValueError: out of order"],
    ),
    "what did a run answer, of which model, and what did it use?": (
        lambda log: [log.stood("runs", "Again.")[name] for name in ("reply", "model", "usage")],
        ["Once more.", "acme/one", {"input": 20, "output": 5, "totalTokens": 25, "costMicros": 7}],
    ),
    "what was open while research was asked?": (
        lambda log: [
            [text for text in (FERRY, TIMETABLE, WELL) if log.run(text) in log.open_at(102)["runs"]],
            [
                f"{one['requester']} > {one['target']}"
                for text in (TIMETABLE, WELL)
                for one in [log.stood("exchanges", text)]
                if one["exchangeId"] in log.open_at(102)["exchanges"]
            ],
        ],
        [[FERRY, TIMETABLE], [f"{MAIN} > {RESEARCH}"]],
    ),
    # --- what an agent was given
    "what was the agent of turn 1 given, with which tools, window and deadline?": (
        lambda log: log.given(f"{log.run(TIMETABLE)}@turn:1"),
        {
            "message": "No ferry on Sunday.",
            "from": RESEARCH,
            "turn": 1,
            "hops": 1,
            "tools": ["sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "agents_list"],
            "contextTokens": 64_000,
            "fits": True,
            "deadline": 163,
            "asRecorded": True,
        },
    ),
    "and the agent that a person wrote to?": (
        lambda log: log.given(log.run("Sleep.")),
        {
            "message": "Sleep.",
            "from": "gus",
            "turn": None,
            "hops": None,
            "tools": ["sessions_list", "sessions_history", "sessions_send", "sessions_spawn", "agents_list"],
            "contextTokens": 64_000,
            "fits": True,
            "deadline": 1400,
            "asRecorded": True,
        },
    ),
    # --- limits and settings
    "which settings were in force in the first life, and which in the second?": (
        lambda log: [
            log.ask("state", at=when(at))["config"]["settings"]["session"]["agentToAgent"]["maxPingPongTurns"]
            for at in (50, 150)
        ],
        [5, 2],
    ),
    "under which limits did the exchange run?": (
        lambda log: log.stood("exchanges", TIMETABLE)["settings"],
        {"maxTurns": 2, "turnTimeoutMs": 60_000, "announce": "always", "hold": "off"},
    ),
    "which limit ended its loop, after how many turns?": (
        lambda log: (
            [
                log.stood("exchanges", TIMETABLE)[name]
                for name in ("turns", "loopEnd", "limit", "primaryStatus")
            ]
            + [log.looked_at(TIMETABLE, "loop")["turn"]]
        ),
        [2, "turn_limit", MAX_TURNS, "ok", 2],
    ),
    "does the log say all that was decided upon?": (
        lambda log: [log.system.debug.replay()[name] for name in ("same", "notJudged", "firstDifference")],
        [True, [], None],
    ),
    "which rule let the words out?": (
        lambda log: {one["data"]["rule"] for one in log.ask("events", kind=["delivery_started"])["events"]},
        {"no rule of session.sendPolicy matches: allow"},
    ),
    # --- what led to it
    "what did the announce begin with?": (
        lambda log: log.root(TIMETABLE),
        ("person", "Ada (ada) on telegram", MAIN, FERRY),
    ),
    "what led to it, step by step?": (
        lambda log: [
            (second(one["timeMs"]), one["who"], one["to"], one["text"])
            for one in reversed(log.ask("why", of=log.run(TIMETABLE))["causes"])
            if one["way"] == "said" and one["how"] and not one["carried"]
        ],
        [
            (0, "Ada (ada) on telegram", MAIN, FERRY),
            (101, MAIN, RESEARCH, TIMETABLE),
            (103, RESEARCH, MAIN, "No ferry on Sunday."),
            (104, MAIN, RESEARCH, "Until when?"),
            (106, RESEARCH, MAIN, "Until Monday."),
            (106, "the system", RESEARCH, ANNOUNCE_STEP),
            (108, RESEARCH, "slack:rob", "The ferry is back on Monday."),
        ],
    ),
    "where did the words come from that Ada read, and by which hops?": (
        lambda log: log.hops("No ferry on Sunday."),
        [
            (103, RESEARCH, None, "agent"),
            (103, RESEARCH, MAIN, "sessions_send"),
            (103, "sessions_send", MAIN, "tool"),
            (103, MAIN, None, "agent"),
            (103, MAIN, "telegram:ada", "delivery"),
        ],
    ),
    # --- holds
    "what was held, before which step, and who wanted it?": (
        lambda log: [
            (one["step"], one["text"], one["speaker"], one["to"], one["by"], second(one["since"]))
            for flow in log.ask("state", of=log.run(WELL), at=when(250))["exchanges"]
            for one in [flow["held"]]
        ],
        [("reply", "All is on fire.", OPS, MAIN, "operator", 201)],
    ),
    "who let it go, when, and with what other words?": (
        lambda log: log.shown(WELL)[2:5],
        [
            (201, "ops", "Held: the reply waits for a release, as operator wants."),
            (300, "", "operator lets it go on with another text: All is fine."),
            (300, "ops > main", "All is fine."),
        ],
    ),
    "who wanted what of a session held, and until when?": (
        lambda log: [
            (second(one["timeMs"]), one["who"], one["to"], one["text"])
            for one in reversed(log.ask("events", kind=["session_patched"])["events"])
        ],
        [(200, "operator", OPS, "hold=next"), (300, "operator", OPS, "hold cleared")],
    ),
    "who wrote the words that main heard?": (
        lambda log: log.ask("origin", words="All is fine.")["first"]["editedBy"],
        "operator",
    ),
    # --- announces and deliveries
    "what was announced, and where?": (
        lambda log: [log.sent(TIMETABLE), log.sent(HOPS)],
        [
            [("announce", "slack", "rob", "The ferry is back on Monday.", "done", 1)],
            [("announce", "telegram", "dan", "It is settled.", "done", 1)],
        ],
    ),
    "why was nothing announced?": (
        lambda log: (log.why(WELL, "announce"), log.why(WELL, "exchange"), log.sent(WELL)),
        (
            {
                "code": "announce_skip",
                "text": "Nothing was announced: an agent that answers exactly ANNOUNCE_SKIP keeps silent.",
            },
            {"code": "silent", "text": "The exchange was closed: nothing was to be announced."},
            [],
        ),
    ),
    "where would it have been announced?": (
        lambda log: [log.looked_at(text, "exchange")["route"] for text in (TIMETABLE, WELL, HOPS)],
        ["slack:rob", "telegram:eve", "telegram:dan"],
    ),
    "what was delivered to Ada, after how many attempts?": (
        lambda log: log.sent(FERRY),
        [("auto_reply", "telegram", "ada", "They say: No ferry on Sunday.", "done", 2)],
    ),
    "why did the first attempt fail, when was it tried again, and when did it arrive?": (
        lambda log: (
            log.looked_at(FERRY, "delivery")["error"],
            second(log.looked_at(FERRY, "delivery")["retryAt"]),
            log.shown(FERRY)[2:],
        ),
        (
            "ConnectionError: no line",
            104,
            [
                (103, "main > Ada (telegram)", "They say: No ferry on Sunday."),
                (
                    103,
                    "Ada (telegram)",
                    "Not delivered to Ada (telegram), to be tried again: ConnectionError: no line",
                ),
                (104, "Ada (telegram)", "Delivered to Ada (telegram)."),
            ],
        ),
    ),
    "what did the channel say when it took the announce?": (
        lambda log: [
            one["text"] for one in log.ask("why", of=log.run(HOPS))["causes"] if "receipt" in one["text"]
        ],
        ['taken, its receipt: {"number":7}'],
    ),
    # --- who asked
    "who asked for each thing?": (
        lambda log: [
            (second(one["acceptedAt"]), one["kind"], one["requester"], one["target"])
            for one in reversed(log.ask("runs", kind=["exchange", "run"], limit=200)["runs"])
        ],
        [
            (0, "run", "inbound", MAIN),
            (101, "exchange", MAIN, RESEARCH),
            (200, "run", "inbound", MAIN),
            (201, "exchange", MAIN, OPS),
            (400, "run", "inbound", MAIN),
            (500, "run", "inbound", MAIN),
            (600, "run", "inbound", OPS),
            (600, "exchange", OPS, RESEARCH),
            (602, "exchange", RESEARCH, MAIN),
            (700, "run", "inbound", MAIN),
            (800, "run", "inbound", MAIN),
            (802, "run", "inbound", MAIN),
            (900, "exchange", "operator", OPS),
            (1000, "run", "inbound", MAIN),
        ],
    ),
    "who called in the operator's place?": (
        lambda log: (log.stood("exchanges", "From the desk.")["requester"], log.root("From the desk.")),
        ("desk", ("operator", "desk", OPS, "From the desk.")),
    ),
    # --- refusals
    "what was refused for want of a right, and why?": (
        lambda log: (
            log.why("Open the vault.", "refusal"),
            [
                log.looked_at("Open the vault.", "refusal")[name]
                for name in ("requester", "sessionKey", "tools.agentToAgent.allow")
            ],
        ),
        (
            {
                "code": "forbidden",
                "text": "sessions_send was refused (forbidden): another agent's sessions are closed unless the settings open them.",
            },
            [MAIN, VAULT, ["main", "research", "ops"]],
        ),
    ),
    "what was refused by which limit of the chain, and what had it used?": (
        lambda log: (
            log.why(HOPS, "refusal"),
            [
                log.looked_at(HOPS, "refusal")[name]
                for name in (HOPS_LIMIT, f"{HOPS_LIMIT}.used", "chain", "sessionKey")
            ],
        ),
        (
            {
                "code": "limit",
                "text": "sessions_send was refused (limit): the guards over a causal chain stop what would go on for ever.",
            },
            [2, 2, [OPS, RESEARCH, MAIN], OPS],
        ),
    ),
    "who asked to reach whom by which tool, and who was denied?": (
        lambda log: [
            (second(one["timeMs"]), one["who"], one["text"])
            for one in reversed(log.ask("events", stream="access:", until=when(602.5))["events"])
        ],
        [
            (101, MAIN, "sessions_send: 1 allowed, 0 denied"),
            (201, MAIN, "sessions_send: 1 allowed, 0 denied"),
            (401, MAIN, "sessions_spawn: 1 allowed, 0 denied"),
            (501, MAIN, "sessions_send: 0 allowed, 1 denied"),
            (600, OPS, "sessions_send: 1 allowed, 0 denied"),
            (602, RESEARCH, "sessions_send: 1 allowed, 0 denied"),
        ],
    ),
    "and whom by which words?": (
        lambda log: [
            (one.event.filters, one.targets)
            for one in receipts(log.system.log, Wanted(who=MAIN))
            if isinstance(one.event, AccessRecorded)
        ][1:3],
        [
            (f'{{"sessionKey":"{VAULT}","timeoutSeconds":0}}', ((VAULT, "forbidden"),)),
            ('{"label":"finder"}', ()),
        ],
    ),
    "and which send was refused by a limit, of which chain?": (
        lambda log: [
            (
                one.event.target,
                one.event.limit,
                one.event.allowed,
                one.event.chain,
                one.event.root == log.run("Chain."),
            )
            for one in receipts(log.system.log, Wanted())
            if isinstance(one.event, SendRefused)
        ],
        [(OPS, HOPS_LIMIT, 2, (OPS, RESEARCH, MAIN), True)],
    ),
    # --- spawns
    "what was handed to a sub-agent, and what came of it?": (
        lambda log: (
            {
                name: log.stood("spawns", KEY)[name]
                for name in ("requester", "label", "mode", "status", "result", "closeReason")
            },
            second(log.stood("spawns", KEY)["endedAt"]),
            log.shown(KEY),
        ),
        (
            {
                "requester": MAIN,
                "label": "finder",
                "mode": "run",
                "status": "ok",
                "result": "It is under the mat.",
                "closeReason": "announced",
            },
            402,
            [
                (401, "main > main/finder", KEY),
                (402, "main/finder", "says It is under the mat."),
                (
                    402,
                    "main/finder",
                    f"is told: {CHILD_STEP}",
                ),
                (403, "main/finder", "says It is settled."),
                (403, "main > Cy (telegram)", "Status: success\nResult: It is settled.\nNotes: (none)"),
                (403, "Cy (telegram)", "Delivered to Cy (telegram)."),
                (403, "", "The spawn is over: announced"),
            ],
        ),
    ),
    "what did a sub-agent begin with?": (
        lambda log: log.root(KEY),
        ("person", "Cy (cy) on telegram", MAIN, "Look it up."),
    ),
    "which sessions are there, of whom, on which channel, and begun by whom?": (
        lambda log: [
            (
                log.named(one["key"]),
                *(one.get(name) for name in ("kind", "channel", "label", "spawnedBy", "lastTo")),
            )
            for one in log.listed()
        ],
        [
            ("main", "main", "telegram", None, None, "ada"),
            (OPS, "main", "telegram", None, None, "eve"),
            (RESEARCH, "main", "slack", None, None, "rob"),
            ("child", "other", "unknown", "finder", "main", None),
            (VAULT, "main", "telegram", None, None, "vic"),
        ],
    ),
    # --- generations
    "who reset main, and when?": (
        lambda log: [
            (second(one["timeMs"]), one["who"])
            for one in log.ask("events", session=MAIN, kind=["session_reset"])["events"]
        ],
        [(1000, "operator")],
    ),
    "what stands in its transcript now?": (
        lambda log: log.transcript(MAIN, 1050),
        [("user", "Again."), ("assistant", "Once more.")],
    ),
    "what had stood in it before?": (
        lambda log: [said for role, said in log.transcript(MAIN, 999) if role == "assistant" and said],
        [
            "They say: No ferry on Sunday.",
            "Until when?",
            "Done.",
            "Until when?",
            "Done.",
            "Done.",
            "Done.",
            "Until when?",
            "It is settled.",
            "Done.",
        ],
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_log_has_an_answer(played: Played, question: str) -> None:
    ask, answer = QUESTIONS[question]

    assert ask(played) == answer

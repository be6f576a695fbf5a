"""What a system should do, in a page: sessions, exchanges, spawns and holds as a person would keep them in mind.

It knows nothing of events, actors or stores. Each call is carried to its end before the next one, but for what is held.
"""

from dataclasses import dataclass, field
from itertools import count
from typing import Final, Literal

Mood = Literal["talks", "skips", "is silent", "fails"]
Before = Literal["next", "reply", "every-turn", "announce"]
Action = Literal["go_on", "edit", "drop", "end"]

MOST_TURNS: Final = 2
PROMPT: Final = "<prompt>"
"""Stands for whatever the system itself asks."""
SKIPS: Final = {"message": "NO_REPLY", "reply": "REPLY_SKIP", "announce": "ANNOUNCE_SKIP"}
STATUS: Final = {True: "success", False: "error"}


@dataclass
class Session:
    """One conversation: who has said what, in order. `routed`: a person has spoken here."""

    said: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    generation: int = 0
    routed: bool = False
    is_there: bool = True


@dataclass
class Exchange:
    """A send that is not over, and where it stands. `turn` is the last that was taken, `latest` what was said last."""

    requester: str
    target: str
    generations: dict[str, int]
    routed: bool
    latest: str = ""
    turn: int = 0
    held: Literal["reply", "announce"] | None = None
    held_before: Before = "next"
    asked: Before | None = None
    served: set[int] = field(default_factory=set[int])


class Model:
    """All sessions, what people were shown, and the exchanges that are held, by their names."""

    def __init__(self) -> None:
        self.sessions: dict[str, Session] = {}
        self.moods: dict[str, Mood] = {}
        self.shown: list[str] = []
        self.held: dict[str, Exchange] = {}
        self._orders: dict[str, tuple[int, Before]] = {}
        self._numbers = count()

    # --- what is asked of it

    def opens(self, key: str, text: str) -> None:
        """The operator says something where nobody has spoken yet."""
        self.sessions[key] = Session()
        self._run(key, text, "message")

    def says(self, key: str, text: str) -> None:
        """A person says something, and is shown the answer."""
        self.sessions[key].routed = True
        answer = self._run(key, text, "message")
        if isinstance(answer, str):
            self.shown.append(answer)

    def sends(self, name: str, requester: str, target: str, text: str) -> None:
        """A session sends something to another one."""
        generations = {key: self.sessions[key].generation for key in (requester, target)}
        exchange = Exchange(requester, target, generations, self.sessions[target].routed)
        answer = self._run(target, text, "message")
        if isinstance(answer, str):
            exchange.latest = answer
            self._replied(name, exchange)

    def spawns(self, requester: str, child: str, task: str, *, cleanup: str) -> None:
        """A session has a child do something; what came of it is told to people, or to the session."""
        self.sessions[child] = Session()
        answer = self._run(child, task, "message")
        news = self._run(child, PROMPT, "announce") if answer is not False else None
        if news is not SILENT:
            result = news or answer or "(no output)"
            words = f"Status: {STATUS[answer is not False]}\nResult: {result}"
            if self.sessions[requester].routed:
                self.shown.append(words)
            else:
                self._run(requester, words, "message")
        if cleanup == "delete":
            self.deletes(child)

    def resets(self, key: str) -> None:
        """Another conversation begins under the same key."""
        session = self.sessions[key]
        session.said = []
        session.generation += 1

    def deletes(self, key: str) -> None:
        """A session is gone."""
        self.sessions[key].is_there = False
        self._orders.pop(key, None)

    def holds_session(self, key: str, before: Before) -> None:
        """All that goes on in the exchanges of a session is to stop."""
        if key not in self._orders or self._orders[key][1] != before:
            self._orders[key] = next(self._numbers), before

    def holds(self, name: str, before: Before) -> bool:
        """An exchange that is held is to stop again; say whether it can."""
        exchange = self.held[name]
        if before == "reply" and exchange.held == "announce":
            return False
        if before not in {"next", exchange.held_before}:
            exchange.asked = before
        return True

    def releases(self, name: str, action: Action, text: str | None = None) -> None:
        """What is held goes on: as it is, in other words, without its text, or not at all."""
        exchange = self.held.pop(name)
        if text is not None:
            exchange.latest = text
        if exchange.held == "announce":
            if action in {"go_on", "edit"}:
                self._announced(exchange)
        elif action in {"go_on", "edit"}:
            self._next(name, exchange)
        elif action == "drop" and exchange.turn:
            self._announces(name, exchange)

    def releases_session(self, key: str, action: Action) -> None:
        """Nothing of a session is to stop any more, and what is held of it goes on."""
        self._orders.pop(key, None)
        for name in self.held_of(key):
            self.releases(name, action)

    def held_of(self, key: str) -> list[str]:
        """Return which exchanges of a session are held."""
        return [name for name, one in self.held.items() if key in {one.requester, one.target}]

    # --- what follows

    def _run(self, key: str, text: str, step: str) -> "str | bool | None":
        """Return what an agent answers: its words, None for nothing, `SILENT`, or False where it fails."""
        session, agent = self.sessions[key], key.split(":")[1]
        session.said.append(("user", text))
        match self.moods.get(agent, "talks"):
            case "talks":
                answer = says(agent, text, step)
                session.said.append(("assistant", answer))
                return answer
            case "skips":
                session.said.append(("assistant", SKIPS[step]))
                return SILENT if step != "message" else None
            case "is silent":
                return None
            case "fails":
                return False

    def _replied(self, name: str, exchange: Exchange) -> None:
        """Go on from a reply, unless it is to stop here."""
        if exchange.turn and exchange.turn >= MOST_TURNS:  # it goes nowhere
            self._announces(name, exchange)
        elif not self._stops(name, exchange, "reply"):
            self._next(name, exchange)

    def _next(self, name: str, exchange: Exchange) -> None:
        speaker = exchange.target if exchange.turn % 2 else exchange.requester
        # What a turn says has to have somebody who hears it, too.
        are_there = all(self._is_there(exchange, key) for key in (exchange.requester, exchange.target))
        if exchange.turn >= MOST_TURNS or not are_there:
            self._announces(name, exchange)
            return
        exchange.turn += 1
        answer = self._run(speaker, exchange.latest, "reply")
        if not isinstance(answer, str):
            self._announces(name, exchange)
            return
        exchange.latest = answer
        self._replied(name, exchange)

    def _announces(self, name: str, exchange: Exchange) -> None:
        if not self._is_there(exchange, exchange.target):
            return
        news = self._run(exchange.target, PROMPT, "announce")
        if not isinstance(news, str):
            return
        exchange.latest = news
        if not self._stops(name, exchange, "announce"):
            self._announced(exchange)

    def _announced(self, exchange: Exchange) -> None:
        if exchange.routed:
            self.shown.append(exchange.latest)

    def _is_there(self, exchange: Exchange, key: str) -> bool:
        session = self.sessions[key]
        return session.is_there and session.generation == exchange.generations[key]

    def _stops(self, name: str, exchange: Exchange, step: Literal["reply", "announce"]) -> bool:
        """Say whether a text is to stop before it goes on, and hold it: each order stops an exchange once, or always."""
        own: list[tuple[int, Before]] = [(-1, exchange.asked)] if exchange.asked is not None else []
        theirs = [self._orders[key] for key in (exchange.requester, exchange.target) if key in self._orders]
        for number, before in [*own, *theirs]:
            always = before == "every-turn"
            if always or (before in {"next", step} and number not in exchange.served):
                exchange.held, exchange.held_before = step, before
                if not always and number >= 0:
                    exchange.served.add(number)
                elif not always:
                    exchange.asked = None
                self.held[name] = exchange
                return True
        return False


SILENT: Final = True
"""What an agent answers that says the word for it."""


def says(agent: str, text: str, step: str) -> str:
    """Return what an agent answers that talks."""
    return f"{agent} has news" if step == "announce" else f"{agent} heard {text.splitlines()[-1]}"

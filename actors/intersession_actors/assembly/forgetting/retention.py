"""Erases what is older than it may get, once a day, on a thread of its own (FORGET-4, FORGET-5).

What was erased is in the log, so a pass that was cut off is gone on with by the next: it finds what is left.
"""

import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final

from intersession_actors.assembly.forgetting.eraser import Eraser, Planned
from intersession_actors.assembly.forgetting.in_log import Order
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.config.retention import What
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.running.failures.failure import described
from intersession_actors.running.host.own_threads import filling
from intersession_actors.running.host.threads import Job, Workers
from intersession_actors.running.runtime.timers import Timers
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.erasing import ERASURES
from intersession_events.log.log import HostLog, Log
from intersession_projections.copies.aged_words import Aged, Due, Latest
from intersession_projections.copies.found_words import Words
from intersession_projections.copies.words_to_erase import Erasable

logger = logging.getLogger("intersession.retention")

FIRST_MS: Final = 60_000
DAY_MS: Final = 86_400_000
AGAIN_MS: Final = 600_000
ASKED_SECONDS: Final = 600.0
"""How long a caller waits for a pass."""
ROUND: Final = 20_000
"""Events of a rule that are erased in one go, in many appends; what else lies beside the log is looked at once in each."""
AT_ONCE: Final = 200
"""Events that are erased in one append: what else is to be written waits no longer than for these."""
BY: Final = "retention"
_TIMER: Final = ("retention",)


class Retention:
    """Erases by age, as the settings say. Its methods may be called from any thread."""

    def __init__(self, service: Service, eraser: Eraser, timers: Timers) -> None:
        self._service = service
        self.eraser = eraser
        self._timers = timers
        self._workers = Workers(1, keep=0, name="retention", threads=service.blocking)
        self._stopped = False
        self._is_first = True
        self._last: JsonObject | None = None
        self._error: str | None = None
        self._next_ms: int | None = None

    @property
    def status(self) -> JsonObject | None:
        """The last pass since the start, what waits, and when the next is; None where no rule is set."""
        if not self._service.config.retention.has_rules:
            return None
        return {"last": self._last, "error": self._error, "nextMs": self._next_ms}

    def start(self) -> None:
        """Begin to watch the clock. What a fork has stays with the log that it came from."""
        if self._service.log.forked is None and self._service.config.retention.has_rules:
            self._set_timer(FIRST_MS)

    def stop(self) -> None:
        """Erase nothing more: the rest is found by the next pass."""
        self._stopped = True
        self._timers.cancel(_TIMER)
        self._workers.stop()

    def apply(self, *, by: str, dry_run: bool) -> Result:
        """Erase now what is too old, or count it.

        Raises:
            ToolRefused: no rule is set (`invalid_request`), or the pass takes longer than a caller waits (`unavailable`): it goes on.
        """
        if not self._service.config.retention.has_rules:
            raise ToolRefused(
                "invalid_request",
                "no rule is set: give retention.messages in the configuration, such as 400d",
            )
        asked: Future[Result] = Future()
        self._submit(filling(asked, lambda: self._pass(by=by, dry_run=dry_run)))
        if self._stopped or not self._service.blocking.wait(asked, ASKED_SECONDS):
            raise ToolRefused("unavailable", "the pass is still under way, ask again later")
        return asked.result()

    def _submit(self, work: Callable[[], None]) -> None:
        try:
            self._workers.submit(Job(work))
        except RuntimeError:
            self._stopped = True

    def _set_timer(self, delay_ms: int) -> None:
        if not self._stopped:
            self._next_ms = self._service.clock.now_ms() + delay_ms
            self._timers.after(delay_ms, _TIMER, lambda: self._submit(self._daily))

    # --- on the thread of its own

    def _daily(self) -> None:
        pause_ms = DAY_MS
        try:
            self._pass(by=BY, dry_run=False)
        except (LogError, OSError) as error:
            self._error, pause_ms = described(error), AGAIN_MS
            logger.warning("what is too old could not be erased: %s", self._error)
        self._set_timer(pause_ms)

    def _pass(self, *, by: str, dry_run: bool) -> Result:
        passed = _Pass(self._service, self.eraser, by=by, dry_run=dry_run, is_first=self._is_first)
        result = passed.made(lambda: self._stopped)
        if not dry_run:
            self._is_first = False
            self._error = None
            self._last = {
                "atMs": self._service.clock.now_ms(),
                "erased": result["erased"],
                "files": result["files"],
                "waiting": result["waiting"],
            }
        return result


class _Pass:
    """One pass over the log."""

    def __init__(self, service: Service, eraser: Eraser, *, by: str, dry_run: bool, is_first: bool) -> None:
        self._service = service
        self._eraser = eraser
        self._by = by
        self._dry_run = dry_run
        # A pass may have been killed behind its last append: of that nothing is left to be found.
        self._ends_what_was_cut_off = is_first and not dry_run and bool(service.log.streams(ERASURES))
        self._now_ms = service.clock.now_ms()
        under_way = Erasable(service.log).under_way()
        self._aged = self._aged_in(service.log, under_way)
        self._rules = Counter[str]()
        self._counts = Counter[str]()
        self._files = 0
        self._streams: set[str] = set()
        self._last: Result = {"position": None, "checkpoint": None}
        self._not_reached: dict[str, None] = {}

    def made(self, is_stopped: Callable[[], bool]) -> Result:
        """Make the pass, unless it is stopped, and return what came of it."""
        forks, left = self._eraser.in_forks(self._in_fork, dry_run=self._dry_run)
        self._not_reached |= dict.fromkeys(left)
        collected: dict[str, list[Words]] = {}
        for rule, words in self._aged.words(self._service.log.head()):
            found = collected.setdefault(rule, [])
            found.append(words)
            if len(found) >= ROUND:
                self._round(rule, collected.pop(rule))
                if is_stopped():
                    break
        for rule, found in collected.items():
            if not is_stopped():
                self._round(rule, found)
        self._not_reached |= dict.fromkeys(self._aged.staying())
        for rule, contents in self._aged.files().items():
            if not is_stopped():
                number = sum(map(len, contents.values()))
                self._rules[rule] += number
                self._files += number
                if not self._dry_run:
                    position = self._eraser.erase_files(contents, Order(self._by, "", rule))
                    self._last = {"position": position[0], "checkpoint": position[1]}
        if self._ends_what_was_cut_off or self._last["position"] is not None:
            self._not_reached |= dict.fromkeys(self._eraser.let_go())
        sessions = sum(stream.startswith("session:") for stream in self._streams)
        return {
            "ok": True,
            "dryRun": self._dry_run,
            "erased": self._counts.pop("erased", 0),
            "files": self._files,
            "rules": dict(sorted(self._rules.items())),
            "counts": {**self._counts, "sessions": sessions, "files": self._files, "forks": len(forks)},
            "forks": forks,
            "streams": sorted(self._streams),
            "waiting": sorted(self._aged.waiting),
            **self._last,
            "notReached": [*self._not_reached],
        }

    def _in_fork(self, fork: HostLog) -> Planned:
        """Return what is too old in a fork: nobody acts on it there."""
        found: dict[str, list[Words]] = {}
        aged = self._aged_in(fork, set())
        for rule, words in aged.words(fork.head()):
            found.setdefault(rule, []).append(words)
        return [(Order(self._by, "", rule), words) for rule, words in found.items()], [*aged.staying()]

    def _aged_in(self, log: Log, under_way: set[str]) -> Aged:
        shortest_ms = self._service.config.retention.shortest_ms
        words, thinking = shortest_ms("messages", "toolResults", "files"), shortest_ms("thinking")
        latest = Latest(
            None if words is None else self._now_ms - words,
            None if thinking is None else self._now_ms - thinking,
        )
        return Aged(log, self._due, under_way, latest)

    def _due(self, key: str | None, kind: What) -> Due | None:
        rule = self._service.config.retention.rule(key, kind)
        return None if rule is None else Due(rule.name, self._now_ms - rule.most_ms)

    def _round(self, rule: str, found: list[Words]) -> None:
        order = Order(self._by, "", rule, at_once=AT_ONCE)
        done = self._eraser.erase(None, Erasable(self._service.log), found, order, dry_run=self._dry_run)
        self._rules[rule] += len(found)
        self._counts["erased"] += len(found)
        counts: dict[str, int] = done["counts"]
        self._files += counts["files"]
        self._counts.update(
            {name: number for name, number in counts.items() if name not in {"files", "sessions", "forks"}}
        )
        self._streams.update(done["streams"])
        self._not_reached |= dict.fromkeys(done["notReached"])
        if not self._dry_run:
            self._last = {"position": done["position"], "checkpoint": done["checkpoint"]}

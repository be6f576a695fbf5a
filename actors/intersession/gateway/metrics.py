"""The metrics at `/metrics`: counts of committed events since the start, and the present state of the system.

No metric has a label of a session, a run or a channel: their number has no bound. That of agents is the configuration's and the workers'.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from intersession_actors.assembly.system.system import SessionSystem
from intersession_actors.hindsight.debugger.lists.hosts import CallState, HostsAnswer
from intersession_events import facts
from intersession_events.basics.plain_json import JsonObject
from intersession_events.log.recorded import Recorded

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS: Final = (0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_MOST_RUNNING: Final = 10_000
_MS: Final = 1000

COUNTERS: Final = {
    "intersession_events": ("Events committed to the log.", ()),
    "intersession_commits": ("Batches committed to the log; several appends can share one.", ()),
    "intersession_runs": ("Attempts of runs that ended.", ("outcome",)),
    "intersession_run_failures": ("Runs that failed, by their code.", ("code",)),
    "intersession_sends": ("Exchanges that began: accepted calls of sessions_send.", ()),
    "intersession_sends_refused": (
        "Calls of sessions_send and sessions_spawn that a guard refused.",
        ("code",),
    ),
    "intersession_exchanges_closed": ("Exchanges that ended.", ("reason",)),
    "intersession_spawns": ("Sub-agents that were spawned.", ()),
    "intersession_spawns_closed": ("Spawns that ended.", ("reason",)),
    "intersession_deliveries": ("Attempts to deliver a text, by what came of them.", ("outcome",)),
    "intersession_failures": ("Failures that were told, by kind (docs/howto/logging.md).", ("kind",)),
}
"""Every counter, with its help and its labels. On the wire each name ends in `_total`."""

GAUGES: Final = {
    "intersession_log_position": ("The position of the last event.", ()),
    "intersession_store_available": ("1 while the store takes and gives, 0 while it does not.", ()),
    "intersession_live_sessions": ("Sessions whose actor is awake.", ()),
    "intersession_open_runs": ("Runs that wait or are under way.", ("state",)),
    "intersession_parked_runs": ("Runs that wait for an agent that is not registered.", ()),
    "intersession_open_deliveries": (
        "Texts that are not out yet: waiting for their channel, retrying, under way.",
        ("state",),
    ),
    "intersession_held_exchanges": ("Exchanges that have stopped until somebody releases them.", ()),
    "intersession_held_calls": ("Tool calls that wait until somebody releases them.", ()),
    "intersession_degraded": ("Sessions, managers and flows that were given up until the next start.", ()),
    "intersession_checkpoint_position": ("The position that the last checkpoint is of; 0 without one.", ()),
    "intersession_checkpoint_age_seconds": ("How old the last checkpoint is; 0 without one.", ()),
    "intersession_checkpoint_new_events": ("Events since the last checkpoint.", ()),
    "intersession_checkpoints_unpublished": ("Checkpoints that a place does not have yet.", ("to",)),
    "intersession_copy_age_seconds": (
        "How long ago a copy of the log was last taken; none, if none is known.",
        (),
    ),
    "intersession_copy_behind_events": ("Events since the last copy of the log; none, if none is known.", ()),
    "intersession_waiting_calls": (
        "Calls that no worker has taken, and runs of agents that nobody has: what workers are missing for.",
        ("agent",),
    ),
    "intersession_calls": ("Calls in the queue for workers.", ("agent", "state")),
    "intersession_workers": ("Workers that are alive.", ()),
    "intersession_standbys": ("Hosts that wait to take the writer's place.", ()),
    "intersession_doors": ("Hosts that follow the log and hand on what writes.", ()),
    "intersession_follower_lag_positions": ("Events that the door furthest behind has not read yet.", ()),
    "intersession_zombies": ("Calls that were given up and have not come back.", ("of",)),
}
"""Every gauge, with its help and its labels."""

_CALL_STATES: Final[Mapping[CallState, str]] = {
    "waiting": "waiting",
    "underWay": "under_way",
    "silent": "silent",
    "answered": "answered",
}

_RETRY: Final = "retry"
_Values = Mapping[str, float] | Mapping[tuple[str, ...], float]
"""The values of a metric by that of its label, or by those of all of them."""


class Metrics(Collector):
    """Counts events as they are committed, and reads the present state when it is scraped."""

    def __init__(self, system: SessionSystem) -> None:
        self._system = system
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._started: dict[str, int] = {}
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self._seconds = Histogram(
            "intersession_run_seconds",
            "How long attempts of runs took, from their start to their end.",
            buckets=_BUCKETS,
            registry=self.registry,
        )
        self.stop: Callable[[], None] = system.log.on_committed(self.take)

    def take(self, batch: Sequence[Recorded]) -> None:
        """Count a batch of committed events. Called on the writer's thread."""
        with self._lock:
            self._counts["intersession_commits", ""] += 1
            self._counts["intersession_events", ""] += len(batch)
            for recorded in batch:
                for part in facts.parts_of(recorded.event):
                    for name, label in _counted(part):
                        self._counts[name, label] += 1
                self._time(recorded)

    def text(self) -> bytes:
        """Return everything in Prometheus' text format. Reads the log's views: not for an event loop."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics but the histogram, as Prometheus' library asks for them."""
        with self._lock:
            counts = dict(self._counts)
        status = self._system.status()
        for kind, number in status["failures"].items():
            counts["intersession_failures", kind] = number
        for name, (words, labels) in COUNTERS.items():
            counter = CounterMetricFamily(name, words, labels=labels)
            for (counted, label), number in sorted(counts.items()):
                if counted == name:
                    counter.add_metric([label] if labels else [], number)
            if not labels and not counter.samples:
                counter.add_metric([], 0)
            yield counter
        now = self._now(status)
        for name, (words, labels) in GAUGES.items():
            gauge = GaugeMetricFamily(name, words, labels=labels)
            for of, number in now.get(name, {}).items():
                gauge.add_metric(([of] if isinstance(of, str) else of) if labels else (), number)
            yield gauge

    def _now(self, status: JsonObject) -> dict[str, _Values]:
        """Return the values of every gauge, by label; of a log that can't be read, of those that need not read it."""
        checkpoints = status["checkpoints"]
        return {
            "intersession_store_available": {"": float(status["store"]["available"])},
            "intersession_live_sessions": {"": status["liveSessions"]},
            "intersession_degraded": {"": len(status["degraded"])},
            "intersession_checkpoint_position": {"": checkpoints["position"] or 0},
            "intersession_checkpoint_age_seconds": {"": (checkpoints["ageMs"] or 0) / _MS},
            "intersession_checkpoint_new_events": {"": checkpoints["newEvents"]},
            "intersession_checkpoints_unpublished": checkpoints["unpublished"],
            "intersession_zombies": {"agents": status["zombies"], "channels": status["channelZombies"]},
            **({} if status["position"] is None else self._recorded(status)),
        }

    def _recorded(self, status: JsonObject) -> dict[str, _Values]:
        runs, deliveries, copy = self._system.service.runs, status["deliveries"], status["copy"]
        return {
            "intersession_log_position": {"": status["position"]},
            "intersession_copy_age_seconds": {} if copy is None else {"": copy["ageMs"] / _MS},
            "intersession_copy_behind_events": {} if copy is None else {"": copy["behind"]},
            "intersession_open_runs": {"queued": 0, "running": 0} | runs.open_by_status(),
            "intersession_parked_runs": {"": sum(status["parkedRuns"].values())},
            "intersession_open_deliveries": {
                "waiting": sum(deliveries["waiting"].values()),
                "retrying": sum(deliveries["retrying"].values()),
                "under_way": sum(deliveries["underWay"].values()),
            },
            "intersession_held_exchanges": {"": len(status["held"])},
            "intersession_held_calls": {"": len(status["heldCalls"])},
            **self._hosts(status["hosts"]),
        }

    def _hosts(self, hosts: HostsAnswer) -> dict[str, _Values]:
        # An agent without any call has a 0: a scaler can't tell a metric that is missing from a writer that is down.
        waiting: dict[str, float] = dict.fromkeys(self._system.config.agent_ids, 0)
        calls: dict[tuple[str, ...], float] = {}
        for each in hosts["calls"]:
            if each["kind"] == "agent":
                waiting[each["name"]] = each["waiting"] + each["parked"]
                for state, name in _CALL_STATES.items():
                    calls[each["name"], name] = each[state]
        return {
            "intersession_waiting_calls": waiting,
            "intersession_calls": calls,
            "intersession_workers": {"": len(hosts["workers"])},
            "intersession_standbys": {"": len(hosts["standbys"])},
            "intersession_doors": {"": len(hosts["doors"])},
            "intersession_follower_lag_positions": {
                "": max((door["lag"] or 0 for door in hosts["doors"]), default=0)
            },
        }

    def _time(self, recorded: Recorded) -> None:
        event = recorded.event
        if isinstance(event, facts.RunStarted) and len(self._started) < _MOST_RUNNING:
            self._started[event.run_id] = recorded.time
        elif isinstance(event, facts.RunAttempt) and event.status is not None:
            began = self._started.pop(event.run_id, None)
            if began is not None and event.ends is not None:
                self._seconds.observe(max(recorded.time - began, 0) / _MS)


def _counted(event: facts.Event) -> Iterator[tuple[str, str]]:
    """Yield the counters that an event moves, each with its label."""
    match event:
        case facts.RunAttempt(status=str() as status):
            yield "intersession_runs", status
            if isinstance(event, facts.RunFailed):
                yield "intersession_run_failures", event.code
        case facts.FlowAccepted():
            yield "intersession_sends" if event.begins == "exchange" else "intersession_spawns", ""
        case facts.SendRefused(code=code):
            yield "intersession_sends_refused", code
        case facts.FlowClosed(reason=reason):
            yield f"intersession_{event.ends}s_closed", reason
        case facts.DeliveryFact(state=state) if event.ends is not None:
            yield "intersession_deliveries", _RETRY if state == "retrying" else state
        case _:
            pass

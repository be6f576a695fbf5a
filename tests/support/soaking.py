"""What a process holds, by counts: what a soak compares. A count says the same on every machine, memory does not."""

import gc
import resource
import threading
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from intersession import SessionSystem
from intersession_actors.rules.disclosure.token_rules import token_rules
from intersession_events.facts import ChildArchived, Event, SpawnAccepted, topics_of

_OURS = "intersession"
_FILES = Path("/proc/self/fd")
_CONTAINERS = (dict, list, set, deque, bytearray)
BOUNDED = {
    # Each is a memory with a bound of its own, which a soak of some hundred rounds does not reach.
    "Head": 20_000,
    "Heads._known": 20_000,
    "KnownIds._durable": 20_000,
    "Pipeline._known": 4_000,
    "Message": 100_000,
    "_Kept.messages": 100_000,
    "_Kept.sizes": 100_000,
    "StreamHeads._parts": 65_536,
    # What a view behind the log has still to take in, and the names of what it is taking in.
    "CommitSubscription._committed": 2_000,
    "_Names._known": 2_000,
    "_Rows._rows": 200,
    # Those that were set off are swept together.
    "_Alarm": 256,
    "TimerWheel._alarms": 256,
}
"""What may still grow, and how far."""


def held() -> Counter[str]:
    """Count our objects by type, what stands in their containers, threads, open files, and results that are remembered."""
    gc.collect()
    found: Counter[str] = Counter()
    for each in gc.get_objects():
        kind = type(each)
        if str(kind.__module__).startswith(_OURS):
            found[kind.__qualname__] += 1
            for name, value in _attributes(each).items():
                if isinstance(value, _CONTAINERS):
                    found[f"{kind.__qualname__}.{name}"] += len(value)
        elif (
            kind.__qualname__ == "_lru_cache_wrapper"
            and str(each.__module__).startswith(_OURS)
            and each.cache_parameters()["maxsize"] is None  # else it has a bound of its own
        ):
            found["lru_cache"] += each.cache_info().currsize
    found["threads"] = threading.active_count()
    found["files"] = len(list(_FILES.iterdir())) if _FILES.exists() else 0
    return found


def grown(before: Mapping[str, int], after: Mapping[str, int], *, by: int) -> dict[str, int]:
    """Return what there is so many more of, beyond what a memory with a bound may take in. A pool may grow by a thread or two."""
    return {
        name: count - before.get(name, 0)
        for name, count in sorted(after.items())
        if count - before.get(name, 0) > by and count > BOUNDED.get(name, 0)
    }


def settled(system: SessionSystem, *, within: float = 600.0) -> None:
    """Wait until nothing is open, all sub-agents are archived and every session is asleep."""
    flows = system.service.flows

    def calm() -> bool:
        return (
            not (flows.open_exchanges() or flows.open_spawns() or flows.open_deliveries())
            and not system._parts.supervisor.live_sessions
            and _count(system, ChildArchived) == _count(system, SpawnAccepted)
        )

    until(calm, within=within)
    token_rules()  # the process reads them once, when the first text is looked through for secrets: the search does so later


def _count(system: SessionSystem, kind: type[Event]) -> int:
    """Count events of a kind, and hold none; the others of a long log would be read for nothing."""
    return sum(1 for _ in system.log.all(topics=topics_of(kind)))


def until(condition: Callable[[], object], *, within: float = 60.0) -> None:
    """Wait for a condition that nothing tells of."""
    end, pause = monotonic() + within, threading.Event()
    while not condition():
        if monotonic() > end:
            raise TimeoutError(f"not within {within} s")
        pause.wait(0.05)


def resident_bytes() -> int:
    """Return the memory of this process that is in use, as Linux counts it."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _attributes(each: object) -> dict[str, Any]:
    found = dict(getattr(each, "__dict__", {}))
    for kind in type(each).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            found.setdefault(name, getattr(each, name, None))
    return found

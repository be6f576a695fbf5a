"""How the logs of a fleet stand, as metrics in a file for Prometheus (FLEET-7)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from intersession.fleet.standing import LogStanding

_MS: Final = 1000

_OF_A_LOG: Final[Mapping[str, tuple[str, Callable[[LogStanding], float | None]]]] = {
    "up": ("1 if the log could be asked, and is the one that was added.", lambda one: not one.is_wrong),
    "has_writer": ("1 if a process writes the log.", lambda one: one.writer is not None),
    "position": ("The position of the last event.", lambda one: one.position),
    "last_event_timestamp_seconds": (
        "When the last event was recorded.",
        lambda one: None if one.last_event is None else one.last_event / _MS,
    ),
    "open_runs": ("Runs that wait or are under way.", lambda one: one.open_runs),
    "waiting_calls": ("Calls that no worker has taken.", lambda one: sum(one.waiting_calls.values())),
    "standbys": ("Hosts that wait to take the writer's place.", lambda one: one.standbys),
    "workers": ("Workers that are alive.", lambda one: one.workers),
    "problems": ("What `fleet status` names as wrong.", lambda one: len(one.problems)),
}
"""The gauges, with their help and their values. Their names begin with `intersession_fleet_`."""


def metrics_of(logs: Sequence[LogStanding]) -> bytes:
    """Return the metrics in Prometheus' text format: each with the label `log`. What is not known of a log is left out."""
    return "".join(_family(name, logs) for name in _OF_A_LOG).encode()


def _family(name: str, logs: Iterable[LogStanding]) -> str:
    said, value_of = _OF_A_LOG[name]
    whole = f"intersession_fleet_{name}"
    lines = [f"# HELP {whole} {said}", f"# TYPE {whole} gauge"]
    for one in logs:
        value = value_of(one)
        if value is not None and (one.position is not None or name in {"up", "problems"}):
            lines.append(f'{whole}{{log="{one.name}"}} {float(value)}')  # such a name needs no escapes
    return "\n".join(lines) + "\n"

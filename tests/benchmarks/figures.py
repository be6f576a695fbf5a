"""What a benchmark gives: figures, each beside the bare cost of the machine in the same run."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One number. `ratios` are what it is divided by that of the bare machine, or of another, by the name of that figure.

    `cpu_ms` is the processor time of one such, `kib` how many KiB it wrote, where that was measured.
    """

    benchmark: str
    name: str
    value: float
    unit: str
    cpu_ms: float | None = None
    kib: float | None = None
    ratios: Mapping[str, float] = msgspec.field(default_factory=dict[str, float])


def progress(said: str) -> None:
    """Say what a benchmark that takes minutes has done so far; its figures are printed at the end."""
    sys.stderr.write(f"  {said}\n")
    sys.stderr.flush()


def per_second(number: float, seconds: float) -> float:
    return number / max(seconds, 1e-9)


def quantile(samples: Sequence[float], share: float) -> float:
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def timed(work: Callable[[], Any], times: int) -> list[float]:
    """Return the milliseconds of each call."""
    samples: list[float] = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        samples.append((time.perf_counter() - began) * 1000)
    return samples


def worked(work: Callable[[], Any], times: int) -> list[float]:
    """Return the milliseconds of processor time of each call, in this thread: for work that waits for nobody."""
    samples: list[float] = []
    for _ in range(times):
        began = time.thread_time()
        work()
        samples.append((time.thread_time() - began) * 1000)
    return samples


def spread(
    benchmark: str,
    name: str,
    samples: Sequence[float],
    *,
    unit: str = "ms",
    against: Mapping[str, float] | None = None,
) -> list[Figure]:
    """Return the middle and the slow end of some samples; `against` are bare figures of the same unit, by name."""
    return [
        Figure(
            benchmark=benchmark,
            name=f"{name}, p{share}",
            value=value,
            unit=unit,
            ratios={bare: value / what for bare, what in (against or {}).items()},
        )
        for share, value in ((50, quantile(samples, 0.5)), (95, quantile(samples, 0.95)))
    ]


def table(figures: Sequence[Figure]) -> str:
    """Return the figures as a table of Markdown."""
    rows = [("benchmark", "what", "value", "", "cpu ms", "KiB", "against")]
    rows += [
        (
            figure.benchmark,
            figure.name,
            _number(figure.value),
            figure.unit,
            "" if figure.cpu_ms is None else _number(figure.cpu_ms),
            "" if figure.kib is None else _number(figure.kib),
            ", ".join(f"{_number(ratio)} of {against}" for against, ratio in figure.ratios.items()),
        )
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(7)]
    lines = ["| " + " | ".join(_padded(row, widths)) + " |" for row in rows]
    rule = "| " + " | ".join("-" * max(width, 3) for width in widths) + " |"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        text.rjust(max(width, 3)) if column in {2, 4, 5} else text.ljust(max(width, 3))
        for column, (text, width) in enumerate(zip(row, widths, strict=True))
    ]


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"

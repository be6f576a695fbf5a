"""The `budgets` part of a configuration: how much people, chats, agents and credentials may use (LIMIT)."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Final, Literal, NamedTuple

from intersession_actors.rules.config.settings import Count, Settings, Text

Per = Literal["person", "chat", "agent", "credential"]
What = Literal["runs", "tokens", "costMicros"]

HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class Limit(NamedTuple):
    """One limit of a budget: the setting's name, what is counted, over how many milliseconds, and the most of it."""

    setting: str
    what: What
    window_ms: int
    most: int


class Budget(Settings, frozen=True, kw_only=True):
    """What each person, chat, agent or credential may use within an hour and a day that end now; 0 is no limit.

    `match` are globs over their names; without any, it holds for all.
    """

    per: Per
    match: tuple[Text, ...] = ()
    runs_per_hour: Count = 0
    runs_per_day: Count = 0
    tokens_per_hour: Count = 0
    tokens_per_day: Count = 0
    cost_micros_per_hour: Count = 0
    cost_micros_per_day: Count = 0

    def holds_for(self, name: str) -> bool:
        """Whether the budget is this one's, by its name."""
        return not self.match or any(fnmatchcase(name, pattern) for pattern in self.match)

    def limits(self, named: str) -> Iterator[Limit]:
        """Yield the limits that are set, of the budget with a name."""
        limits: tuple[tuple[str, What, int, int], ...] = (
            ("runsPerHour", "runs", HOUR_MS, self.runs_per_hour),
            ("runsPerDay", "runs", DAY_MS, self.runs_per_day),
            ("tokensPerHour", "tokens", HOUR_MS, self.tokens_per_hour),
            ("tokensPerDay", "tokens", DAY_MS, self.tokens_per_day),
            ("costMicrosPerHour", "costMicros", HOUR_MS, self.cost_micros_per_hour),
            ("costMicrosPerDay", "costMicros", DAY_MS, self.cost_micros_per_day),
        )
        for setting, what, window_ms, most in limits:
            if most:
                yield Limit(f"budgets.{named}.{setting}", what, window_ms, most)

"""Asks a rule of the host's whether a text of an exchange may go on, outside of any actor (LIVE-1)."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from intersession_actors.failures import Reports, described
from intersession_actors.gate import plain_text, word_of
from intersession_actors.host import Call, HostsLoop, Inside, Outcome, Outside, Raised
from intersession_actors.runtime import Threads, Timers
from intersession_events.facts import HeldText

RULE_TIMEOUT_MS: Final = 60_000
"""So long a rule may take to say something; then the text is held."""
_POOL: Final = 4


class GoingOn(msgspec.Struct, frozen=True, kw_only=True):
    """A text of an exchange that is about to go on, as a host's rule is asked about it.

    `step` is `reply` for a text that goes to the other session (`to`), `announce` for one that goes to a channel (`channel`, None
    where there is nowhere to go). `turn` is the turn that the text is from: 0 for the reply of the first run. `speaker` said it; all
    three are session keys. `run_id` is the exchange's first run, by which it is named everywhere.
    """

    run_id: str
    exchange_id: str
    step: HeldText
    text: str
    speaker: str
    to: str | None
    channel: str | None
    turn: int
    requester: str | None
    target: str
    request: str


class Ruling(NamedTuple):
    """What a rule said. `note` is why, in its words, or in ours where it said nothing that can be understood."""

    holds: bool
    note: str | None = None


HoldRule = Callable[[GoingOn], bool | str | Awaitable[bool | str | None] | None]
"""Says whether a text is held: True, or a text that says why; False and None let it go on. Sync or async."""


class RuleCaller:
    """Calls the rule, and makes one ruling of whatever it does. A text is held where it is not known whether it may go on."""

    def __init__(
        self,
        rule: HoldRule,
        *,
        timers: Timers,
        reports: Reports,
        hosts_loop: HostsLoop | None = None,
        threads: Threads | None = None,
    ) -> None:
        self._rule = rule
        self._timers = timers
        self._reports = reports
        self._outside = Outside(pool_size=_POOL, name="hold-rule", hosts_loop=hosts_loop, threads=threads)

    def rules_on(
        self, hold_id: str, stream: str, going: GoingOn, done: Callable[[Ruling], None], *, inside: Inside
    ) -> None:
        """Ask about a text; `done` gets the ruling, once. Never blocks, never raises. The rule's code runs `inside` what is given."""
        timer = ("hold-rule", hold_id)

        def came(outcome: Outcome) -> None:
            self._timers.cancel(timer)
            ruling = _ruling(outcome)
            done(ruling if isinstance(ruling, Ruling) else self._failed(stream, ruling, inside))

        def give_up() -> None:
            if call.cancel():
                done(self._failed(stream, f"it has said nothing in {RULE_TIMEOUT_MS // 1000} s", inside))

        call = Call(came, _too_late)
        self._timers.after(RULE_TIMEOUT_MS, timer, give_up)
        self._outside.call(call, self._rule, going, inside=inside)

    def stop(self, timeout: float) -> None:
        """Ask nothing more. What is under way reports nothing that matters: the next start asks again."""
        self._outside.stop(timeout)

    def _failed(self, stream: str, error: str | BaseException, inside: Inside) -> Ruling:
        self._reports.tell("hold_rule_failed", stream=stream, error=error, inside=inside)
        said = described(error) if isinstance(error, BaseException) else error
        return Ruling(holds=True, note=word_of(f"the host's rule failed: {said}"))


def _ruling(outcome: Outcome) -> Ruling | BaseException | str:
    """Return what a rule said, or why that says nothing."""
    if isinstance(outcome, Raised):
        return outcome.error
    match outcome.value:
        case bool() as holds:
            return Ruling(holds)
        case None:
            return Ruling(holds=False)
        case str() as given if note := plain_text(given).strip():
            return Ruling(holds=True, note=word_of(note))
        case value:
            return f"it returned a {type(value).__name__}, not True, False, None or a text that says why"


def _too_late(_outcome: Outcome) -> None:
    """Nobody asks any more."""

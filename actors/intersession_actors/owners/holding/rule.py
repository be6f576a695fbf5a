"""Asks the host's rule whether a text of an exchange may go on, outside of any actor (LIVE-1)."""

from collections.abc import Callable
from typing import Final

from intersession_actors.rules.gate.texts import word_of
from intersession_actors.rules.gate.values import plain_text
from intersession_actors.rules.policy.holding import GoingOn, HoldRule, Ruling
from intersession_actors.running.failures.failure import described
from intersession_actors.running.failures.reports import Reports
from intersession_actors.running.host.calls import Call, Inside, Outcome, Outside, Raised
from intersession_actors.running.host.hosts_loop import HostsLoop
from intersession_actors.running.runtime.threads import Threads
from intersession_actors.running.runtime.timers import Timers

RULE_TIMEOUT_MS: Final = 60_000
"""How long a rule may take to answer; then the text is held."""
_POOL: Final = 4


class RuleCaller:
    """Calls the rule, and turns its every outcome into a ruling. In doubt, a text is held."""

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
        self._outside = Outside(
            pool_size=_POOL,
            name="hold-rule",
            hosts_loop=hosts_loop,
            threads=threads,
            blocking=reports.blocking,
        )

    def rules_on(
        self, hold_id: str, stream: str, going: GoingOn, done: Callable[[Ruling], None], *, inside: Inside
    ) -> None:
        """Ask about a text; `done` gets the ruling, once. Never blocks, never raises. The rule's code runs in the context `inside`."""
        timer = ("hold-rule", hold_id)

        def came(outcome: Outcome) -> None:
            self._timers.cancel(timer)
            ruling = _ruling(outcome)
            done(ruling if isinstance(ruling, Ruling) else self._failed(stream, ruling, inside))

        def give_up() -> None:
            if call.cancel():
                done(self._failed(stream, f"it has said nothing in {RULE_TIMEOUT_MS // 1000} s", inside))

        call = Call(came, _too_late, name="hold rule")
        self._timers.after(RULE_TIMEOUT_MS, timer, give_up)
        self._outside.call(call, self._rule, going, inside=inside)

    def stop(self, timeout: float) -> None:
        """Ask no more. Running calls are ignored: the next start asks again."""
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
    """Do nothing: no caller waits any more."""

"""What can have happened to a scheduled job: set, fired, missed. Stream `schedule:<job id>` (CRON)."""

from typing import ClassVar, Final, Literal

from intersession_events.basics.times import moment
from intersession_events.facts.base import Fact, Remark, Root, Whole
from intersession_events.facts.words import Frame, Words

__all__ = ["ScheduleEvent", "ScheduleFired", "ScheduleMissed", "ScheduleSet", "WhyMissed"]

WhyMissed = Literal["down", "past", "busy", "refused"]

_WHY: Final[dict[WhyMissed, str]] = {
    "down": "nobody was there to run it",
    "past": "its time had passed when the job was set",
    "busy": "its last run was not over",
    "refused": "its run was refused",
}


class ScheduleSet(Fact, frozen=True, kw_only=True):
    """A job is so from here on: earlier times of it are no longer due.

    `schedule` is the source text of its JSON in the configuration; None where the job is gone. A job that is not `enabled` in
    the configuration, or `paused` by somebody, is never due. `by` is who paused it or resumed it; None for the configuration.
    """

    topic: ClassVar[str] = "schedule_set.1"
    origin: ClassVar[Root] = "start"

    job_id: str
    schedule: str | None = None
    enabled: bool = True
    paused: bool = False
    by: str | None = None

    def in_words(self, at: Frame) -> Words:
        if self.schedule is None:
            how = "is gone from the configuration"
        elif self.paused:
            how = "is paused"
        else:
            how = f"is set: {self.schedule}" if self.enabled else "is disabled"
        return Words(self.by, None, f"{self.job_id} {how}")


class ScheduleFired(Fact, frozen=True, kw_only=True):
    """A job was due at `due_ms`, and its run is queued in the same append (CRON-2).

    `set_at` is the version of the `ScheduleSet` that it follows. `missed` is how many earlier times this run stands for, which
    passed while nobody was there. `by` ran it out of turn; None where its time had come.
    """

    topic: ClassVar[str] = "schedule_fired.1"
    origin: ClassVar[Root] = "timer"

    job_id: str
    due_ms: Whole
    set_at: Whole
    run_id: str
    session_key: str
    missed: Whole = 0
    by: str | None = None

    def in_words(self, at: Frame) -> Words:
        more = f", and for {self.missed} times before" if self.missed else ""
        return Words(
            self.by, self.session_key, f"{self.job_id}, due {moment(self.due_ms)}{more}: {self.run_id}"
        )


class ScheduleMissed(Fact, frozen=True, kw_only=True):
    """Times of a job, the last one `due_ms`, passed without a run, and there will be none for them.

    `times` is their number, at most 10,000. `error` says why its run was refused. `set_at` as in `ScheduleFired`.
    """

    topic: ClassVar[str] = "schedule_missed.1"
    origin: ClassVar[Root] = "timer"

    job_id: str
    due_ms: Whole
    set_at: Whole
    reason: WhyMissed
    times: Whole = 1
    error: Remark | None = None

    def in_words(self, at: Frame) -> Words:
        times = "" if self.times == 1 else f", {self.times} times"
        why = _WHY[self.reason] if self.error is None else f"{_WHY[self.reason]}: {self.error}"
        return Words(None, None, f"{self.job_id}, due {moment(self.due_ms)}{times}: {why}")


ScheduleEvent = ScheduleSet | ScheduleFired | ScheduleMissed

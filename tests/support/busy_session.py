"""A session that is told at random what happens next, and the order in which its agent takes the messages."""

from intersession_events.facts import (
    Event,
    Message,
    MessageRecorded,
    Role,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunInterrupted,
    RunQueued,
    RunStarted,
)


class Busy:
    """A session that is told at random what to do next; what can't happen then is left out."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.taken: list[str] = []
        self.waiting: list[tuple[str, str]] = []
        self.running: str | None = None
        self.attempts: dict[str, int] = {}
        self._number = 0

    def _message(self, run_id: str | None = None, *, role: Role = "user") -> Message:
        self._number += 1
        said = f"m{self._number}"
        return Message(id=said, role=role, content=said, timestamp=self._number, run_id=run_id)

    def _record(self, message: Message) -> None:
        self.events.append(MessageRecorded(session_id="s", message=message))
        self.taken.append(message.id)

    def note(self) -> None:
        """A message that no run answers."""
        self._record(self._message())

    def ask(self) -> None:
        message = self._message()
        run_id = f"r{self._number}"
        self.events.append(RunQueued(run_id=run_id, session_id="s", step="message", message=message))
        self.waiting.append((run_id, message.id))

    def start(self) -> None:
        if self.running is None and self.waiting:
            self.running, said = self.waiting.pop(0)
            attempt = self.attempts.get(self.running, 0) + 1
            self.attempts[self.running] = attempt
            self.events.append(RunStarted(run_id=self.running, attempt=attempt, context_hash="h"))
            if attempt == 1:
                self.taken.append(said)

    def speak(self) -> None:
        if self.running is not None:
            self._record(self._message(self.running, role="assistant"))

    def complete(self) -> None:
        if self.running is not None:
            attempt = self.attempts[self.running]
            self.events.append(RunCompleted(run_id=self.running, attempt=attempt))
            self.running = None

    def answer(self) -> None:
        if self.running is not None:
            last = self._message(self.running, role="assistant")
            self.events.append(
                RunCompleted(
                    run_id=self.running,
                    attempt=self.attempts[self.running],
                    session_id="s",
                    message=last,
                    message_is_reply=True,
                )
            )
            self.taken.append(last.id)
            self.running = None

    def fail(self) -> None:
        if self.running is not None:
            attempt = self.attempts[self.running]
            self.events.append(RunFailed(run_id=self.running, attempt=attempt, code="backend", error="no"))
            self.running = None

    def cut_off(self) -> None:
        if self.running is not None:
            self.events.append(RunInterrupted(run_id=self.running, attempt=self.attempts[self.running]))
            self.waiting.insert(0, (self.running, ""))
            self.running = None

    def abort_a_waiting_one(self) -> None:
        if self.waiting:
            run_id, said = self.waiting.pop()
            self.events.append(RunAborted(run_id=run_id, attempt=0, by="operator"))
            if said:
                self.taken.append(said)

    @property
    def shown(self) -> list[str]:
        return self.taken + [said for _run_id, said in self.waiting if said]


STEPS = [
    Busy.note,
    Busy.ask,
    Busy.ask,
    Busy.start,
    Busy.start,
    Busy.speak,
    Busy.complete,
    Busy.answer,
    Busy.fail,
    Busy.cut_off,
    Busy.abort_a_waiting_one,
]

"""The errors of facts and of the log, as callers see them.

* IntersessionError
  - InvalidKey
  - LogError
    + UnknownTopic
      · UnknownWord
    + CorruptEvent
      · ForgedTopic (also an UnknownTopic)
    + NotStorable
    + AppendConflict
    + StoreUnavailable
      · StoreLocked
      · StoreFull
      · StoreBusy
      · ForkedStoreError
      · WriterSuperseded
      · LogRewound
      · NoSuchStore
    + NotALog
      · AlteredLog
    + LogTooNew
    + WorkRefused
  - BadCheckpoint
  - BadKey
  - BackupFailed
  - BundleFailed
  - ExportFailed
  - ForkFailed
  - ImportFailed
  - MigrationFailed
  - MissingExtra
"""


class Picklable(Exception):
    """An error that can be copied and pickled, with its message and its fields, whatever its `__init__` takes."""

    def __reduce__(self) -> tuple[object, ...]:
        """Tell how a copy is made: Python's own way would pass the finished message to `__init__` in place of its arguments."""
        return _again, (type(self), self.args), self.__dict__


def _again(kind: type[Picklable], said: tuple[object, ...]) -> Picklable:
    return kind.__new__(kind, *said)


class IntersessionError(Picklable):
    """Base of every error a caller may want to catch. Each can be copied, and pickled for another process."""


class MissingExtra(IntersessionError, ImportError):
    """A feature needs an extra that is not installed. `extra` is its name."""

    def __init__(self, what: str, library: str, extra: str) -> None:
        super().__init__(f"{what} needs {library}: pip install 'intersession[{extra}]'")
        self.extra = extra


class BadCheckpoint(IntersessionError, ValueError):
    """Not a valid checkpoint or proof. The message says which line and what is wrong."""


class BadKey(IntersessionError, ValueError):
    """A key that should sign checkpoints, prove their signatures, or decrypt a log can't be used. The message says why."""


class InvalidKey(IntersessionError, ValueError):
    """A string is not a session key. The message says what is wrong and what a key looks like."""


class LogError(IntersessionError):
    """Base of everything that is wrong with the log or its store."""

    position: int | None = None
    """The place in the log of the row that could not be read, where it was one row: read on after it."""


class UnknownTopic(LogError):
    """A row has a topic that this version does not know. Nothing was imported or run."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"unknown topic {topic!r}: not written by this version; nothing was imported")
        self.topic = topic


class UnknownWord(UnknownTopic):
    """An event of a known topic holds a word that this version does not know: a later version wrote it."""

    def __init__(self, topic: str, reason: str) -> None:
        LogError.__init__(
            self, f"topic {topic}: {reason}: a later version of this package wrote it; read it with that one"
        )
        self.topic = topic


class CorruptEvent(LogError):
    """A row can't be read, or its hash does not match its content and its neighbours."""


class ForgedTopic(UnknownTopic, CorruptEvent):
    """A row has an unknown topic and a wrong hash: it was changed, and not written by a newer version."""


class NotStorable(LogError, ValueError):
    """An event can't be stored in a form that could be read again: the caller's fault, and no retry helps."""


class AppendConflict(LogError):
    """Another writer appended to the stream first; read it again and decide again."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(f"{stream}: expected version {expected}, found {actual}")
        self.stream = stream
        self.expected = expected
        self.actual = actual


class StoreUnavailable(LogError):
    """The store can't be reached or refuses to write. Nothing was acknowledged; try again."""


class StoreLocked(StoreUnavailable):
    """Another process writes this log, or this process by another system (`is_here`). `holder` names it, as far as it is known."""

    def __init__(self, path: str, holder: str, *, is_here: bool = False) -> None:
        super().__init__(
            f"{path} is open for writing in this process already ({holder}): use the system that has it, or close that one first"
            if is_here
            else f"{path} has a writer already ({holder}); stop it, or use its gateway"
        )
        self.path = path
        self.holder = holder
        self.is_here = is_here


class StoreFull(StoreUnavailable):
    """There is no space left. Reading still works; writing works again once space is freed."""


class StoreBusy(StoreUnavailable):
    """Too many appends wait already. Nothing was queued; try again in a moment."""


class ForkedStoreError(StoreUnavailable):
    """The process was forked after the store was opened; open it again in the child."""


class WriterSuperseded(StoreUnavailable):
    """A later writer has taken the log, so this one may not write any more (its epoch is over)."""

    def __init__(self, mine: int, now: int) -> None:
        super().__init__(
            f"the log is at epoch {now}, this writer's was {mine}: another one took over; open it again"
        )
        self.mine = mine
        self.now = now


class LogRewound(StoreUnavailable):
    """The server that answers lacks what was acknowledged: it is an earlier primary, or a standby that was behind when it was promoted.

    Nothing is written to it. A writer goes on by itself once it reaches the server that has it all.
    """

    def __init__(self, position: int) -> None:
        super().__init__(
            f"the event at position {position}, which was acknowledged, is not in the log that answers now: an earlier primary, or a "
            "standby that was promoted without it. Nothing is written there; name the server that has it, or, if it is lost, open "
            "the log again"
        )
        self.position = position


class NoSuchStore(StoreUnavailable):
    """A store's URL names a kind of store, or a file, that is not here."""

    def __init__(self, url: str, hint: str) -> None:
        super().__init__(f"no store at {url!r}: {hint}")
        self.url = url


class NotALog(LogError):
    """The file is not a log, or a copy that lost the log's identity (a dump)."""


class AlteredLog(NotALog):
    """The tables of a log were altered from outside, so that nothing may be written to it; `verify` says how."""


class LogTooNew(LogError):
    """A newer version wrote the log: it can't be read here if the format is newer, else it can't be written."""


class WorkRefused(LogError):
    """A worker asked the queue of calls for what it may not have, or said what no queue takes. The message says what to do."""


class BackupFailed(IntersessionError):
    """A log can't be copied to a file, or the copy is not what it should be. Nothing was left there."""


class LogRewritten(BackupFailed):
    """A log is not any more what a copy of it has: it was cut, rewritten, or goes on otherwise. The copy is as it was."""


class BundleFailed(IntersessionError):
    """A bundle could not be made: its file is in the way or can't be written, or the log is in memory. Nothing was left behind."""


class ExportFailed(IntersessionError):
    """A directory can't be exported to, or what should be exported is not there."""


class ForkFailed(IntersessionError):
    """A part of a log can't be made a log of its own. Nothing was left there."""


class MigrationFailed(IntersessionError):
    """A log can't be moved to another store, or what was moved is not what it should be. The source is as it was."""


class ImportFailed(IntersessionError):
    """A directory to be imported is not what it should be."""


class Sealed(IntersessionError, RuntimeError):
    """Code asked for the outside world in a sealed replay, which has only what was recorded; the error names the code (SEAL-1)."""

    def __init__(self, who: str, what: str) -> None:
        super().__init__(f"{who} asked for {what}: a sealed replay has only what was recorded")
        self.who = who
        self.what = what

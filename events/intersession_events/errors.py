"""What can go wrong with facts and the log, as a caller sees it.

* IntersessionError
  - InvalidKey
  - LogError
    + UnknownTopic
    + CorruptEvent
    + AppendConflict
    + StoreUnavailable
      · StoreLocked
      · StoreFull
      · ForkedStoreError
    + NotALog
    + LogTooNew
  - ImportFailed
"""


class IntersessionError(Exception):
    """Base of every error a caller may want to catch."""


class InvalidKey(IntersessionError, ValueError):
    """A string is no session key. The message says what is wrong and what a key looks like."""


class LogError(IntersessionError):
    """Base of everything that is wrong with the log or its store."""


class UnknownTopic(LogError):
    """A row has a topic that this version does not know. Nothing was imported or run."""

    def __init__(self, topic: str) -> None:
        super().__init__(f"unknown topic {topic!r}: not written by this version; nothing was imported")
        self.topic = topic


class CorruptEvent(LogError):
    """A row can't be read or does not hash to what its neighbours say."""


class AppendConflict(LogError):
    """Somebody else wrote to the stream first; read it again and decide again."""

    def __init__(self, stream: str, expected: int, actual: int) -> None:
        super().__init__(f"{stream}: expected version {expected}, found {actual}")
        self.stream = stream
        self.expected = expected
        self.actual = actual


class StoreUnavailable(LogError):
    """The store can't be reached or refuses to write. Nothing was acknowledged; try again."""


class StoreLocked(StoreUnavailable):
    """Another process is the writer of this file. `holder` says which, as far as it told."""

    def __init__(self, path: str, holder: str) -> None:
        super().__init__(f"{path} has a writer already ({holder}); stop it, or use its gateway")
        self.path = path
        self.holder = holder


class StoreFull(StoreUnavailable):
    """There is no space left. Reading still works; writing works again once space is freed."""


class ForkedStoreError(StoreUnavailable):
    """The process was forked after the store was opened; open it again in the child."""


class NotALog(LogError):
    """The file is something else, or a copy that lost the log's identity (a dump)."""


class LogTooNew(LogError):
    """The log was written by a newer version; it can be read here but not written."""


class ImportFailed(IntersessionError):
    """A directory to be imported is not what it should be."""

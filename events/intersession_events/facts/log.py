"""What can have happened to the log as a whole: opened, configured, imported into, told something by a channel.

Streams `log`, `import:<id>` and `inbound:<id>`.
"""

from intersession_events.facts.base import Fact


class LogOpened(Fact, frozen=True, kw_only=True):
    """A writer took the log; `epoch` fences every earlier one."""

    epoch: int
    version: str


class ConfigLoaded(Fact, frozen=True, kw_only=True):
    """A configuration came into force: its SHA-256 and its text, secrets left out."""

    digest: str
    config: str


class ImportReported(Fact, frozen=True, kw_only=True):
    """What an import found, and what it left out and why (IMP-1). `report` is the source text of a JSON object."""

    import_id: str
    source: str
    sessions: int
    messages: int
    inter_session: int
    exchanges: int
    spawns: int
    skipped: int
    report: str


class InboundTaken(Fact, frozen=True, kw_only=True):
    """A channel's message that starts no run was recorded in a session, and never will be again (INB-1).

    Its stream is named after the id of the run that the channel's own id stands for, and holds nothing else: a message that
    is told twice meets it there, however long ago the first time was.
    """

    session_key: str
    message_id: str


SystemEvent = LogOpened | ConfigLoaded | ImportReported | InboundTaken

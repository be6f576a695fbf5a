"""Facts about access: who asked to see or reach what, and what the answer was.

Stream `access:<requester key>`, `access:operator`, or `access:credential:<name>` where a limited credential acted as no
session.
"""

from collections.abc import Mapping
from typing import ClassVar

from intersession_events.facts.base import ERASED_OBJECT, Fact, Source, Whole
from intersession_events.facts.words import Frame, Words

__all__ = ["AccessEvent", "AccessRecorded", "SendRefused"]


class Access(Fact, frozen=True, kw_only=True):
    """A call that was judged.

    `credential` is the name of the limited credential of a caller over the network, acting as `requester` or as none of its
    sessions.
    """

    requester: str | None
    credential: str | None = None

    @property
    def doer(self) -> str | None:
        return self.requester or (f"credential:{self.credential}" if self.credential else "operator")


class AccessRecorded(Access, frozen=True, kw_only=True):
    """The decisions of one call (VIS-4): counts by verdict, digest of the keys returned, denied targets.

    `filters` is the source text of the call's arguments as a JSON object, `denied` has pairs of a target, as it was typed,
    and a reason. `tool` is the tool, or the method. `door` is the credential of the host that handed the call on (DOOR-2).
    """

    topic: ClassVar[str] = "access_recorded.1"

    tool: str
    filters: Source = "{}"
    allowed: Whole = 0
    denied_count: Whole = 0
    keys_digest: str | None = None
    denied: tuple[tuple[str, str], ...] = ()
    door: str | None = None

    def left_of_sources(self) -> Mapping[str, str | None]:
        return {"filters": "{}" if self.filters == "{}" else ERASED_OBJECT}

    def in_words(self, at: Frame) -> Words:
        brief = f"{self.tool}: {self.allowed} allowed, {self.denied_count} denied"
        return Words(self.doer, None, brief)


class SendRefused(Access, frozen=True, kw_only=True):
    """A guard of the causal chain, or a cycle of waits, refused a send (LOOP-5, SEND-10).

    So it does all else that would carry the chain on: `tool` names it. `limit` is the setting, `value` the amount used of
    the `allowed`; `root` is the run that the chain began with, `chain` its sessions.
    """

    topic: ClassVar[str] = "send_refused.1"

    target: str
    code: str
    limit: str
    value: Whole
    chain: tuple[str, ...] = ()
    tool: str = "sessions_send"
    allowed: Whole = 0
    root: str | None = None

    def in_words(self, at: Frame) -> Words:
        brief = f"{self.tool}: {self.code}, {self.limit} is {self.value}"
        return Words(self.doer, self.target, brief)


AccessEvent = AccessRecorded | SendRefused

"""Texts of runs that flows pass on: a text is stored where it was sent and received, and a flow's stream names the run."""

from collections.abc import Collection
from typing import Final, Protocol

import msgspec

from intersession_events.basics.errors import Picklable


class Replies(Protocol):
    """The texts of runs, by their ids."""

    def asked(self, run_id: str) -> str:
        """Return a run's input."""
        ...

    def reply(self, run_id: str) -> str:
        """Return a run's reply."""
        ...


class RunTexts(msgspec.Struct, frozen=True):
    """A run's input and its reply; None for a missing or unknown one."""

    asked: str | None = None
    reply: str | None = None


_UNKNOWN: Final = RunTexts()


class TextsUnread(Picklable):
    """The texts of a run are not at hand; have them read (`Mail.texts_of`), and decide again."""

    def __init__(self, run_id: str) -> None:
        super().__init__(f"the texts of run {run_id} are not read yet")
        self.run_id = run_id


class Texts:
    """The texts of a flow's runs, as far as commands brought them or the log was read."""

    def __init__(self) -> None:
        self._of: dict[str, RunTexts] = {}

    def take(self, run_id: str, texts: RunTexts) -> None:
        """Store a run's texts; a None changes nothing."""
        known = self._of.get(run_id)
        self._of[run_id] = (
            texts
            if known is None
            else RunTexts(
                known.asked if texts.asked is None else texts.asked,
                known.reply if texts.reply is None else texts.reply,
            )
        )

    def keep(self, run_ids: Collection[str]) -> None:
        """Drop the texts of all runs but some."""
        self._of = {run_id: texts for run_id, texts in self._of.items() if run_id in run_ids}

    def asked(self, run_id: str) -> str:
        """Return a run's input.

        Raises:
            TextsUnread: it is not at hand.
        """
        return self._text(run_id, self._of.get(run_id, _UNKNOWN).asked)

    def reply(self, run_id: str) -> str:
        """Return a run's reply.

        Raises:
            TextsUnread: it is not at hand.
        """
        return self._text(run_id, self._of.get(run_id, _UNKNOWN).reply)

    def _text(self, run_id: str, text: str | None) -> str:
        if text is None:
            raise TextsUnread(run_id)
        return text

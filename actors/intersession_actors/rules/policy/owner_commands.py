"""The commands of an owner in a chat about its session: its settings, its summary (POL-2, QUEUE-1, CTX-6). Pure."""

from typing import NamedTuple, get_args

from intersession_actors.rules.config.messages import QueueMode
from intersession_actors.rules.policy.sending import parse_send_command
from intersession_events.facts import SessionPatched


class OwnerCommand(NamedTuple):
    """A setting with its new value (None: as configured), and the answer to the owner."""

    setting: str
    value: str | None
    answer: str

    def patch(self, by: str) -> SessionPatched:
        """Return the change of the session's settings."""
        if self.value is None:
            return SessionPatched(cleared=(self.setting,), by=by)
        return SessionPatched(values={self.setting: self.value}, by=by)


def parse_compact(text: str) -> str | None:
    """Return what an owner's `/compact`, `/compact WISH` wishes of the summary, empty for nothing; None if it is text (CTX-6)."""
    word, _, wish = text.strip().partition(" ")
    return wish.strip() if word == "/compact" else None


def parse_owner_command(text: str) -> OwnerCommand | None:
    """Return the command that a message is, and nothing else; None if it is text.

    Ask only for a message of a person who is an owner: from anybody else, and from a session, the same words are text.
    """
    send = parse_send_command(text)
    if send is not None:
        word = {"allow": "on", "deny": "off", "inherit": "as configured"}[send]
        return OwnerCommand(
            "sendPolicy", None if send == "inherit" else send, f"Sending from this session is {word}."
        )
    word, *mode = text.split()[:3] or [""]
    if word != "/queue" or len(mode) != 1:
        return None
    if mode[0] in get_args(QueueMode):
        return OwnerCommand("queueMode", mode[0], f"Messages to this session wait by {mode[0]}.")
    if mode[0] in {"default", "reset"}:
        return OwnerCommand("queueMode", None, "Messages to this session wait as configured.")
    return None

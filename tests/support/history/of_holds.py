"""What exchanges that were held owe those who held them and let them go on (LIVE-1)."""

from collections import Counter
from collections.abc import Iterator

from intersession_events.facts import AnnounceDecided, ExchangeHeld, ExchangeReleased, HoldRequested
from support.history.evidence import Evidence


def holds_end_once(evidence: Evidence) -> Iterator[str]:
    """LIVE-1: what is held is let go on once, before anything else is held, and nothing is let go on that was not held."""
    for items in evidence.flows("exchange:"):
        held: str | None = None
        for item in items:
            match item.event:
                case ExchangeHeld(hold_id=hold_id):
                    if held is not None:
                        yield f"#{item.position} holds {items[0].stream}, which is held"
                    held = hold_id
                case ExchangeReleased(hold_id=hold_id):
                    if held != hold_id:
                        yield f"#{item.position} lets {hold_id} go on, and {held} is held"
                    held = None
                case _:
                    pass


def holds_stop_once(evidence: Evidence) -> Iterator[str]:
    """LIVE-1: an order stops an exchange once, save one that wants every text, and the host's rule, which sees each."""
    for items in evidence.flows("exchange:"):
        asked, stopped = 0, Counter[tuple[str, str]]()
        for item in items:
            match item.event:
                case HoldRequested():
                    asked += 1
                case ExchangeHeld(before=before, source=source, order=order):
                    if before == "every-turn" or source == "rule":
                        continue
                    stopped[source, order] += 1
                    if stopped[source, order] > (asked if source == "run" else 1):
                        yield f"#{item.position} holds {items[0].stream} once more by {source} {order}"
                case _:
                    pass


def edits_go_on(evidence: Evidence) -> Iterator[str]:
    """LIVE-1: an announce that was held and edited goes out in the words of whoever edited it, and in his name."""
    for items in evidence.flows("exchange:"):
        edited: ExchangeReleased | None = None
        step = ""
        for item in items:
            match item.event:
                case ExchangeHeld(step=step):
                    edited = None
                case ExchangeReleased(action="edit") as released if step == "announce":
                    edited = released
                case AnnounceDecided(text=text, edited_by=by) if edited is not None:
                    if (text, by) != (edited.text, edited.by):
                        yield f"#{item.position} announces {text!r} by {by}, and {edited.by} wrote {edited.text!r}"
                case _:
                    pass

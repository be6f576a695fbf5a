"""What exchanges that were held owe those who held them and let them go on (LIVE-1)."""

from collections import Counter
from collections.abc import Iterator

from intersession_events.facts import (
    AnnounceDecided,
    ExchangeAccepted,
    ExchangeClosed,
    ExchangeHeld,
    ExchangeReleased,
    HoldRequested,
    HoldWithdrawn,
    LoopEnded,
    TurnRequested,
)
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


def orders_are_done(evidence: Evidence) -> Iterator[str]:
    """LIVE-1: no text goes on before which its exchange was to be held, and what is let go on goes on as it was said."""
    for items in evidence.flows("exchange:"):
        accepted = items[0].event
        orders = _Orders(accepted.settings.hold if isinstance(accepted, ExchangeAccepted) else "off")
        for item in items:
            if (wrong := orders.take(item.event)) is not None:
                yield f"#{item.position} {wrong}"


class _Orders:
    """What is to be held of one exchange, and what was said of the text that is let go on."""

    def __init__(self, setting: str) -> None:
        self._wanted = {"setting": setting, "run": "off"}
        self._held: ExchangeHeld | None = None
        self._said: ExchangeReleased | None = None

    def take(self, event: object) -> str | None:
        """Take an event in; return what is wrong with it."""
        match event:
            case HoldRequested(before=before):
                self._wanted["run"] = before
            case HoldWithdrawn():
                self._wanted["run"] = "off"
            case ExchangeHeld():
                self._held = event
                if event.before != "every-turn" and event.source in self._wanted:
                    self._wanted[event.source] = "off"
            case ExchangeReleased():
                self._said = event
                if event.for_good:
                    self._wanted = dict.fromkeys(self._wanted, "off")
            case TurnRequested() | LoopEnded() | AnnounceDecided() | ExchangeClosed():
                return self._goes_on(event)
            case _:
                pass
        return None

    def _goes_on(self, event: TurnRequested | LoopEnded | AnnounceDecided | ExchangeClosed) -> str | None:
        held, said, self._held, self._said = self._held, self._said, None, None
        if held is None or said is None:
            step = "reply" if isinstance(event, TurnRequested) else "announce"
            goes_on = step == "reply" or (isinstance(event, AnnounceDecided) and event.why == "text")
            wanted = {"every-turn", "next", step} & set(self._wanted.values())
            return f"goes on, and was to be held before {wanted}" if goes_on and wanted else None
        why = event.why if isinstance(event, AnnounceDecided) else getattr(event, "reason", None)
        ends = {("reply", "end"): "ended"}.get((held.step, said.action), "dropped")
        if (said.action in {"drop", "end"}) != (why in {"dropped", "ended"}) or (
            said.action in {"drop", "end"} and why != ends
        ):
            return f"follows {said.action} of {held.step} as {why}"
        return None

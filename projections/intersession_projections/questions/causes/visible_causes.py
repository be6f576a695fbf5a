"""The nearest cause that is shown, in a story that leaves events out. Pure."""

from intersession_events.log.recorded import Recorded


class VisibleCauses:
    """Remembers the causes of events as they come, in log order."""

    def __init__(self) -> None:
        self._causes: dict[str, str | None] = {}
        self._shown: dict[str, int] = {}

    def take(self, recorded: Recorded) -> int | None:
        """Take an event in; return the position of the nearest shown event that led to it."""
        self.pass_over(recorded)
        return self._nearest(recorded.causation)

    def pass_over(self, recorded: Recorded) -> None:
        """Take in an event that is not shown."""
        self._causes[recorded.id] = recorded.causation

    def show(self, recorded: Recorded) -> None:
        """Note that an event is shown."""
        self._shown[recorded.id] = recorded.position

    def show_as(self, event_id: str, position: int) -> None:
        """Note that an event is not shown, because the event at this position says the same."""
        self._shown.setdefault(event_id, position)

    def _nearest(self, event_id: str | None) -> int | None:
        shown = self._shown.get(event_id or "")
        if shown is not None:
            return shown  # nearly always it is the first
        seen: set[str] = set()
        while event_id is not None and event_id not in seen:
            if event_id in self._shown:
                return self._shown[event_id]
            seen.add(event_id)
            event_id = self._causes.get(event_id)
        return None

"""The parts of a flow while its events are read: outlines are made of them. Pure."""

from intersession_events.basics.plain_json import JsonValue
from intersession_events.log.recorded import Recorded
from intersession_projections.questions.differences.parts import Part


class Draft:
    """A part that is being made, of the events that it takes in."""

    def __init__(self, name: str, at: Recorded, likeness: str = "") -> None:
        self.name = name
        self.likeness = likeness
        self.position = at.position
        self.fields: dict[str, JsonValue] = {}
        self.sessions: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.events = [at]
        self.parts: list[Draft | Part] = []

    def saw(self, recorded: Recorded, *, moves: bool = True) -> None:
        """Take an event in; where it moves, the part is complete behind it."""
        self.events.append(recorded)
        if moves:
            self.position = recorded.position

    def part(self) -> Part:
        """Return the part as it is now, with those in it."""
        return Part(
            name=self.name,
            position=self.position,
            likeness=self.likeness,
            fields={name: value for name, value in self.fields.items() if value is not None},
            sessions=self.sessions,
            ids=self.ids,
            events=tuple(sorted(self.events, key=lambda recorded: recorded.position)),
            parts=tuple(part.part() if isinstance(part, Draft) else part for part in self.parts),
        )

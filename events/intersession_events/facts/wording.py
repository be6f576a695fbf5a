"""Every event in words, what follows in it as well: timelines, stories, diagrams and places read from this. Pure.

A step shows an event in brief, by the names that are stored; a story tells it in a sentence; a place says what it is and how
all stands then. They stand side by side on the event's class.
"""

from collections.abc import Sequence
from typing import Final

from intersession_events.facts.parts import Deciding, parts_of
from intersession_events.facts.registry import Event
from intersession_events.facts.spawn import RunAsked
from intersession_events.facts.words import Frame, Words

__all__ = ["words_of"]

_BARE: Final = Frame()


def words_of(event: Event, at: Frame = _BARE) -> Words:
    """Return an event in words. What follows in it is told in brief."""
    if isinstance(event, Deciding) and event.then is not None:
        return _together([(part, part.in_words(at)) for part in parts_of(event)])
    return event.in_words(at)


def _together(parts: Sequence[tuple[Event, Words]]) -> Words:
    """Return what an event begins with, and what follows in it, in words. How all stands is told without what it asks for."""
    found = [words for _, words in parts]
    after = [words.after for part, words in parts if words.after and not isinstance(part, RunAsked)]
    return found[0]._replace(
        to=next((words.to for words in found if words.to), None),
        brief="; ".join(words.brief for words in found),
        step=", and ".join(words.step for words in found if words.step),
        after=after[-1] if after else "",
    )

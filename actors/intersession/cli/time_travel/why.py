"""`intersession why`: what led to an event, what it led to, and why things ended, were refused or reached nobody."""

from typing import Annotated, cast

from cyclopts import Parameter

from intersession.cli.host.asked import Asked, asks
from intersession.cli.shell.answer import Answer
from intersession.cli.story.names import names_of
from intersession.cli.story.reasons import show_effects, show_why
from intersession_actors.debugger import WHY, EffectsAnswer, WhyAnswer
from intersession_events.plain_json import JsonObject
from intersession_events.stores import has_writer


@asks(WHY, of="EVENT|PLACE", forks=["of"])
def why(
    asked: Asked[WhyAnswer | EffectsAnswer],
    *,
    steps: Annotated[
        bool, Parameter(help="Every event, also those by which a text was only carried.")
    ] = False,
) -> Answer:
    """Say why something is so: what led to it, which rule ended it.

    The causes go back over all sessions to a person, a call, a timer or a start. What ended, was refused or reached nobody is
    explained: the rule, what it looked at and who set that, and what would have changed it. Of an exchange, a spawn or a run,
    everything of that is. --forward shows what came of it instead.
    """
    with asked.answered() as (found, view):
        at_work, names = has_writer(view.log), names_of(view.log, found)
        value: JsonObject = {**found}
    if "forward" in asked.given:
        effects = cast("EffectsAnswer", value)
        return Answer(value, lambda screen: show_effects(screen, effects, names, steps=steps))
    answer = cast("WhyAnswer", value)
    return Answer(value, lambda screen: show_why(screen, answer, names, steps=steps, at_work=at_work))

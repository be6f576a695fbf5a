"""`intersession why`: what led to an event, what it led to, and why things ended, were refused or reached nobody."""

from typing import Annotated, cast

from cyclopts import Parameter

from intersession.cli.host import in_fork, reader_of
from intersession.cli.shell import READING, Answer, Reading
from intersession.cli.story import names_of, show_effects, show_why
from intersession_actors.debugger import Debugger, EffectsAnswer, View, WhyAnswer
from intersession_events.stores import has_writer


def why(
    of: Annotated[
        str,
        Parameter(
            name="EVENT|PLACE",
            help="An event, by its position, its id or as any place (RUN@turn:2); or an exchange, a spawn, a run or a delivery.",
        ),
    ],
    /,
    *,
    forward: Annotated[
        bool, Parameter(help="What it led to, as a tree, and what of that is still open.")
    ] = False,
    steps: Annotated[
        bool, Parameter(help="Every event, also those by which a text was only carried.")
    ] = False,
    reading: Reading = READING,
) -> Answer:
    """Say why something is so: what led to it, which rule ended it.

    The causes go back over all sessions to a person, a call, a timer or a start. What ended, was refused or reached nobody is
    explained: the rule, what it looked at and who set that, and what would have changed it. Of an exchange, a spawn or a run,
    everything of that is. --forward shows what came of it instead.
    """
    inside, named = in_fork(reading, of)
    with reader_of(inside) as reader:
        found = Debugger(View(reader)).call("why", {"of": named(of), "forward": forward})
        at_work, names = has_writer(reader.log), names_of(reader.log, found)
    if forward:
        effects = cast("EffectsAnswer", found)
        return Answer(found, lambda screen: show_effects(screen, effects, names, steps=steps))
    answer = cast("WhyAnswer", found)
    return Answer(found, lambda screen: show_why(screen, answer, names, steps=steps, at_work=at_work))

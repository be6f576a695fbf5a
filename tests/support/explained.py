"""The explanations of a log, by the kind of the event that they are of."""

from typing import Any

from intersession import SessionSystem
from intersession_actors.hindsight.explaining.explained import Explaining
from intersession_actors.hindsight.explaining.explanation import Explanation
from intersession_actors.hindsight.replaying.redeciding.deciding_again import redecided_all
from intersession_actors.hindsight.replaying.redeciding.sources import Sources
from intersession_events.log.recorded import parts_in


def explained(system: SessionSystem, kind: type[Any]) -> list[Explanation]:
    """Explain all events of a kind, and all that follow in one."""
    explaining = Explaining(system.service.reader)
    return [
        one
        for item in parts_in(system.log.all())
        if isinstance(item.event, kind)
        for one in explaining.of(item)
    ]


def decided_alike(system: SessionSystem) -> bool:
    """Whether today's rules decide all of a system's log as it was decided."""
    return all(one.is_same for one in redecided_all(Sources(system.log.log_id, system.log.all())))

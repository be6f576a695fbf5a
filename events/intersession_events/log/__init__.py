"""The log as its users see it: what is appended and read, the envelope of a stored event, and the proof that nothing was changed."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_events.log.log import Log
    from intersession_events.log.recorded import Recorded
    from intersession_events.log.sql import Sql
    from intersession_events.log.verifying.verification import head, verify_log

on_demand(globals())

__all__ = ["Log", "Recorded", "Sql", "head", "verify_log"]

"""What writes exports, loaded when it is first asked for: a host that only runs agents needs none of it."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_actors.hindsight.exporting.export import ExportMade, ExportTo, ExportWanted, export

on_demand(globals())

__all__ = ["ExportMade", "ExportTo", "ExportWanted", "export"]

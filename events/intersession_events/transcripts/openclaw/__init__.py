"""Imports an OpenClaw state directory into a log, and writes transcripts in its format."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_events.transcripts.openclaw.export import entry_line, header_line, iso, kept_line
    from intersession_events.transcripts.openclaw.importing import OnTaken, import_openclaw
    from intersession_events.transcripts.openclaw.reading import read_state, strip_stamp
    from intersession_events.transcripts.openclaw.report import ImportReport

__all__ = [
    "ImportReport",
    "OnTaken",
    "entry_line",
    "header_line",
    "import_openclaw",
    "iso",
    "kept_line",
    "read_state",
    "strip_stamp",
]

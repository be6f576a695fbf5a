"""Where transcripts are mirrored, for who writes them and for who only says where they are (LIST-5)."""

from pathlib import Path

from intersession_events.log import Log
from intersession_events.store_url import MEMORY


def mirror_directory(log: Log, *, wanted: bool | None) -> Path | None:
    """Return where transcripts are mirrored: beside a log that is a file, unless `transcripts.mirror` is off."""
    path = getattr(log, "path", MEMORY)
    if wanted is False or path == MEMORY:
        return None
    return Path(path).parent / "transcripts"

"""Exports sessions in another system's form, by the settings in force (EXP-1); for `SessionSystem` and the command line."""

from collections.abc import Collection
from pathlib import Path

from intersession_actors.calls.service.reader import Reader
from intersession_actors.calls.service.resolve import resolve_target
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.progress import Progress
from intersession_events.stores.opened import check_clear
from intersession_projections.copies.openclaw_state.exporting import (
    ExportReport,
    StateSettings,
    export_openclaw,
)


def export_state(
    reader: Reader,
    directory: Path,
    *,
    as_of: int | str | None = None,
    sessions: Collection[str] = (),
    progress: Progress | None = None,
) -> ExportReport:
    """Write sessions as an OpenClaw state directory, as they stood at a position or a time.

    `sessions` are those to write, each by its key in any form or a session id; all of the log if none is named.

    Raises:
        ExportFailed: the directory is not empty or can't be written.
        ToolRefused: there is no such session, position or time.
        CorruptEvent: a row of the log can't be read.
        BadKey: the log is kept encrypted, and its keys are not at hand.
    """
    check_clear(reader.log)
    position = reader.log.head() if as_of is None else reader.place(as_of).position
    config = reader.config
    return export_openclaw(
        reader.log,
        directory,
        settings=StateSettings(
            default_agent=config.default_agent,
            main_key=config.session.main_key,
            scope=config.session.scope,
            agents=config.agent_ids,
        ),
        at=position,
        keys={_named(reader, text, position) for text in sessions} or None,
        progress=progress,
    )


def _named(reader: Reader, text: str, position: int) -> str:
    found = resolve_target(reader, reader.requester(None), text, "history", as_of=position, field="session")
    if found.row is None:
        raise ToolRefused("not_visible", f"session: session not visible: {text}")
    return found.row.key

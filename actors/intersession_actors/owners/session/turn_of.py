"""Makes the turn of an attempt from what its session's stream says: in the log's writer, and in a worker (WORK-11).

The tools, the record and the files are handed in: each process has its own.
"""

from collections.abc import Callable

from intersession_actors.outside.agents.turn import Recorder, ToolBox, Turn
from intersession_actors.outside.attachments.workspaces import OwnFiles
from intersession_actors.owners.session.state import Running
from intersession_actors.rules.prompt.fitting import context_shown
from intersession_actors.rules.prompt.transcript import RunContext
from intersession_events.basics.keys.key import SessionKey
from intersession_events.log.files import ReadsFiles


def turn_of(
    key: str,
    running: Running,
    context: RunContext,
    *,
    tools: ToolBox,
    recorder: Recorder,
    store: ReadsFiles | None,
    pieces: Callable[[str], None],
    takes_images: Callable[[], bool],
    own_files: Callable[[], OwnFiles],
    forked: bool = False,
) -> Turn:
    """Return the turn of the attempt under way in the session of a key, with the context that it began with."""
    run = running.waiting.queued
    return Turn(
        agent_id=SessionKey.recorded(key).agent_id,
        session_key=key,
        step=run.step,
        asked=context.message,
        run_id=run.run_id,
        transcript=context.transcript,
        context=context_shown(context.system_context, running.fit),
        whole_context=context.system_context,
        context_tokens=running.context_tokens,
        fit=running.fit,
        summary=None if context.summary is None else context.summary.text,
        refused=running.waiting.refused,
        tools=tools,
        attempt=running.attempt,
        deadline=running.deadline_ms or None,
        model=running.model,
        thinking=running.thinking,
        settings=running.settings,
        partial=context.partial,
        held_before=running.held_before,
        forked=forked,
        begun=(context.version + 1, context.hash),
        recorder=recorder,
        _store=store,
        _pieces=pieces,
        _takes_images=takes_images,
        _own_files=own_files,
    )

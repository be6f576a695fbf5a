"""A log with a session of every kind, said in every way there is: what the doors are asked about."""

from pathlib import Path
from typing import Any

from intersession_events.facts import (
    ImageBlock,
    Message,
    Provenance,
    Route,
    RouteChanged,
    RunAborted,
    RunQueued,
    RunStarted,
    SessionArchived,
    SessionPatched,
    SessionReset,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    Usage,
)
from support import hostile
from support.doors.gateway_live import GATEWAY
from support.oracle import uuid
from support.running import merged
from support.story import PERSON, Story

MAIN, OPS, RESEARCH = "agent:main:main", "agent:ops:main", "agent:research:main"
DESK, BOARD = "agent:ops:desk", "agent:main:board"
GROUP = "agent:main:telegram:group:-100"
TOPIC = "agent:main:telegram:group:-100:topic:7"
PEER = "agent:main:matrix:group:!AbC:hs.org"
CRON, HOOK, NODE = "agent:main:cron:nightly", "agent:main:hook:build", "agent:main:node-kitchen"


CHILD, GRANDCHILD, STRANGER, SIBLING = (f"agent:main:subagent:{uuid(n)}" for n in (1, 2, 3, 4))
GONE = "agent:main:gone"

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"

CONFIG: dict[str, Any] = merged(
    GATEWAY,
    {
        "gateway": {"tools": {"allow": ["sessions_send", "sessions_spawn"]}},
        "agents": {
            "defaults": {"subagents": {"allowAgents": ["ops"]}},
            "list": [
                {"id": "main", "default": True, "name": "Front"},
                {"id": "ops"},
                {"id": "research", "subagents": {"allowAgents": ["*"]}},
            ],
        },
        # Receipts would move the position that an answer names from one door's call to the next.
        "audit": {"access": "off"},
        "tools": {
            "sessions": {"visibility": "tree"},
            "subagents": {"tools": {"alsoAllow": ["group:sessions"]}},
        },
        "runs": {"shutdownGraceSeconds": 0},
    },
)
"""Each session sees its tree; nobody reaches another agent's."""


SESSIONS: dict[str, dict[str, Any]] = {
    MAIN: {},
    OPS: {"label": "desk"},
    RESEARCH: {},
    DESK: {"label": "desk"},
    BOARD: {"label": "board \N{SNOWMAN}"},
    GROUP: {"chat_type": "group", "channel": "telegram", "display_name": "Ops room"},
    TOPIC: {"chat_type": "group", "channel": "telegram"},
    PEER: {"chat_type": "group", "channel": "matrix"},
    CRON: {},
    HOOK: {},
    NODE: {},
    CHILD: {"spawned_by": MAIN, "spawn_depth": 1, "opened_by": "spawn"},
    GRANDCHILD: {"spawned_by": CHILD, "spawn_depth": 2, "opened_by": "spawn"},
    STRANGER: {"spawned_by": BOARD, "spawn_depth": 1, "opened_by": "spawn", "sandboxed": True},
    SIBLING: {"spawned_by": BOARD, "spawn_depth": 1, "opened_by": "spawn", "sandboxed": True},
    GONE: {},
}
SESSION_IDS = {key: uuid(number) for number, key in enumerate(SESSIONS, 100)}
SEVENTH_QUESTION = f"m{len(SESSIONS) + 14}"
"""The id of a message to main: an event and a message have a number each, and two of them make a pair."""
NEW_PAGE = uuid(901)
"""The generation of the board that began with its reset."""


def full_house(place: Path | str) -> Story:
    """Return the log's story, told to its end."""
    story = Story(place)
    for key, fields in SESSIONS.items():
        story.open(key, session_id=SESSION_IDS[key], **fields)
    _talk(story)
    return story


def _talk(story: Story) -> None:
    def say(key: str, *args: Any, **fields: Any) -> str:
        return story.say(key, *args, session_id=SESSION_IDS[key], **fields)

    story.put(
        f"session:{MAIN}",
        RouteChanged(
            route=Route(channel="telegram", to="42", account="a", thread="9"),
            display_name="Ann",
            chat_type="direct",
        ),
    )
    for number in range(12):
        say(MAIN, f"question {number}", provenance=PERSON)
        say(
            MAIN,
            (TextBlock(text=f"answer {number}"),),
            role="assistant",
            model="m",
            usage=Usage(input=5, output=7),
        )
    say(
        MAIN,
        (
            ThinkingBlock(thinking="let me see", thinking_signature="c2ln"),
            ImageBlock(data="iVBORw0KGgo=", mime_type="image/png"),
            ToolCallBlock(id="c1", name="shell", arguments=f'{{"cmd":"curl -H \'Bearer {SECRET}\'"}}'),
        ),
        role="assistant",
    )
    say(MAIN, (TextBlock(text=f"API_KEY={SECRET}"),), role="toolResult", tool_call_id="c1", tool_name="shell")
    say(
        CHILD,
        f"my key is {SECRET}",
        provenance=Provenance(
            kind="inter_session",
            source_session_key=MAIN,
            source_tool="sessions_spawn",
            exchange_id="x",
            turn=0,
            hops=1,
        ),
    )
    say(CHILD, "x" * 4_001, role="assistant")
    for number in range(30):
        say(GRANDCHILD, f"{number}: " + "y" * 3_990, role="assistant")
    for row in (*hostile.rows("R"), *hostile.rows("P", field="message")):
        say(BOARD, str(hostile.given(row)), provenance=PERSON)
    for key in (OPS, RESEARCH, DESK, GROUP, TOPIC, PEER, CRON, HOOK, NODE, STRANGER, GONE):
        say(key, f"hello {key}", provenance=PERSON)
    story.put(
        f"session:{GROUP}",
        SessionPatched(
            values={
                "sendPolicy": "deny",
                "label": "room",
                "thinkingLevel": "high",
                "verboseLevel": "on",
                "model": "p/m",
            }
        ),
    )
    story.put(f"session:{BOARD}", SessionReset(session_id=NEW_PAGE, previous_session_id=SESSION_IDS[BOARD]))
    story.say(BOARD, "a new page", session_id=NEW_PAGE)
    story.put(f"session:{GONE}", SessionArchived(session_id=SESSION_IDS[GONE], reason="deleted"))
    _runs(story)


def _runs(story: Story) -> None:
    research = SESSION_IDS[RESEARCH]
    waits = Message(id="m-waiting", role="user", content="wait here", timestamp=story.clock.now)
    stream = f"session:{RESEARCH}"
    queued = RunQueued(run_id="waiting", session_id=research, step="message", message=waits)
    desk = SESSION_IDS[DESK]
    stopped = Message(id="m-stopped", role="user", content="stop here", timestamp=story.clock.now)
    story.put(
        f"session:{DESK}",
        RunQueued(run_id="stopped", session_id=desk, step="message", message=stopped),
        RunStarted(run_id="stopped", attempt=1, context_hash="h"),
        RunAborted(run_id="stopped", attempt=1, by="ann", partial="half a"),
    )
    story.put(stream, queued)

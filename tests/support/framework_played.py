"""Runs one page's agent of a framework in a ping-pong, against an endpoint of this process: `python framework_played.py FILE`.

FILE has the code of the page, which makes `clerk`. Prints what happened as JSON. It runs in the environment of the framework.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from intersession import MemoryChannel, SessionSystem
from intersession_actors.hindsight.forking.carrying import carry_on
from intersession_events.facts import LoopEnded, RunCompleted, ToolCallBlock, text_of
from support.endpoint import Said, an_endpoint, calling
from support.running import all_said, recorded

SEES_ALL = {"tools": {"sessions": {"visibility": "all"}, "agentToAgent": {"enabled": True}}}


def texts(request: Said) -> list[str]:
    """Return the messages of a request and what its calls gave, in either API."""
    found: list[str] = []
    for item in request.get("messages") or request["input"]:
        content = item.get("content") if "content" in item else item.get("output")
        if isinstance(content, list):
            content = "".join(part.get("text", "") for part in content)
        if item.get("role") != "system":
            found.append(content or "")
    return found


def say(request: Said) -> Said:
    """Answer as a model would that looks the order up, asks the other agent, and is content."""
    said = texts(request)
    last = said[-1]
    told = [item["content"] for item in request.get("messages", []) if item["role"] == "system"]
    system = f"{request.get('instructions')} {told}"
    is_reply_turn = "REPLY_SKIP" in system
    if "ANNOUNCE_SKIP" in system:
        return {"content": "ANNOUNCE_SKIP"}
    if is_reply_turn:
        return {"content": "REPLY_SKIP" if "turn 2" in system else "Thank you, ops."}
    if last == "Order 7 is paid." and any("Ask ops as well" in one for one in said):
        target = {"sessionKey": "agent:ops:main", "message": "How does order 7 stand?", "timeoutSeconds": 20}
        return calling("sessions_send", target, "send_1")
    if last == "Order 7 is paid.":
        return {"content": "It is paid, says ops."}
    if '"reply"' in last:
        return {"content": f"Both say paid: {json.loads(last)['reply']}"}
    return calling("look_up", {"order": 7}, f"look_{len(said)}")


def played(clerk: Any) -> Said:  # the page's agent
    """Have one agent of the kind ask another one; return what happened."""
    agents, channels = {"main": clerk, "ops": clerk}, {"telegram": MemoryChannel()}
    with SessionSystem(":memory:", agents=agents, channels=channels, config=SEES_ALL) as system:
        answer = system.inbound(
            channel="telegram", chat_id="42", sender="ann", text="Is order 7 paid? Ask ops as well.", wait=60
        )
        carry_on(system.service, "", timeout=60)
        return {
            "answer": answer.get("reply") or answer.get("error"),
            "calls": {agent: calls_of(system, f"session:agent:{agent}:main") for agent in agents},
            "loops": [one.reason for one in recorded(system, LoopEnded)],
            "used": [
                run.usage is not None and min(run.usage.input, run.usage.output) > 0
                for run in recorded(system, RunCompleted)
            ],
        }


def calls_of(system: SessionSystem, stream: str) -> list[tuple[str, str | None]]:
    """Return the calls in a session with their results."""
    messages = [one.message for one in all_said(system, stream)]
    results = {one.tool_call_id: text_of(one) for one in messages if one.tool_call_id}
    blocks = [block for one in messages if not isinstance(one.content, str) for block in one.content]
    return [(block.name, results.get(block.id)) for block in blocks if isinstance(block, ToolCallBlock)]


def main() -> None:
    """Run the page."""
    page = Path(sys.argv[1])
    with an_endpoint() as endpoint:
        endpoint.say = say
        os.environ |= {
            "OPENAI_BASE_URL": endpoint.url,
            "OPENAI_API_KEY": "none",
            "OPENAI_AGENTS_DISABLE_TRACING": "1",
            "LANGSMITH_TRACING": "false",
        }
        names: dict[str, Any] = {}
        exec(compile(page.read_text(encoding="utf-8"), str(page), "exec"), names)  # noqa: S102 - a page of ours
        told = played(names["clerk"])
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main()

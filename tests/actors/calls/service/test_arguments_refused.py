"""What is wrong with a tool's arguments is said of the field, with what to do instead."""

from typing import Any

import pytest

from intersession import SessionSystem


@pytest.mark.clause("LIST-1", "SPAWN-1")
@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        (
            "sessions_list",
            {"kinds": ["group", "rooms"]},
            "kinds[1]: invalid enum value 'rooms', give one of main, group, cron, hook, node, other",
        ),
        (
            "sessions_list",
            {"kinds": "group"},
            "kinds: expected array | null, got string, give it as that type",
        ),
        ("sessions_list", {"limit": "3"}, "limit: expected number | null, got string, give it as that type"),
        (
            "sessions_spawn",
            {"task": "x", "mode": "for ever"},
            "mode: invalid enum value 'for ever', give one of run, session",
        ),
        (
            "sessions_spawn",
            {"task": "x", "attachments": [{"name": "a", "content": "b", "encoding": "hex"}]},
            "attachments[0].encoding: invalid enum value 'hex', give one of utf8, base64",
        ),
        ("sessions_spawn", {"task": 3}, "task: expected string, got integer, give it as that type"),
    ],
)
def test_a_refusal_of_a_value_says_what_to_give_instead(
    tool: str, arguments: dict[str, Any], error: str
) -> None:
    with SessionSystem(":memory:") as system:
        answer = system.tools().call(tool, arguments)

    assert answer == {"status": "error", "code": "invalid_request", "error": error}

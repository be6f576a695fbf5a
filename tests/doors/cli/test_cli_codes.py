"""What programs read is codes: prose for people stands in fields of its own, or is not there."""

import re
from typing import Any

import pytest

from support.doors.command_line import DemoLog, ran

CODES = {
    "kind",
    "state",
    "status",
    "closeReason",
    "loopEnd",
    "errorCode",
    "purpose",
    "pending",
    "code",
    "archived",
    "level",
}


def fields(value: Any) -> list[tuple[str, Any]]:
    """Return all fields of a document, however deep, but for those of stories, which are told in words."""
    match value:
        case dict():
            own = [(name, item) for name, item in value.items() if name not in {"beats", "steps"}]
            return [*own, *(found for _, item in own for found in fields(item))]
        case list():
            return [found for item in value for found in fields(item)]
        case _:
            return []


@pytest.mark.parametrize(
    "command",
    [("runs",), ("messages", "--why", "--delivered"), ("deliveries",), ("replay", "EXCHANGE")],
    ids=" ".join,
)
def test_json_says_in_codes_how_it_stands(demo_log: DemoLog, command: tuple[str, ...]) -> None:
    """Before: `inWords` was prose among the codes."""
    tokens = [demo_log.exchange if token == "EXCHANGE" else token for token in command]
    found = fields(ran(*tokens, "--store", demo_log.path, "--json").json)

    assert "inWords" not in dict(found)
    codes = [value for name, value in found if name in CODES]
    assert codes
    assert [code for code in codes if not re.fullmatch("[a-z_]+", str(code))] == []

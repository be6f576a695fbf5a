"""The reference of the configuration names every key and its default, and none that does not exist."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.config.read import read_config_file
from intersession_actors.rules.config.settings import Settings
from support.paths import DOCS, ROOT

DOC = (DOCS / "reference" / "configuration.md").read_text(encoding="utf-8")


def defaults(shape: type[Settings], path: str = "") -> dict[str, str]:
    """Return the default of every key below, as the reference writes it."""
    found: dict[str, str] = {}
    for field in msgspec.structs.fields(shape):
        here = f"{path}.{field.encode_name}" if path else field.encode_name
        inner: Any = get_args(field.type)[0] if get_origin(field.type) is tuple else field.type
        if isinstance(inner, type) and issubclass(inner, Settings):
            found |= defaults(inner, here if inner is field.type else f"{here}[]")
        else:
            found[here] = written(field)
    return found


def written(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT:
        if field.default_factory is msgspec.NODEFAULT:
            return "required"
        return f"`{json.dumps(field.default_factory())}`"
    return "none" if field.default is None else f"`{json.dumps(field.default)}`"


def test_the_reference_has_every_key_with_its_default_and_no_other() -> None:
    used = DOC.partition("## Keys of the original that mean nothing here")[0]
    documented = dict(re.findall(r"^\| `([\w.\[\]]+)` \| (none|required|`.*?`) \| ", used, re.MULTILINE))

    assert documented == defaults(Config)


def test_the_example_of_the_reference_loads(tmp_path: Path) -> None:
    file = tmp_path / "example.json5"
    file.write_text(DOC.split("```json5\n")[1].split("```")[0], encoding="utf-8")

    config, notices = load_config(file, variables={"GATEWAY_TOKEN": "t"})

    assert config.tools.sessions.visibility == "all"
    assert notices == ()
    assert read_config_file(file)["gateway"]["auth"]["token"] == "${GATEWAY_TOKEN}"


def names(shape: type[Settings], seen: set[type]) -> Iterator[str]:
    """Yield the name of every setting, as the sources have it."""
    seen.add(shape)
    for field in msgspec.structs.fields(shape):
        yield field.name
        for inner in (field.type, *get_args(field.type)):
            if isinstance(inner, type) and issubclass(inner, Settings) and inner not in seen:
                yield from names(inner, seen)


def test_every_setting_is_read_somewhere() -> None:
    """Before: a key that no code reads belongs to those that are accepted and not used."""
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "actors").rglob("*.py"))

    unread = [name for name in names(Config, set()) if not re.search(rf"\.{name}\b", sources)]
    assert unread == []


def test_a_setting_that_does_nothing_is_named_at_the_start() -> None:
    """Before: `gateway.controlUi.enabled` did nothing and nobody said so."""
    notices = load_config({"gateway": {"controlUi": {"enabled": False, "basePath": "/ui"}}}).notices

    assert notices == ("accepted and not used here: gateway.controlUi.basePath",)


def test_the_default_of_thinking_is_what_an_agent_without_its_own_gets() -> None:
    """Before: `thinkingDefault` did nothing."""
    agents = {
        "defaults": {"thinkingDefault": "low"},
        "list": [{"id": "ops", "thinkingDefault": "high"}, {"id": "main"}],
    }
    config = load_config({"agents": agents}).config

    assert [config.thinking_of(agent) for agent in ("ops", "main", "else")] == ["high", "low", "low"]

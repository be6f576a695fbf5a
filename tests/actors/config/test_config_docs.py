"""The reference of the configuration names every key and its default, and none that does not exist."""

import json
import re
from pathlib import Path
from typing import Any, get_args, get_origin

import msgspec

from intersession_actors.config import Config, load_config, read_config_file
from intersession_actors.config.settings import Settings
from support.paths import DOCS

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
    documented = dict(re.findall(r"^\| `([\w.\[\]]+)` \| (none|required|`.*?`) \| ", DOC, re.MULTILINE))

    assert documented == defaults(Config)


def test_the_example_of_the_reference_loads(tmp_path: Path) -> None:
    file = tmp_path / "example.json5"
    file.write_text(DOC.split("```json5\n")[1].split("```")[0], encoding="utf-8")

    config, notices = load_config(file, variables={"GATEWAY_TOKEN": "t"})

    assert config.tools.sessions.visibility == "all"
    assert notices == ()
    assert read_config_file(file)["gateway"]["auth"]["token"] == "${GATEWAY_TOKEN}"

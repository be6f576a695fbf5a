"""The keys of the original's configuration, from the schema that it prints of it.

    openclaw config schema | python tests/support/openclaw/settings.py > tests/data/openclaw_keys/2026.9.6.json

A key is an object of the keys in it; `*` stands for any name, `[]` for the items of a list. Of channels, whose settings
are looked through for restrictions at any depth, there are the names alone; plugins are left out.
"""

import json
import sys
from typing import Any, Final

_CHOICES: Final = ("anyOf", "oneOf", "allOf")

Tree = dict[str, "Tree"]


def keys_of(schema: dict[str, Any]) -> Tree:
    """Return the keys of a JSON schema."""
    found: Tree = {}
    for name, inner in schema.get("properties", {}).items():
        found[name] = keys_of(inner)
    for choice in (choice for word in _CHOICES for choice in schema.get(word, [])):
        _merge(found, keys_of(choice))
    for place, word in (("*", "additionalProperties"), ("[]", "items")):
        inner = keys_of(schema[word]) if isinstance(schema.get(word), dict) else {}
        if inner:
            _merge(found.setdefault(place, {}), inner)
    return found


def _merge(into: Tree, other: Tree) -> None:
    for name, inner in other.items():
        _merge(into.setdefault(name, {}), inner)


def names_in(tree: Tree) -> set[str]:
    """Return all names of a tree."""
    return {name for key, inner in tree.items() for name in (key, *names_in(inner))}


def main() -> None:
    """Print the keys."""
    tree = keys_of(json.load(sys.stdin))
    tree["plugins"] = {}
    tree["channels"] = {name: {} for name in names_in(tree["channels"])}
    json.dump(tree, sys.stdout, separators=(",", ":"), sort_keys=True)


if __name__ == "__main__":
    main()

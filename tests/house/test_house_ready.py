"""What something is decoded or converted to is known to msgspec before there are threads (`fact.ready`).

Threads that have msgspec 0.22 learn one struct at the same time crash the interpreter: with eight that decode their first
event at once, every fourth process died of it.
"""

import ast
import re
from collections.abc import Iterator

from intersession_events.facts import registry
from support.paths import ROOT

DECODING = {"read_arguments", "from_text", "convert", "decode"}


CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)
SPEAKING = re.compile(rf"\b({'|'.join(DECODING)}|ready)\b")


def decoded_to(call: ast.Call) -> Iterator[str]:
    """Find the names of what a call decodes or converts to."""
    if own_name(call.func) not in DECODING:
        return  # to write every call out takes long
    match ast.unparse(call.func):
        case "read_arguments":
            given = call.args[:1]
        case "msgspec.convert":
            given = call.args[1:2]
        case "msgspec.json.decode":
            given = [keyword.value for keyword in call.keywords if keyword.arg == "type"]
        case _:
            given = []
    yield from (own_name(kind) for kind in given if isinstance(kind, ast.Name | ast.Attribute))


def own_name(named: ast.expr) -> str:
    """Return a name without its module: `ready` of `facts.ready`."""
    match named:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def test_every_struct_that_is_decoded_to_is_ready() -> None:
    sources = [
        path.read_text(encoding="utf-8")
        for folder in ("actors", "events", "projections")
        for path in sorted((ROOT / folder).rglob("*.py"))
    ]
    classes = {name for source in sources for name in CLASS.findall(source)}
    ready, used = set[str](), set[str]()
    for node in (
        node for source in sources if SPEAKING.search(source) for node in ast.walk(ast.parse(source))
    ):
        match node:
            case ast.ClassDef() if "ready" in map(own_name, node.decorator_list):
                ready.add(node.name)
            case ast.Call():
                used.update(decoded_to(node))
            case _:
                pass

    assert used & ready, "none is found"
    assert used & classes <= ready


def test_every_event_is_ready() -> None:
    assert set(registry._DECODERS) == set(registry.TOPICS)

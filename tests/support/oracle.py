"""Who may see whom, said independently of the product: thirty lines, and two families to ask about (X1)."""

import itertools
from typing import Any

from support.story import Story

VISIBILITIES = ("self", "tree", "agent", "all")
FORMS = ("canonical", "display", "session_id", "label")
RELATIONS = ("self", "child", "grandchild", "parent", "sibling", "same", "listed", "unlisted")


def oracle(*, visibility: str, sandboxed: bool, clamp: str, across: bool, relation: str, form: str) -> str:
    """Say what the clauses say (VIS-2, VIS-5, HIST-6): allowed, forbidden, or not visible."""
    if sandboxed and clamp == "spawned" and visibility != "self":
        visibility = "tree"
    if relation == "self":
        return "allowed"
    other_agent = relation in {"listed", "unlisted"}
    if other_agent:
        if visibility == "all" and across and relation == "listed":
            return "allowed"
        # A closed agent is named as such only where the caller named it; an id or a label would tell what exists.
        return "forbidden" if form in {"canonical", "display"} else "not_visible"
    if visibility == "self":
        return "not_visible"
    if relation in {"child", "grandchild"}:
        return "allowed"
    return "allowed" if visibility in {"agent", "all"} else "not_visible"


def uuid(number: int) -> str:
    return f"{number:08x}-0000-4000-8000-000000000000"


def subagent(number: int) -> str:
    return f"agent:main:subagent:{uuid(number)}"


FAMILY = {
    sandboxed: {
        "parent": f"agent:main:parent{int(sandboxed)}",
        "self": subagent(1 + 10 * sandboxed),
        "sibling": subagent(2 + 10 * sandboxed),
        "child": subagent(3 + 10 * sandboxed),
        "grandchild": subagent(4 + 10 * sandboxed),
        "same": "agent:main:telegram:group:-100",
        "listed": "agent:research:main",
        "unlisted": "agent:ops:main",
    }
    for sandboxed in (False, True)
}
SPAWNED_BY = {"self": "parent", "sibling": "parent", "child": "self", "grandchild": "child"}

CONFIGURATIONS = list(itertools.product(VISIBILITIES, (False, True), ("spawned", "all"), (False, True)))

SESSION_IDS: dict[str, str] = {}
for _family in FAMILY.values():
    for _key in _family.values():
        SESSION_IDS.setdefault(_key, uuid(100 + len(SESSION_IDS)))


def label(key: str) -> str:
    """Return the label of a session."""
    return f"label of {key}"


def tell(story: Story) -> None:
    """Open two families of sessions, one of them sandboxed; each session has heard something."""
    opened: set[str] = set()
    for sandboxed, family in FAMILY.items():
        for relation, key in family.items():
            if key in opened:
                continue
            opened.add(key)
            spawner = SPAWNED_BY.get(relation)
            story.open(
                key,
                session_id=SESSION_IDS[key],
                label=label(key),
                spawned_by=family[spawner] if spawner is not None else None,
                sandboxed=sandboxed and relation in {"parent", *SPAWNED_BY},
            )
            story.say(key, "hello", session_id=SESSION_IDS[key])


def configuration(visibility: str, clamp: str, *, across: bool) -> dict[str, Any]:
    """Return the configuration of one combination."""
    return {
        "tools": {
            "sessions": {"visibility": visibility},
            "agentToAgent": {"enabled": across, "allow": ["main", "research"]},
        },
        "agents": {
            "defaults": {"sandbox": {"sessionToolsVisibility": clamp}},
            "list": [{"id": "main"}, {"id": "research"}, {"id": "ops"}],
        },
    }

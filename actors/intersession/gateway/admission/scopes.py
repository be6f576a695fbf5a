"""The scope that each method or tool needs.

`operator.admin` includes all the others but `copy` and `door`, `operator.write` includes `operator.read`; `operator.approvals`,
`operator.fork`, `worker`, `copy` and `door` stand alone.
"""

from collections.abc import Iterable, Mapping
from typing import Final, get_args

from intersession_actors.assembly.methods.methods import METHODS
from intersession_actors.calls.tools.registry import TOOLS
from intersession_actors.rules.config.host import OperatorScope

EVERY_SCOPE: Final[frozenset[OperatorScope]] = frozenset(get_args(OperatorScope)) - {"door"}
"""Every scope of an operator: no operator calls in other callers' names."""


_OWN: Final = ("config.get", "session_status", "system-presence", "tools.invoke", "tools.names")
"""What the gateway itself answers, and tools of other systems that its clients ask for."""
_INCLUDED: Final[dict[OperatorScope, frozenset[OperatorScope]]] = {
    "operator.read": frozenset({"operator.read"}),
    "operator.write": frozenset({"operator.read", "operator.write"}),
    "operator.approvals": frozenset({"operator.approvals"}),
    "operator.fork": frozenset({"operator.fork"}),
    "worker": frozenset({"worker"}),
    "copy": frozenset({"copy"}),
    # A copy has every session: a credential for some of them has it only where that is said.
    "operator.admin": EVERY_SCOPE - {"copy"},
    "door": frozenset({"door"}),
}
_NEEDED: Final[Mapping[str, OperatorScope]] = {
    **dict.fromkeys(_OWN, "operator.read"),
    **dict.fromkeys(("door.perform", "door.receipts"), "door"),
    **{name: method.scope for name, method in METHODS.items()},
    **{name: "operator.read" if tool.reads else "operator.write" for name, tool in TOOLS.items()},
}


def needed_scope(name: str) -> OperatorScope:
    """Return the scope that a method or a tool needs; an unknown one needs the widest."""
    return _NEEDED.get(name, "operator.admin")


def all_scopes(given: Iterable[OperatorScope]) -> frozenset[OperatorScope]:
    """Return scopes with all scopes that they include."""
    return frozenset[OperatorScope]().union(*(_INCLUDED[scope] for scope in given))


def granted(asked: Iterable[str] | None, held: Iterable[OperatorScope]) -> frozenset[OperatorScope]:
    """Return the scopes of a connection: those it asks for and its credential has; all of the credential's if it asks for none."""
    has = all_scopes(held)
    return has if asked is None else has & all_scopes(scope for scope in _INCLUDED if scope in set(asked))

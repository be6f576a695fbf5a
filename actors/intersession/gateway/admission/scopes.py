"""Which scope a method or a tool asks for. `operator.admin` includes `operator.write`, which includes `operator.read`."""

from collections.abc import Iterable
from typing import Final, get_args

from intersession_actors.config import OperatorScope

EVERY_SCOPE: Final[frozenset[OperatorScope]] = frozenset(get_args(OperatorScope))

_READ: Final = (
    "agent.identity.get agent.wait agents.list chat.history health models.list sessions.list sessions.preview "
    "sessions.resolve status system-presence config.get agents_list sessions_history sessions_list sessions_search session_status tools.invoke"
)
_WRITE: Final = "agent chat.abort chat.send send sessions_send sessions_spawn"
_INCLUDED: Final[dict[OperatorScope, frozenset[OperatorScope]]] = {
    "operator.read": frozenset({"operator.read"}),
    "operator.write": frozenset({"operator.read", "operator.write"}),
    "operator.admin": frozenset({"operator.read", "operator.write", "operator.admin"}),
}
_NEEDED: Final[dict[str, OperatorScope]] = {
    **dict.fromkeys(_READ.split(), "operator.read"),
    **dict.fromkeys(_WRITE.split(), "operator.write"),
}


def needed_scope(name: str) -> OperatorScope:
    """Return the scope that a method or a tool asks for; what is not known asks for the widest."""
    return _NEEDED.get(name, "operator.admin")


def all_scopes(given: Iterable[OperatorScope]) -> frozenset[OperatorScope]:
    """Return scopes with all that they include."""
    return frozenset[OperatorScope]().union(*(_INCLUDED[scope] for scope in given))


def granted(asked: Iterable[str] | None, held: Iterable[OperatorScope]) -> frozenset[OperatorScope]:
    """Return what a connection gets: what it asks for, as far as its credential has it; all of that if it asks nothing."""
    has = all_scopes(held)
    return has if asked is None else has & all_scopes(scope for scope in EVERY_SCOPE if scope in set(asked))

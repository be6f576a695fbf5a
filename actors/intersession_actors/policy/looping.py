"""Does a reply-back loop follow a send? Pure (LOOP-4)."""

from collections.abc import Collection

from intersession_events.facts import LoopEnd
from intersession_events.keys import SessionKey


def why_no_loop(one_way: Collection[str], requester: SessionKey | None, target: SessionKey) -> LoopEnd | None:
    """Return why no loop follows; None if one does. `one_way` are the kinds of sessions that have none."""
    if requester is None:
        return "no_requester"
    for key in (requester, target):
        if key.kind in one_way or (key.is_subagent and "subagent" in one_way):
            return "one_way"
    return None

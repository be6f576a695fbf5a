"""The question about forks: which forks this log has, where each was cut, how it was edited, and how it ended."""

from typing import Annotated

import msgspec

from intersession_actors.debugger import View
from intersession_actors.errors import ToolRefused
from intersession_actors.gate import KeyText
from intersession_events.facts import ready
from intersession_events.forks import forks_beside
from intersession_events.plain_json import JsonObject
from intersession_events.stores import open_log
from intersession_projections.forks import fork_told
from intersession_projections.places import flow_id


@ready
class Forks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which forks are asked for."""

    run: Annotated[KeyText | None, msgspec.Meta(description="Only forks of this run. Default: all.")] = None


def forks(view: View, given: Forks) -> JsonObject:
    """Return the forks that lie beside the log, the newest first: `{forks, from}`; `from` is set where this log is a fork itself.

    Raises:
        ToolRefused: who asks sees a part of the log only (`forbidden`), or there is no such run (`invalid_request`).
    """
    if not view.is_operator:
        raise ToolRefused("forbidden", "forks hold whole sessions, they are the operator's to see")
    wanted = None if given.run is None else flow_id(view.flow(given.run))
    found: list[JsonObject] = []
    for file in forks_beside(view.log.path):
        with open_log(str(file), read_only=True) as log:
            told = fork_told(log)
        if told is not None and wanted in {None, told.run}:
            found.append({**msgspec.to_builtins(told), "file": str(file)})
    here = view.log.forked
    return {
        "forks": sorted(found, key=lambda fork: -fork["timeMs"]),
        "from": None if here is None else {"logId": here.log_id, "position": here.position},
    }

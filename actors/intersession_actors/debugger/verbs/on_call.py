"""What each verb takes and does, loaded when it is first asked for: a verb needs little of what all of them need together."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.debugger.diff import Diff, diff, diff_of
    from intersession_actors.debugger.lens import Lens, lens
    from intersession_actors.debugger.lists import (
        CallsOf,
        Deliveries,
        Events,
        ImportsOf,
        MessagesOf,
        Runs,
        list_calls,
        list_deliveries,
        list_events,
        list_imports,
        list_messages,
        list_runs,
    )
    from intersession_actors.debugger.origin import Origin, origin
    from intersession_actors.debugger.replay import Replay, replay, replayed
    from intersession_actors.debugger.search import Search, search
    from intersession_actors.debugger.show import Show, drawing, show
    from intersession_actors.debugger.smells import SmellsOf, smells
    from intersession_actors.debugger.state import State, state
    from intersession_actors.debugger.why import Why, why

__all__ = [
    "CallsOf",
    "Deliveries",
    "Diff",
    "Events",
    "ImportsOf",
    "Lens",
    "MessagesOf",
    "Origin",
    "Replay",
    "Runs",
    "Search",
    "Show",
    "SmellsOf",
    "State",
    "Why",
    "diff",
    "diff_of",
    "drawing",
    "lens",
    "list_calls",
    "list_deliveries",
    "list_events",
    "list_imports",
    "list_messages",
    "list_runs",
    "origin",
    "replay",
    "replayed",
    "search",
    "show",
    "smells",
    "state",
    "why",
]

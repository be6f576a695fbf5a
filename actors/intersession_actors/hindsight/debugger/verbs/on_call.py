"""The arguments and function of each verb, loaded when first used: one verb needs little of what all need together."""

from typing import TYPE_CHECKING

from intersession_events.basics.faces import on_demand

if TYPE_CHECKING:
    from intersession_actors.hindsight.debugger.diff import Diff, diff
    from intersession_actors.hindsight.debugger.forks import naming_forks
    from intersession_actors.hindsight.debugger.lens import Lens, lens
    from intersession_actors.hindsight.debugger.lists.access import AccessOf, list_access
    from intersession_actors.hindsight.debugger.lists.calls import CallsOf, list_calls
    from intersession_actors.hindsight.debugger.lists.deliveries import Deliveries, list_deliveries
    from intersession_actors.hindsight.debugger.lists.erasures import ErasuresOf, list_erasures
    from intersession_actors.hindsight.debugger.lists.events import Events, list_events
    from intersession_actors.hindsight.debugger.lists.hosts import HostsOf, hosts
    from intersession_actors.hindsight.debugger.lists.imports import ImportsOf, list_imports
    from intersession_actors.hindsight.debugger.lists.messages import MessagesOf, list_messages
    from intersession_actors.hindsight.debugger.lists.paging import limits_applied
    from intersession_actors.hindsight.debugger.lists.person_texts import PersonTexts, list_person_texts
    from intersession_actors.hindsight.debugger.lists.runs import Runs, list_runs
    from intersession_actors.hindsight.debugger.lists.usage import UsageOf, list_usage
    from intersession_actors.hindsight.debugger.origin import Origin, origin
    from intersession_actors.hindsight.debugger.replay import Replay, replay
    from intersession_actors.hindsight.debugger.search import Search, search
    from intersession_actors.hindsight.debugger.show import Show, show
    from intersession_actors.hindsight.debugger.smells import SmellsOf, smells
    from intersession_actors.hindsight.debugger.state import State, state
    from intersession_actors.hindsight.debugger.why import Why, why

on_demand(globals())

__all__ = [
    "AccessOf",
    "CallsOf",
    "Deliveries",
    "Diff",
    "ErasuresOf",
    "Events",
    "HostsOf",
    "ImportsOf",
    "Lens",
    "MessagesOf",
    "Origin",
    "PersonTexts",
    "Replay",
    "Runs",
    "Search",
    "Show",
    "SmellsOf",
    "State",
    "UsageOf",
    "Why",
    "diff",
    "hosts",
    "lens",
    "limits_applied",
    "list_access",
    "list_calls",
    "list_deliveries",
    "list_erasures",
    "list_events",
    "list_imports",
    "list_messages",
    "list_person_texts",
    "list_runs",
    "list_usage",
    "naming_forks",
    "origin",
    "replay",
    "search",
    "show",
    "smells",
    "state",
    "why",
]

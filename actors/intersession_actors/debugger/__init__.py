"""The debugger: reads a log at any place, and says why it is as it is. Its verbs are the same at every door (PLACE, WHY)."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.debugger.answers import PlaceAnswer
    from intersession_actors.debugger.debugger import Debugger
    from intersession_actors.debugger.diff import DiffAnswer, TurnAnswer
    from intersession_actors.debugger.forks import ForkViews
    from intersession_actors.debugger.lens import LensAnswer, LensDialect
    from intersession_actors.debugger.lists import (
        LOST,
        STREAMS,
        CallsAnswer,
        CallsWanted,
        DeliveriesAnswer,
        EventsAnswer,
        EventsWanted,
        ImportsAnswer,
        MessagesAnswer,
        RunsAnswer,
        Stands,
        TextsWanted,
        call_value,
        calls_in,
        deliveries_at,
        delivery_value,
        event_brief,
        event_value,
        page_of_calls,
        said_value,
        speaker,
        text_value,
    )
    from intersession_actors.debugger.named import (
        as_key,
        delivery_named,
        near_sessions,
        run_meant,
        run_named,
        session_named,
    )
    from intersession_actors.debugger.opened import OpenLog, open_log
    from intersession_actors.debugger.origin import HopAnswer, OriginAnswer, SeenAnswer
    from intersession_actors.debugger.search import InSpan, SearchAnswer, check_kinds, span_of
    from intersession_actors.debugger.show import ShowAnswer
    from intersession_actors.debugger.smells import (
        SmellAnswer,
        SmellingAnswer,
        SmellsAnswer,
        smells_of,
        smells_of_all,
    )
    from intersession_actors.debugger.standing import StateAnswer
    from intersession_actors.debugger.state import Change, ChangesAnswer, status_at
    from intersession_actors.debugger.verbs import VERBS
    from intersession_actors.debugger.view import At, View
    from intersession_actors.debugger.why import (
        EffectAnswer,
        EffectsAnswer,
        RootAnswer,
        ToldAnswer,
        WhyAnswer,
    )

__all__ = [
    "LOST",
    "STREAMS",
    "VERBS",
    "At",
    "CallsAnswer",
    "CallsWanted",
    "Change",
    "ChangesAnswer",
    "Debugger",
    "DeliveriesAnswer",
    "DiffAnswer",
    "EffectAnswer",
    "EffectsAnswer",
    "EventsAnswer",
    "EventsWanted",
    "ForkViews",
    "HopAnswer",
    "ImportsAnswer",
    "InSpan",
    "LensAnswer",
    "LensDialect",
    "MessagesAnswer",
    "OpenLog",
    "OriginAnswer",
    "PlaceAnswer",
    "RootAnswer",
    "RunsAnswer",
    "SearchAnswer",
    "SeenAnswer",
    "ShowAnswer",
    "SmellAnswer",
    "SmellingAnswer",
    "SmellsAnswer",
    "Stands",
    "StateAnswer",
    "TextsWanted",
    "ToldAnswer",
    "TurnAnswer",
    "View",
    "WhyAnswer",
    "as_key",
    "call_value",
    "calls_in",
    "check_kinds",
    "deliveries_at",
    "delivery_named",
    "delivery_value",
    "event_brief",
    "event_value",
    "near_sessions",
    "open_log",
    "page_of_calls",
    "run_meant",
    "run_named",
    "said_value",
    "session_named",
    "smells_of",
    "smells_of_all",
    "span_of",
    "speaker",
    "status_at",
    "text_value",
]

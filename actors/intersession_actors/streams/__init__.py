"""What every owner of a stream shares: commands and their outcomes, what is handed of the world, and the owner itself."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.streams.commands import (
        Appended,
        Ask,
        Asked,
        AskedOfFlow,
        BeginsFlow,
        ChildGone,
        Command,
        DeliveryEnded,
        FlowCommand,
        OfOneLife,
        OfStream,
        Resume,
        RunEnded,
        SessionReadBack,
        Step,
        StepRefused,
        StepTaken,
        StoreDue,
        StreamLoaded,
    )
    from intersession_actors.streams.drafting import append_of, caused_by, into_outbox
    from intersession_actors.streams.failures import Failures
    from intersession_actors.streams.outcomes import Accepted, Answer, Refused
    from intersession_actors.streams.owner import STORE_RETRY_MS, Owner, answer
    from intersession_actors.streams.plan import Plan, Through
    from intersession_actors.streams.records import (
        Record,
        Words,
        appends_in,
        digest_of,
        present,
        record_in,
        record_of,
        refused_in,
        refused_of,
        spent_in,
        spent_of,
        texts_in,
        words_of,
    )
    from intersession_actors.streams.rules_in_force import RulesInForce
    from intersession_actors.streams.slow import handle_timed
    from intersession_actors.streams.standing import BoundThreads, Generations
    from intersession_actors.streams.strays import foreign
    from intersession_actors.streams.work import Commit, Told
    from intersession_actors.streams.world import World

__all__ = [
    "STORE_RETRY_MS",
    "Accepted",
    "Answer",
    "Appended",
    "Ask",
    "Asked",
    "AskedOfFlow",
    "BeginsFlow",
    "BoundThreads",
    "ChildGone",
    "Command",
    "Commit",
    "DeliveryEnded",
    "Failures",
    "FlowCommand",
    "Generations",
    "OfOneLife",
    "OfStream",
    "Owner",
    "Plan",
    "Record",
    "Refused",
    "Resume",
    "RulesInForce",
    "RunEnded",
    "SessionReadBack",
    "Step",
    "StepRefused",
    "StepTaken",
    "StoreDue",
    "StreamLoaded",
    "Through",
    "Told",
    "Words",
    "World",
    "answer",
    "append_of",
    "appends_in",
    "caused_by",
    "digest_of",
    "foreign",
    "handle_timed",
    "into_outbox",
    "present",
    "record_in",
    "record_of",
    "refused_in",
    "refused_of",
    "spent_in",
    "spent_of",
    "texts_in",
    "words_of",
]

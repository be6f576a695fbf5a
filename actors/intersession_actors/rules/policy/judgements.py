"""All kinds of judgements at doors, and today's verdict on each. Pure."""

from collections.abc import Mapping
from typing import Final

from intersession_actors.rules.errors import Denial, Judgement, Known, Question
from intersession_actors.rules.policy.access import ListSessions, SeeSession, Sight, judge_access
from intersession_actors.rules.policy.budgets import Spend, Spending, judge_spending
from intersession_actors.rules.policy.chain import CarryOn, Chain, WaitFor, Waits, judge_chain, judge_wait
from intersession_actors.rules.policy.sending import Speak, Speech, judge_send
from intersession_actors.rules.policy.spawning import Nursery, StartSubagent, judge_start
from intersession_actors.rules.policy.tools import UseTool, Workshop, judge_tool
from intersession_events.facts import ready

KNOWN: Final[Mapping[type[Question], type[Known]]] = {
    ready(asked): ready(known)
    for asked, known in (
        (SeeSession, Sight),
        (ListSessions, Sight),
        (Speak, Speech),
        (CarryOn, Chain),
        (Spend, Spending),
        (WaitFor, Waits),
        (StartSubagent, Nursery),
        (UseTool, Workshop),
    )
}
"""What is known of each thing that is asked."""


def denial_of(judgement: Judgement) -> Denial | None:
    """Repeat a judgement from its question and inputs; None if it is allowed.

    Raises:
        TypeError: what was known is of something else.
    """
    match (judgement.asked, judgement.known):
        case SeeSession() as seen, Sight() as sight:
            return judge_access(seen, sight)
        case ListSessions(), Sight():
            return None
        case Speak() as spoken, Speech() as speech:
            verdict = judge_send(spoken, speech)
            return None if verdict.allowed else Denial("policy_denied", (verdict.rule,))
        case CarryOn() as hop, Chain() as chain:
            tripped = judge_chain(hop, chain)
            return None if tripped is None else Denial("limit", (tripped.setting,))
        case Spend(), Spending(counted=counted):
            full = judge_spending(counted)
            return None if full is None else Denial("limit", (full.setting,))
        case WaitFor() as wait, Waits() as waits:
            return None if judge_wait(wait, waits) is None else Denial("cycle")
        case StartSubagent() as start, Nursery() as nursery:
            return judge_start(start, nursery)
        case UseTool() as used, Workshop() as workshop:
            return judge_tool(used, workshop)
        case _:
            raise TypeError(
                f"{type(judgement.asked).__name__} is not judged by {type(judgement.known).__name__}"
            )

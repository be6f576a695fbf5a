"""Translates advice about commands into advice about methods, for callers of methods."""

from typing import Final

from intersession_actors.hindsight.debugger.verbs.verbs import VERBS
from intersession_actors.rules.disclosure.advice import Called, Terms, advised
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.plain_json import JsonObject, is_list, is_object

FIRST: Final = {"show": "run", "state": "of", "why": "of"}
"""The argument of a verb that stands first behind its command."""

METHOD_TERMS: Final[Terms] = {
    **{verb: Called(f"debug.{verb}", FIRST.get(verb, "")) for verb in VERBS},
    "deliveries retry": Called("deliveries.retry", "deliveryId"),
    "fork": Called("forks.make", "run"),
    "forks": Called("forks.list"),
    "hold": Called("exchanges.hold", "runId"),
    "release": Called("exchanges.release", "runId"),
    "sessions": Called("sessions.list"),
}


def in_terms_of_methods(refused: ToolRefused) -> ToolRefused:
    """Return a refusal whose advice names methods in place of commands."""
    refused.error = advised(refused.error, METHOD_TERMS)
    return refused


def with_advice(answer: JsonObject, terms: Terms) -> JsonObject:
    """Return a verb's answer with the advice in its explanations in the terms of a door."""
    explanations = answer.get("explanations")
    for explanation in explanations if is_list(explanations) else ():
        instead = explanation.get("instead") if is_object(explanation) else None
        for change in instead if is_list(instead) else ():
            if is_object(change) and isinstance(change.get("change"), str):
                change["change"] = advised(change["change"], terms)
    return answer

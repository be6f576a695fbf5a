"""Names runs to a client by its own `idempotencyKey`: the original's clients know no other name (GATE-1)."""

from collections.abc import Callable
from typing import Final

from intersession_events.basics.plain_json import JsonMapping, JsonObject
from intersession_projections.views.run_outcomes.outcome import RunRequest

_NAMED_BY: Final = {
    "agent": "idempotencyKey",
    "chat.send": "idempotencyKey",
    "send": "idempotencyKey",
    "agent.wait": "runId",
}


def named(
    method: str, params: JsonMapping, payload: JsonMapping, own_name: Callable[[str], str]
) -> JsonObject:
    """Return an answer with the caller's names of runs. `own_name` returns the caller's name of a run's id."""
    answer = dict(payload)
    name = params.get(_NAMED_BY.get(method, ""))
    if isinstance(name, str) and "runId" in answer:
        answer["runId"] = name
    if "runIds" in answer:
        answer["runIds"] = [own_name(run_id) for run_id in answer["runIds"]]
    if "retryOf" in answer:
        answer["retryOf"] = own_name(answer["retryOf"])
    return answer


def name_for(caller: str, run_id: str, asked: RunRequest | None) -> str:
    """Return the caller's name of a run: its own key if it asked for the run, else the run's id."""
    return asked.key if asked is not None and asked.caller == caller else run_id

"""Checks the session that a network caller claims to be, for every door (VIS-6)."""

from intersession_actors.calls.service.callers import AccessSummary, Caller
from intersession_actors.calls.service.resolve import resolve_target
from intersession_actors.calls.service.service import Service
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.policy.access import not_visible
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonMapping


def claimed_session(
    service: Service, caller: Caller, text: str, *, field: str, what: str, arguments: JsonMapping
) -> SessionKey:
    """Return a claimed session: it exists, or is a configured agent's main one, and is within reach.

    `field` is what an error names, `what` the tool or method that is called, with its arguments: a claim that is
    refused leaves a receipt (VIS-4).

    Raises:
        ToolRefused: this is no key (`invalid_key`); the session is not there or beyond reach (`not_visible`, the same).
    """
    refused_by = None
    try:
        key = resolve_target(service.reader, service.reader.requester(None), text, "send", field=field).key
    except ToolRefused as refused:
        if refused.code == "invalid_key":
            raise
        key, refused_by = None, refused.judged
    if key is None or not caller.reaches(key):
        judged = refused_by if key is None else caller.judged(key)
        service.receipts.keep(caller, what, arguments, AccessSummary.of_refused(text, "not_visible", judged))
        # Whatever else there is to say of it would say that it is there.
        raise ToolRefused("not_visible", not_visible(text)) from None
    return key

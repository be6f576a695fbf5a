"""Sessions that a call opens: the target of a message, the chat of a person, the main session that calls."""

from intersession_actors.calls.service.asking import ask_session
from intersession_actors.calls.service.service import Service
from intersession_actors.owners.session.commands import Patch
from intersession_actors.rules.policy.access import Requester
from intersession_events.basics.keys.key import SessionKey
from intersession_events.facts import ChatType, OpenedBy, SessionOpened
from intersession_projections.views.sessions.row import SessionRow


def opening(
    service: Service,
    key: SessionKey,
    *,
    by: OpenedBy,
    chat_type: ChatType | None = None,
    channel: str | None = None,
) -> SessionOpened:
    """Return the event that opens a session, with an id of its own and the sandbox as configured (SPAWN-5)."""
    return SessionOpened(
        key=str(key),
        session_id=service.new_id(),
        agent_id=key.agent_id,
        opened_by=by,
        chat_type=chat_type or key.chat_type,
        channel=channel or key.channel,
        sandboxed=service.config.sandboxed(key.agent_id, main=key.is_main),
    )


def calling_row(service: Service, requester: Requester, known: SessionRow | None = None) -> SessionRow | None:
    """Return the session that calls, which is answered later; None for the operator and where there is none.

    `known` is its row, where the call has looked at it already.
    The main session of a configured agent is opened where it does not exist, as it is for a target (SEND-2):
    the loop and a sub-agent's result come to it.
    """
    key = requester.key
    if key is None:
        return None
    row = known or service.sessions.get(str(key))
    if row is not None and row.archived is not None:
        row = None
    if row is None and key.is_main and key.agent_id in service.config.agent_ids:
        ask_session(service, str(key), Patch(values={}, opening=opening(service, key, by="send")))
        row = service.sessions.get(str(key))
    return row

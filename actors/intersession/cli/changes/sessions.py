"""`abort`, `reset`, `label`, `delete` and `erase`: what the operator can do to a session, with a host or without."""

from collections.abc import Callable
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.host import operator_of
from intersession.cli.shell import READING, Answer, Reading, Screen, UsageError
from intersession_actors.debugger import run_meant, session_named
from intersession_actors.errors import ToolRefused
from intersession_actors.service import Reader
from intersession_events.plain_json import JsonMapping, JsonObject

Session = Annotated[str, Parameter(help="The session: its key in any form, its short name, or a session id.")]


def abort(
    what: Annotated[
        str, Parameter(help="The session whose runs are stopped, or the id of a run, an exchange or a spawn.")
    ],
    /,
    *,
    reading: Reading = READING,
) -> Answer:
    """Stop what a session does, or one run.

    Of a session, the run under way and those that wait; of an exchange or a spawn, the run that it waits for.
    """

    def params(reader: Reader) -> JsonObject:
        run = run_meant(reader, what)
        if run is not None:
            return {"sessionKey": run.session_key, "runId": run.run_id}
        return {"sessionKey": session_named(reader, what, field="session")}

    def told(answer: JsonMapping) -> str:
        return f"stopped {', '.join(answer['runIds'])}" if answer["aborted"] else "nothing was to be stopped"

    return _changed(reading, "chat.abort", params, told)


def reset(session: Session, /, *, reading: Reading = READING) -> Answer:
    """Begin a session anew: it remembers nothing.

    Its earlier transcript can still be read, by its session id.
    """
    return _changed(
        reading,
        "sessions.reset",
        lambda reader: {"key": session_named(reader, session, field="session")},
        lambda answer: f"{answer['key']} begins anew as {answer['sessionId']}",
    )


def label(
    session: Session,
    text: Annotated[
        str | None, Parameter(help="The label, 1 to 64 characters; leave it out with --clear.")
    ] = None,
    /,
    *,
    clear: Annotated[bool, Parameter(help="Take the label away.")] = False,
    reading: Reading = READING,
) -> Answer:
    """Give a session a label to find it by, and to send to."""
    if clear == (text is not None):
        raise UsageError("give a label, or --clear to take it away")
    return _changed(
        reading,
        "sessions.patch",
        lambda reader: {"key": session_named(reader, session, field="session"), "label": text},
        lambda answer: (
            f"{answer['key']} has no label" if text is None else f"{answer['key']} has the label {text!r}"
        ),
    )


def delete(session: Session, /, *, reading: Reading = READING) -> Answer:
    """Archive a session; the log keeps all of it.

    It takes no more messages and is in no list. A main session can only be reset.
    """

    def params(reader: Reader) -> JsonObject:
        key = session_named(reader, session, field="session")
        row = reader.sessions.get(key)
        if row is not None and row.archived is not None:
            raise ToolRefused("not_visible", f"session: {key} is archived already")
        return {"key": key}

    return _changed(reading, "sessions.delete", params, lambda answer: f"{answer['key']} is archived")


def erase(
    session: Annotated[
        str, Parameter(help="The session, also an archived one: its key, its short name, or a session id.")
    ],
    /,
    *,
    message: Annotated[
        list[str] | None,
        Parameter(help="The id of a message, to erase that alone; may be given several times."),
    ] = None,
    reason: Annotated[str, Parameter(help="Why; it is recorded with the erasure.")] = "",
    give_up_unsent: Annotated[
        bool,
        Parameter(
            help="Give up texts of it that are still to be delivered; else they keep it from being erased."
        ),
    ] = False,
    yes: Annotated[bool, Parameter(help="Really do it: what is erased can't be had back.")] = False,
    reading: Reading = READING,
) -> Answer:
    """Erase what was said in a session from the log, for good.

    The copies of it in other sessions, too. That it was erased stays provable.
    """
    if not yes:
        raise UsageError("what is erased can't be had back: say --yes if you mean it")

    def params(reader: Reader) -> JsonObject:
        return {
            "key": session_named(reader, session, field="session", by_label=False),
            "messageIds": message or [],
            "reason": reason,
            "unsent": "giveUp" if give_up_unsent else "refuse",
        }

    def told(answer: JsonMapping) -> str:
        left = "; ".join(answer["notReached"])
        streams = len(answer["streams"])
        return f"{answer['erased']} events in {streams} streams of {answer['key']} are erased. Not reached: {left}"

    return _changed(reading, "sessions.erase", params, told)


def _changed(
    reading: Reading, method: str, params: Callable[[Reader], JsonObject], told: Callable[[JsonMapping], str]
) -> Answer:
    """Have a method of the system do it, through the log's host or as the log's writer."""
    with operator_of(reading) as operator:
        answer = operator.call(method, params(operator.reader))

    def show(screen: Screen) -> None:
        screen.line(told(answer))

    return Answer(answer, show)

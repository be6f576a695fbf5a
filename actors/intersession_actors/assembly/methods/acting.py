"""Does what an agent does in a turn that a worker makes, on the turn that the writer has of the same attempt (WORK-6)."""

import base64
import hmac
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Final

import msgspec

from intersession_actors.calls.service.pending import Pending, Result
from intersession_actors.calls.service.service import Service
from intersession_actors.calls.tools.recorder import RunRecorder
from intersession_actors.calls.tools.toolbox import Tools
from intersession_actors.outside.agents import acts
from intersession_actors.outside.agents.turn import Approval, AwaitedApproval, BadPiece, ReplyTooLarge
from intersession_actors.outside.attachments.contents import store_reply_files
from intersession_actors.outside.attachments.message_files import File
from intersession_actors.outside.workers.remote import UnderWay
from intersession_actors.rules.errors import ToolRefused
from intersession_actors.rules.gate.values import invalid
from intersession_actors.running.host.door_threads import DoorThreads
from intersession_events.basics.errors import StoreUnavailable

_KEPT: Final = 256
"""Of how many acts of an attempt it is remembered what came of them."""

_ONCE: Final = (acts.CallTool, acts.Say, acts.RecordCalls, acts.RecordResult, acts.AskApproval)

_ENDLESS_S: Final = 1e9
"""A person may take days, and the run has a limit of its own."""


def done_by(service: Service, threads: DoorThreads, under: UnderWay, act: acts.Act) -> Result | Pending:
    """Do an act, or wait for what comes of the same one that was sent before.

    It goes on without the connection that asked for it: sent again over another one, it has the same answer.
    """
    doing = partial(_within, under, partial(_done, service, under, act))
    if not isinstance(act, _ONCE):
        return doing()
    told: Future[Result] = Future()
    with under.changed:
        known = under.acts.setdefault(msgspec.json.encode(act, order="sorted"), told)
        while len(under.acts) > _KEPT:
            under.acts.popitem(last=False)
    if known is told:
        _Doing(service, threads, under, told).go_on(doing)
    return (
        known.result()
        if known.done()
        else Pending(future=known, timeout=_ENDLESS_S, finish=known.result, over=_nothing)
    )


class _Doing:
    """One act: done in steps, each on a thread, until there is an answer."""

    def __init__(self, service: Service, threads: DoorThreads, under: UnderWay, told: Future[Result]) -> None:
        self._service = service
        self._threads = threads
        self._under = under
        self._told = told

    def go_on(self, step: Callable[[], Result | Pending]) -> None:
        """Make the next step."""
        try:
            with self._service.refusing_without_store:
                answer = step()
        except Exception as error:  # noqa: BLE001 - the outcome of the act, whatever it is
            self._told.set_exception(error)
            return
        if not isinstance(answer, Pending):
            self._told.set_result(answer)
            return
        self._wait(answer)

    def _wait(self, pending: Pending) -> None:
        """Go on once what is awaited is there, or the time is over, whichever is first."""
        key = ("act", self._under.turn.run_id, str(id(self._told)))
        timers = self._service.world.time.timers
        ended = Future[None]()

        def over(_: object = None) -> None:
            with self._under.changed:
                if ended.done():
                    return
                ended.set_result(None)
            timers.cancel(key)
            pending.over()
            step = partial(_within, self._under, partial(_finished, self._under, pending))
            try:
                self._threads.submit(partial(self.go_on, step), self._under.turn.session_key)
            except StoreUnavailable as error:
                self._told.set_exception(ToolRefused("unavailable", str(error)))

        if pending.timeout < _ENDLESS_S:
            timers.after(round(pending.timeout * 1000), key, over)
        pending.future.add_done_callback(over)


def _finished(under: UnderWay, pending: Pending) -> Result | Pending:
    """Go on behind a wait. One that a stop of the writer has ended is gone on with by the next one: nothing is recorded of it here."""
    under.check_stays()
    return pending.finish()


def _within(under: UnderWay, step: Callable[[], Result | Pending]) -> Result | Pending:
    """Make a step as part of the attempt's run."""
    try:
        return under.context.copy().run(step)
    except ToolRefused:
        under.check()
        raise


def _done(service: Service, under: UnderWay, act: acts.Act) -> Result | Pending:  # noqa: C901, PLR0912 - one case an act
    turn = under.turn
    tools, recorder = turn.tools, turn.recorder
    assert isinstance(tools, Tools)  # noqa: S101 - a turn of this process
    assert isinstance(recorder, RunRecorder)  # noqa: S101 - the same
    match act:
        case acts.CallTool():
            return _with_result(tools.begin_numbered(act.name, act.args, act.number, _place(under, act)))
        case acts.DescribeTools():
            return {"tools": tools.schemas(act.dialect)}
        case acts.AllowTools():
            return {"names": tools.allowed(act.names)}
        case acts.Say():
            recorder.said(act.blocks, (act.number, _place(under, act)))
        case acts.RecordCalls():
            recorder.tool_calls(act.calls, act.number)
        case acts.RecordResult():
            recorder.tool_result(act.call_id, act.name, act.content, act.is_error, number=act.number)
        case acts.FindMessage():
            return {"has": recorder.has(act.message_id)}
        case acts.AskApproval():
            numbered = act.number, _place(under, act)
            return _approval(
                recorder.approval(act.call_id, act.name, act.args, is_new=act.is_new, numbered=numbered)
            )
        case acts.ShowPiece():
            _show(under, act)
        case acts.ReadContent():
            return part_of(partial(_content, under, act.sha256), act.at)
        case acts.PutContent():
            return _stored(service, under, act)
        case acts.ListAttachments():
            return _listed(under)
        case acts.ReadAttachment():
            return part_of(partial(_attached, under, act.name), act.at)
    return {}


def _place(under: UnderWay, act: acts.CallTool | acts.Say | acts.AskApproval) -> int:
    """Return the place of an act; without the secret of its call, one that is made for an older worker tells nothing of its words."""
    if act.place is not None:
        return act.place
    made = hmac.digest(under.secret.encode(), msgspec.json.encode(act, order="sorted"), "sha256")
    return int.from_bytes(made[:8])


def _with_result(answer: Result | Pending) -> Result | Pending:
    if isinstance(answer, Pending):
        finish = answer.finish
        return msgspec.structs.replace(answer, finish=lambda: _with_result(finish()))
    return {"result": answer}


def _approval(asked: Approval | AwaitedApproval) -> Result | Pending:
    if isinstance(asked, AwaitedApproval):
        return Pending(
            future=asked.future,
            timeout=_ENDLESS_S,
            finish=lambda: _approval(asked.finish()),
            over=_nothing,
        )
    return {"arguments": {**asked.arguments}, "refused": asked.refused, "editedBy": asked.edited_by}


def _show(under: UnderWay, act: acts.ShowPiece) -> None:
    with under.changed:
        if act.number <= under.shown:
            return
        under.shown = act.number
    try:
        under.turn.stream(act.text)
    except (BadPiece, ReplyTooLarge) as error:
        raise ToolRefused("too_large", f"text: the agent {error}") from None


def part_of(read: Callable[[], bytes | None], at: int) -> Result:
    """Return bytes of a file from a place on: a whole one may be more than an answer. None is for one that is not there."""
    try:
        data = read()
    except (FileNotFoundError, NotADirectoryError):
        data = None
    if data is None:
        return {"content": None, "size": 0}
    return {"content": base64.b64encode(data[at : at + acts.PART]).decode(), "size": len(data)}


def _content(under: UnderWay, sha256: str) -> bytes:
    """Return the content of a file of the session's messages: no other one is shown."""
    turn = under.turn
    for message in (turn.asked, *reversed(turn.transcript), *turn.partial):
        for file in turn.files_of(message):
            if file.sha256 == sha256:
                return file.read()
    raise invalid("sha256", "no message of the session has such a file")


def _stored(service: Service, under: UnderWay, act: acts.PutContent) -> Result:
    try:
        data = base64.b64decode(act.content, validate=True)
    except ValueError:
        raise ToolRefused("invalid_base64", "content: it is not base64") from None
    file = File(data=data, name=act.name, mime_type=act.mime_type)
    (block,) = store_reply_files(service.log, service.config.files, [file])
    under.files[block.sha256] = block
    return {"file": msgspec.to_builtins(block)}


def _listed(under: UnderWay) -> Result:
    """Return what files a spawn handed to the session, and where they lie."""
    turn = under.turn
    files = [
        acts.AttachedFile(
            name=file.name,
            size=file.size,
            sha256=file.sha256,
            mime_type=file.mime_type,
            is_there=file.path is not None,
        )
        for file in turn.attachments
    ]
    paths = [file.path for file in turn.attachments if file.path is not None]
    directory = ""
    if paths and turn.workspace is not None:
        directory = paths[0].parent.relative_to(turn.workspace).as_posix()
    value: Result = msgspec.to_builtins(acts.Attachments(directory=directory, files=tuple(files)))
    return value


def _attached(under: UnderWay, name: str) -> bytes:
    """Return the content of a file that a spawn handed to the session."""
    for file in under.turn.attachments:
        if file.name == name:
            if file.path is None:
                raise FileNotFoundError(name)
            return file.path.read_bytes()
    raise invalid("name", "the spawn of the session handed no such file over")


def _nothing() -> None:
    """Do nothing when a wait is over."""

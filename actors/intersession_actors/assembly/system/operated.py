"""The operator's methods of a running system, for Python: one half of `SessionSystem`."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Unpack, cast

from intersession_actors.assembly.methods.holding import (
    ReleaseCallFields,
    ReleaseFields,
    hold_params,
    release_params,
)
from intersession_actors.assembly.methods.methods import GatewayMethods
from intersession_actors.assembly.system.assembly import Assembly
from intersession_actors.calls.service.asking import ask_session
from intersession_actors.calls.service.callers import OPERATOR
from intersession_actors.calls.service.imports import Imports
from intersession_actors.calls.service.pending import Result
from intersession_actors.calls.service.run_waits import RunDoor
from intersession_actors.calls.service.service import Service
from intersession_actors.hindsight.forking import on_call
from intersession_actors.owners.session.commands import Unbind
from intersession_actors.rules.answers import AcceptedAnswer, HoldAnswer, ReleaseAnswer, ReleasedCallAnswer
from intersession_actors.rules.errors import not_on_a_loop
from intersession_actors.rules.gate.shapes import path_of, text_of, texts_of
from intersession_events.basics.keys.key import SessionKey
from intersession_events.basics.plain_json import JsonObject, present
from intersession_events.basics.progress import Progress
from intersession_events.facts import HoldBefore

if TYPE_CHECKING:
    from intersession_actors.hindsight.bundling.bundle import BundleMade
    from intersession_actors.hindsight.bundling.wanted import BundleFields
    from intersession_events.transcripts.openclaw.importing import OnTaken
    from intersession_events.transcripts.openclaw.report import ImportReport
    from intersession_projections.copies.openclaw_state.exporting import ExportReport


class Operated:
    """The operator's methods: import, export and erase in its log; stop, retry and hold its runs."""

    gateway: GatewayMethods
    _parts: Assembly
    _runs: RunDoor
    _imports: Imports

    @property
    def service(self) -> Service:
        """The service that doors work with. For authors of another door."""
        return self._parts.service

    def import_openclaw(
        self,
        directory: Path | str,
        *,
        on_taken: OnTaken = "beside",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import an OpenClaw state directory into the running system's log (IMP-1). Blocks until it is done.

        Sessions that are used meanwhile are never mixed with what is imported: those are kept beside them, or refused with
        `on_taken="refuse"`. `progress` is told (events appended, events to append).

        Raises:
            ImportFailed: it is no state directory, or has keys that the log has and should be refused.
            ToolRefused: another import is under way (`busy`).
            StoreUnavailable: the store could not take it; what was appended stays, importing again goes on.
        """
        not_on_a_loop("system.import_openclaw(…)", "await asyncio.to_thread(system.import_openclaw, …)")
        return self._imports.openclaw(path_of("directory", directory), on_taken=on_taken, progress=progress)

    def import_framework(
        self,
        framework: str,
        source: Path | str,
        *,
        agent: str | None = None,
        on_taken: OnTaken = "beside",
        progress: Progress | None = None,
    ) -> ImportReport:
        """Import LangGraph's checkpoints (`langgraph`) or sessions of the OpenAI Agents SDK (`openai-agents`) (IN-1). Blocks.

        `source` is a database file, or a `postgresql://` URL. Its sessions become those of `agent`, by default called as the
        framework. The rest is as in `import_openclaw`.

        Raises:
            ImportFailed: there is no such framework, its database can't be read, or has sessions that should be refused.
            MissingExtra: a URL needs the extra `postgres`.
            ToolRefused: another import is under way (`busy`).
            StoreUnavailable: the store could not take it; what was appended stays, importing again goes on.
        """
        not_on_a_loop("system.import_framework(…)", "await asyncio.to_thread(system.import_framework, …)")
        return self._imports.framework(
            framework, str(source), agent=agent, on_taken=on_taken, progress=progress
        )

    def export_openclaw(
        self,
        directory: Path | str,
        *,
        as_of: int | str | None = None,
        sessions: Collection[str] = (),
        progress: Progress | None = None,
    ) -> ExportReport:
        """Write an OpenClaw state directory of the running system's log (EXP-1). Blocks until it is done.

        `directory` must be empty or not there. `as_of` is a position or an ISO time; `sessions` are those to write, by key
        or session id, all if none is named. `progress` is told (sessions written, sessions to write).

        Raises:
            ExportFailed: the directory is not empty or can't be written; a part of the export may be in it.
            ToolRefused: there is no such session, position or time.
            CorruptEvent: a row of the log can't be read.
        """
        not_on_a_loop("system.export_openclaw(…)", "await asyncio.to_thread(system.export_openclaw, …)")
        from intersession_actors.assembly.system.state_export import (  # noqa: PLC0415 - few hosts export anything
            export_state,
        )

        return export_state(
            self.service.reader,
            path_of("directory", directory),
            as_of=as_of,
            sessions=texts_of("sessions", sessions),
            progress=progress,
        )

    def erase(
        self,
        session: str,
        *,
        message_ids: Collection[str] = (),
        reason: str = "",
        unsent: Literal["refuse", "giveUp"] = "refuse",
        dry_run: bool = False,
    ) -> Result:
        """Erase the texts of a session, or of some of its messages, for good (ERASE-1). Blocks until it is done.

        `session` is a key or a session id, also of an archived session. An event says who erased what, and all that read it
        read `[erased]`. Texts of it that are still to be delivered keep it from that, or are given up (`unsent`).
        Returns `{ok, key, erased, streams, counts, forks, position, checkpoint, notReached}`, `erased` being a number of
        events; with `dry_run` nothing is erased, and the answer is the same.

        Raises:
            ToolRefused: there is no such session or message, or something is still under way in it (`busy`).
            StoreUnavailable: the store could not take it; erasing again goes on.
        """
        not_on_a_loop("system.erase(…)", "await asyncio.to_thread(system.erase, …)")
        asked: JsonObject = {
            "key": session,
            "messageIds": texts_of("message_ids", message_ids),
            "reason": reason,
            "unsent": unsent,
            "dryRun": dry_run,
        }
        return self.gateway.perform("sessions.erase", asked)

    def forget(
        self,
        person: str,
        *,
        reason: str = "",
        mentions: bool = False,
        unsent: Literal["refuse", "giveUp"] = "refuse",
        dry_run: bool = False,
    ) -> Result:
        """Erase what a person said and was told, and all that came of it, for good (FORGET-1). Blocks until it is done.

        `person` is their address, `channel:id`; addresses that `session.identityLinks` joins with it go too. With `mentions`
        also what others said that names them. Returns as `erase` does, with `{person, addresses, sessions}` for its `key`.

        Raises:
            ToolRefused: nobody has this address, or something of it is still under way (`busy`).
            StoreUnavailable: the store could not take it; forgetting again goes on.
        """
        not_on_a_loop("system.forget(…)", "await asyncio.to_thread(system.forget, …)")
        asked: JsonObject = {
            "person": person,
            "reason": reason,
            "mentions": mentions,
            "unsent": unsent,
            "dryRun": dry_run,
        }
        return self.gateway.perform("people.forget", asked)

    def abort(self, run_id: str, *, by: str = "operator") -> bool:
        """Stop a queued or running run; True if there was something to stop (GATE-5)."""
        not_on_a_loop("system.abort(…)", "await asyncio.to_thread(system.abort, …)")
        return self._runs.abort(run_id, by=by)

    def retry(self, run_id: str) -> AcceptedAnswer:
        """Answer the message of a failed run with a new run (GATE-6): `{runId, status, sessionKey, retryOf, …}`.

        The words are recorded anew, in the same session, and a new run answers them. Asked for again, it is the same run.

        Raises:
            ToolRefused: there is no such run, or it can't be tried again; the error says why, and what to do.
            CalledOnLoop: this is a coroutine, where `await system.gateway.acall("runs.retry", …)` does it.
        """
        not_on_a_loop("system.retry(…)", 'await system.gateway.acall("runs.retry", …)')
        return cast("AcceptedAnswer", self.gateway.perform("runs.retry", {"runId": run_id}))

    def hold(
        self, run_id: str | None = None, *, session_key: str | None = None, before: HoldBefore = "next"
    ) -> HoldAnswer:
        """Stop an exchange before its next text goes on, until it is released (LIVE-1).

        It is named by one of its runs, or by its id. With `session_key` all exchanges of that session stop, those to come as
        well.

        Raises:
            ToolRefused: there is no such run or session, or nothing of it is still to go on.
            CalledOnLoop: this is a coroutine, where `ahold` is awaited.
        """
        not_on_a_loop("system.hold(…)", "await system.ahold(…)")
        asked = hold_params(run_id, session_key, before)
        return cast("HoldAnswer", self.gateway.perform("exchanges.hold", asked))

    async def ahold(
        self, run_id: str | None = None, *, session_key: str | None = None, before: HoldBefore = "next"
    ) -> HoldAnswer:
        """Like `hold`, without blocking the event loop."""
        asked = hold_params(run_id, session_key, before)
        return cast("HoldAnswer", await self.gateway.aperform("exchanges.hold", asked))

    def release_call(self, hold_id: str, **given: Unpack[ReleaseCallFields]) -> ReleasedCallAnswer:
        """Let a held tool call go on as it is, with other `arguments`, or not at all (`action` "refuse", with a `text` for the agent) (ASK-2).

        `hold_id` is the hold's id, or the beginning of it; the method `calls.held` lists what waits.

        Raises:
            ToolRefused: there is no such call, its run is over, or it was released in another way.
            CalledOnLoop: this is a coroutine, where `arelease_call` is awaited.
        """
        not_on_a_loop("system.release_call(…)", "await system.arelease_call(…)")
        asked = present({"holdId": hold_id, **given})
        return cast("ReleasedCallAnswer", self.gateway.perform("calls.release", asked))

    async def arelease_call(self, hold_id: str, **given: Unpack[ReleaseCallFields]) -> ReleasedCallAnswer:
        """Like `release_call`, without blocking the event loop."""
        asked = present({"holdId": hold_id, **given})
        return cast("ReleasedCallAnswer", await self.gateway.aperform("calls.release", asked))

    def release(self, run_id: str | None = None, **given: Unpack[ReleaseFields]) -> ReleaseAnswer:
        """Release a held exchange (LIVE-1): with its text, with another `text`, or by `action` without it (`drop`), or end it (`end`).

        `hold_id` is the hold that is meant, so that saying it twice releases one. `for_good`: it is not held again. With
        `session_key` all that is held of that session goes on, and its own hold is taken away.

        Raises:
            ToolRefused: there is no such run or session, it is not held, or was released in another way.
            CalledOnLoop: this is a coroutine, where `arelease` is awaited.
        """
        not_on_a_loop("system.release(…)", "await system.arelease(…)")
        return cast("ReleaseAnswer", self.gateway.perform("exchanges.release", release_params(run_id, given)))

    async def arelease(self, run_id: str | None = None, **given: Unpack[ReleaseFields]) -> ReleaseAnswer:
        """Like `release`, without blocking the event loop."""
        answer = await self.gateway.aperform("exchanges.release", release_params(run_id, given))
        return cast("ReleaseAnswer", answer)

    def checkpoint(self) -> JsonObject:
        """Take a checkpoint of the log as it is now, and return it (CHECK-1); the last one, if nothing is new since.

        With a key it has its `note` too, signed and with the cosignatures that witnesses have answered so far (TLOG-1), and
        with `checkpoints.timestamp` a response of RFC 3161 over its hash, in base64, once there is one. `waitingFor` names
        the witnesses, and the authority, that have not answered yet.

        Raises:
            StoreUnavailable: the store could not take it.
            CorruptEvent: a row of the log can't be read.
        """
        not_on_a_loop("system.checkpoint()", "await asyncio.to_thread(system.checkpoint)")
        self.service.log.check()
        last = self._parts.checkpointer.take()
        return self._parts.checkpointer.answer(last)

    def bundle(self, out: Path | str, **wanted: Unpack[BundleFields]) -> BundleMade:
        """Write a part of the log as one file for an auditor, who checks it without the log (BUNDLE).

        `bundle(out, *, run=, session=, person=, since=, until=, everything=, at=, redact=)` as `debug.bundle` takes them. A
        checkpoint is taken first, so that all of it is proven, and the place is that, if none is given. The key of checkpoints
        signs it.

        Raises:
            ToolRefused: nothing is named, or what is named is not there (`invalid_request`, `not_visible`).
            BundleFailed: the file is there already, or can't be written.
            CorruptEvent: the log is damaged before the place; the error says where.
        """
        not_on_a_loop("system.bundle(…)", "await asyncio.to_thread(system.bundle, …)")
        position = self.checkpoint()["position"]
        if wanted.get("at") is None and wanted.get("until") is None:
            wanted["at"] = position
        debugger = on_call.Debugger(on_call.View(self.service.reader))
        return debugger.bundle(path_of("out", out), key=self._parts.checkpointer.key, **wanted)

    def unbind_thread(self, session_key: str) -> bool:
        """Unbind a session's thread (SPAWN-12); True if it had one.

        Raises:
            InvalidKey: this is no session key.
            ToolRefused: it could not be made durable.
        """
        not_on_a_loop("system.unbind_thread(…)", "await asyncio.to_thread(system.unbind_thread, …)")
        key = SessionKey.parse(
            text_of("session_key", session_key), main_key=self.service.config.session.main_key
        )
        return bool(ask_session(self.service, str(key), Unbind(by=OPERATOR.name)).recorded)

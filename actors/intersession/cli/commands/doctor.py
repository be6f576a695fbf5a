"""`intersession doctor`: what is wrong now, and what to do about it."""

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from intersession.cli.commands.probes import endpoint_findings, mcp_findings
from intersession.cli.host.beside import host_beside
from intersession.cli.host.reading import reader_of, store_url
from intersession.cli.shell.answer import OK, READING, REFUSED, Answer, Reading
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import moment
from intersession_actors.assembly.checkpoints.copied import copy_value
from intersession_actors.assembly.checkpoints.publishing import unpublished
from intersession_actors.assembly.checkpoints.targets import publishing_targets
from intersession_actors.assembly.system.settings import prepared
from intersession_actors.calls.service.reader import Reader
from intersession_actors.hindsight.debugger.lists.hosts import hosts_of
from intersession_actors.outside.agents.configured import keyless
from intersession_actors.rules.config.config import Config, load_config
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.running.failures.findings import (
    Finding,
    clock_findings,
    copy_findings,
    full_findings,
    note,
    process_findings,
    publishing_setting,
    warning,
    wrong,
)
from intersession_actors.running.failures.host_findings import host_findings
from intersession_events.basics.errors import (
    BadKey,
    IntersessionError,
    LogTooNew,
    MissingExtra,
    StoreUnavailable,
)
from intersession_events.facts.reasons import counted
from intersession_events.log.log import Log
from intersession_events.log.verifying.files import files_compared
from intersession_events.stores.opened import Located, check_clear, gateway_of, has_writer, located
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.sqlite.log import SqliteLog
from intersession_events.stores.sqlite.writer_lock import holder_of
from intersession_projections.views.access_receipts import last_copy
from intersession_projections.views.flows.rows import DeliverySummary
from intersession_projections.views.held_calls import HeldCalls
from intersession_projections.views.run_outcomes.outcome import RunOutcome

MIB: Final = 1 << 20
_LEAST_BYTES: Final = 100 * MIB
_LOW_BYTES: Final = 1024 * MIB
_BIG_WAL: Final = 1024 * MIB
_MOST: Final = 1_000
_NEWEST: Final = 20
_NEWEST_EVENTS: Final = 10_000
_LOOKED_AT: Final = 1_000
"""The number of sessions, updated last, that are looked at for one that is nearly full."""
_UNREADABLE = "store_unreadable"
_STYLES = {"error": "bold red", "warning": "yellow", "note": "dim"}


def doctor(
    *,
    probe: Annotated[
        bool, Parameter(help="Ask the configured model endpoints over the network whether they answer.")
    ] = False,
    reading: Reading = READING,
) -> Answer:
    """Say what is wrong now, and what to do about it.

    It looks at the log, its process, deliveries, settings and models. It works on a log that is in use and on
    one that is not, and changes nothing. The process that writes it is asked how it is; one with a gateway with the
    token in $INTERSESSION_GATEWAY_TOKEN, else the configuration's. Exit code 1 if there is an error among the
    findings; warnings and notes alone leave it 0.
    """
    found = list(_found(reading, probe=probe))
    order = ("error", "warning", "note")
    found.sort(key=lambda finding: order.index(finding.level))
    sick = any(finding.level == "error" for finding in found)
    value = {"ok": not sick, "findings": msgspec.to_builtins(found)}
    return Answer(value, lambda screen: _show(screen, found), REFUSED if sick else OK)


def _found(reading: Reading, *, probe: bool) -> Iterator[Finding]:
    try:
        loaded = prepared(reading.config)
    except ConfigError as error:
        yield wrong(
            "config_bad",
            f"the configuration would be refused: {error}",
            "mend it: `intersession config check FILE` names every problem",
        )
        return
    yield from setting_findings(loaded.config, loaded.notices)
    if probe:
        yield from endpoint_findings(loaded.config)
        yield from mcp_findings(loaded.config)
    # The log last: one that goes while its process is looked for is found to be gone.
    of_the_process = list(_of_the_process(reading))
    of_the_log = list(_of_the_log(reading, loaded.config))
    yield from of_the_log
    if _UNREADABLE not in {finding.code for finding in of_the_log}:
        yield from of_the_process


def _of_the_log(reading: Reading, config: Config) -> Iterator[Finding]:
    store = located(store_url(reading, config))
    try:
        with reader_of(reading) as reader:
            yield from lock_findings(reader.log, store)
            if store.is_file:
                yield from disk_findings(store.place)
                yield from damage_findings(reader.log)
            yield from key_findings(reader.log)
            yield from file_findings(reader.log)
            yield from clock_findings(reader.log, reader.clock.now_ms())
            if (copy := last_copy(reader.log)) is not None:
                yield from copy_findings(copy_value(copy, reader.log, reader.clock.now_ms()))
            yield from work_findings(reader, at_work=has_writer(reader.log))
            yield from host_findings(hosts_of(reader.log, reader.runs.open_runs(), most=_NEWEST))
            yield from checkpoint_findings(reader.log, config)
    except IntersessionError as error:
        if isinstance(error, LogTooNew):
            right = "install the version that wrote it, or a later one"
        elif isinstance(error, StoreUnavailable) and not store.is_file:
            right = "see to it that its server runs and takes this role"
        else:
            right = "`intersession verify` says whether it is damaged"
        yield wrong(
            _UNREADABLE,
            f"the log can't be read: {error}",
            f"name it with --store; if it is the right one, {right}",
        )


def key_findings(log: Log) -> Iterator[Finding]:
    """Yield what keeps the words of an encrypted log from being read (CRYPT-2), and which are not encrypted (CRYPT-7)."""
    try:
        check_clear(log)
    except BadKey as error:
        yield wrong(
            "keys_away",
            f"the log is kept encrypted, and what is encrypted can't be read: {error}",
            "bring the keys and the master key back, or say where that is in encryption.keys; no host starts without them",
        )
    if isinstance(log, PortableLog) and (first := log.clear_from()) is not None:
        yield note(
            "words_in_clear",
            f"the log is kept encrypted, and words of before are in clear, from position {first} on",
            "stop the host, and run `intersession encryption apply`",
        )


def file_findings(log: Log) -> Iterator[Finding]:
    """Yield the files of the newest events whose content is not there, or not what was written (FILE-7)."""
    _, lost = files_compared(log, after=max(log.head() - _NEWEST_EVENTS, 0))
    if lost:
        some = "; ".join(one.problem for one in lost[:_NEWEST])
        yield wrong(
            "files_lost",
            f"{counted(len(lost), 'file')} of messages can't be read: {some}",
            "put them back from a backup of the folder beside the log; `intersession verify` names all of them",
        )


def _of_the_process(reading: Reading) -> Iterator[Finding]:
    try:
        client = host_beside(reading)
        if client is not None:
            with client:
                yield from process_findings(client.call("status"))
        elif (address := gateway_of(store_url(reading, load_config(reading.config).config))) is not None:
            yield _silent(f"the process's gateway at {address} does not answer")
    except ConnectionError as error:
        yield _silent(str(error))
    except (IntersessionError, MissingExtra) as error:
        yield note(
            "process_not_asked",
            f"the process could not be asked how it is: {error}",
            "give its configuration with --config, or its token in $INTERSESSION_GATEWAY_TOKEN"
            if isinstance(error, ToolRefused)
            else "look at its own log lines instead",
        )


def _silent(what: str) -> Finding:
    return wrong(
        "process_silent",
        what,
        "look at its log lines; it can be ended and started again: what it acknowledged is in the log",
    )


def _show(screen: Screen, found: Iterable[Finding]) -> None:
    shown = list(found)
    for finding in shown:
        screen.line(safe(f"{finding.level}: ", _STYLES[finding.level]), finding.what)
        if finding.level != "note":
            screen.indented(f"→ {finding.advice}", 2)
    wrong = sum(finding.level != "note" for finding in shown)
    screen.line(safe("nothing is wrong" if not wrong else f"{wrong} to look at", "bold"))


def lock_findings(log: Log, store: Located) -> Iterator[Finding]:
    """Yield the present or last writer of the log."""
    writer = log.written_by() if isinstance(log, PortableLog) else None
    last = holder_of(store.place) if store.is_file else None
    if writer is not None:
        gateway = f", with a gateway at {writer.gateway}" if writer.gateway else ", without a gateway"
        where = f" on {writer.host}" if writer.host else ""
        yield note("writer", f"process {writer.pid}{where} writes the log{gateway}", "nothing to do")
    elif last is not None and last.gateway is not None:
        yield note(
            "stale_lock",
            f"the lock's file names process {last.pid}, which ended without saying so; nobody writes the log",
            "nothing to do: the next start takes the lock over",
        )


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def disk_findings(path: str, *, free_bytes: Callable[[Path], int] = _free_bytes) -> Iterator[Finding]:
    """Yield what is wrong with the log's folder and disk. `free_bytes` returns the free space of a folder."""
    free = free_bytes(Path(path).parent)
    if free < _LOW_BYTES:
        yield Finding(
            code="disk_full",
            level="error" if free < _LEAST_BYTES else "warning",
            what=f"{free // MIB} MiB are free where the log lies",
            advice="free space: without any the log takes nothing",
        )
    if not os.access(path, os.W_OK) or not os.access(Path(path).parent, os.W_OK):
        yield warning(
            "not_writable",
            "this user can't write the log or its folder",
            "run the process as the user whose file it is; reading works",
        )
    wal = Path(f"{path}-wal")
    size = wal.stat().st_size if wal.exists() else 0
    if size > _BIG_WAL:
        yield warning(
            "big_wal",
            f"{wal.name} has {size // MIB} MiB",
            "somebody reads the log for very long; end long readers, the next start makes it small",
        )


def damage_findings(log: Log) -> Iterator[Finding]:
    """Yield what damage to the write-ahead log has cost, as long as it can be read."""
    cost = log.left_out() if isinstance(log, SqliteLog) else None
    if cost is not None:
        yield wrong(
            "events_left_out",
            cost,
            "don't open the log to write: keep a copy of it and of its -wal, and bring the -wal back from a copy of before",
        )


def work_findings(reader: Reader, *, at_work: bool) -> Iterator[Finding]:
    """Yield open work without a host, undelivered texts, and present failures."""
    if not at_work:
        yield from _nobody_works(reader)
    yield from _held(reader)
    yield from _held_calls(reader)
    yield from _undelivered(reader)
    order = reader.sessions.order()
    yield from full_findings((row.key, row.filled) for row in order.rows(islice(order.places(), _LOOKED_AT)))
    newest = reader.runs.recent(_NEWEST)
    failed = reader.runs.failed_lately(_NEWEST)
    if failed and newest[0].run_id == failed[0].run_id:
        yield wrong(
            "runs_fail",
            f"{len(failed)} of the newest {counted(len(newest), 'run')} failed, the last in {failed[0].session_key}: "
            f"{newest[0].error}",
            f"`intersession replay {failed[0].run_id}` shows the traceback{_once_more(failed[0])}",
        )
    elif failed:
        yield warning(
            "runs_failed",
            f"{len(failed)} of the newest {counted(len(newest), 'run')} failed; the last one did not",
            f"`intersession replay {failed[0].run_id}` shows why{_once_more(failed[0])}",
        )


def _once_more(run: RunOutcome) -> str:
    return f"; mend that, then `intersession retry {run.run_id}`" if run.is_alone else ""


def checkpoint_findings(log: Log, config: Config) -> Iterator[Finding]:
    """Yield how many checkpoints are unpublished, by the configuration's targets."""
    for target in publishing_targets(config):
        waiting = len(unpublished(log, target))
        if waiting:
            yield warning(
                "checkpoints_unpublished",
                f"{counted(waiting, 'checkpoint')} not published to the {target.label} yet",
                f"is the process running, and does {publishing_setting(target.label)} take them?",
            )


def _nobody_works(reader: Reader) -> Iterator[Finding]:
    runs = len(reader.runs.open_runs())
    flows = len(reader.flows.open_exchanges()) + len(reader.flows.open_spawns())
    if runs or flows:
        yield warning(
            "nobody_at_work",
            f"open: {counted(runs, 'run')}, {counted(flows, 'flow')}; and no process writes the log",
            "start the process that hosts it: it goes on with them (`intersession runs --open`)",
        )


def _held(reader: Reader) -> Iterator[Finding]:
    """Yield the exchanges that wait for a release: nothing else lets them go on."""
    held = reader.flows.held_exchanges()
    if held:
        oldest = min(held, key=lambda one: (one.held_since_ms or 0, one.accepted))
        yield warning(
            "exchanges_held",
            f"{counted(len(held), 'exchange')} held, the longest since {moment(oldest.held_since_ms or 0)} UTC",
            f"`intersession runs --held` shows what waits, `intersession release {oldest.run_id}` lets it go on",
        )


def _held_calls(reader: Reader) -> Iterator[Finding]:
    """Yield the tool calls that wait for a release."""
    held = HeldCalls(reader.log).waiting()
    if held:
        oldest = held[0]
        yield warning(
            "calls_held",
            f"{counted(len(held), 'tool call')} held, the longest since {moment(oldest.recorded.time)} UTC",
            f"`intersession runs --held` shows what waits, `intersession release {oldest.held.hold_id[:8]}` lets it go on",
        )


def _undelivered(reader: Reader) -> Iterator[Finding]:
    waiting = reader.flows.deliveries_not_done(is_open=True, limit=_MOST)
    retrying = [row for row in waiting if row.state == "retrying"]
    if retrying:
        yield warning(
            "deliveries_retrying",
            f"{counted(len(retrying), 'text')} could not be delivered yet, {_channels(retrying)}{_why(reader, retrying)}",
            "look at the channel; they are tried again by themselves",
        )
    pending = [row for row in waiting if row.state == "decided"]
    if pending:
        yield warning(
            "deliveries_pending",
            f"{counted(len(pending), 'text')} still to go out, {_channels(pending)}",
            "is the process running, and is the channel registered there?",
        )
    lost = reader.flows.deliveries_not_done(is_open=False, limit=_MOST)
    for state, what, advice in (
        (
            "failed",
            "not delivered and not tried again",
            "mend the channel, and have what matters tried once more",
        ),
        ("unknown", "may not have been delivered", "look into the chats; nothing is sent twice by itself"),
    ):
        rows = [row for row in lost if row.state == state]
        if rows:
            which = "--failed" if state == "failed" else rows[0].delivery_id
            yield warning(
                f"deliveries_{state}",
                f"{counted(len(rows), 'text')} {what}, {_channels(rows)}{_why(reader, rows)}",
                f"{advice}: `intersession deliveries --failed`, `intersession deliveries retry {which}`",
            )


def _channels(rows: list[DeliverySummary]) -> str:
    return ", ".join(
        f"{channel}: {number}" for channel, number in Counter(row.channel for row in rows).items()
    )


def _why(reader: Reader, rows: list[DeliverySummary]) -> str:
    note = reader.flows.note_of(rows[0])
    return f"; the newest: {note.error}" if note is not None and note.error else ""


def setting_findings(config: Config, notices: tuple[str, ...]) -> Iterator[Finding]:
    """Yield the warnings of a start with a configuration, and agents without an implementation."""
    for notice in notices:
        yield note("setting", notice, "change it in the configuration, or leave it")
    providers = config.models.providers
    for agent_id in config.agent_ids if config.agents.list or providers else ():
        model = config.model_of(agent_id)
        if model is not None and model.partition("/")[0] not in providers:
            yield warning(
                "agent_without_model",
                f"agent {agent_id!r} has the model {model}, whose provider is not configured",
                f"configure models.providers.{model.partition('/')[0]}, or give the agent another model",
            )
    for name, provider in providers.items():
        without = keyless(name, provider)
        if without is not None:
            yield warning("provider_without_key", f"{without.path} {without.what}", f"give {without.path}")

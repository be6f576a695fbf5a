"""`intersession doctor`: what is wrong now, and what to do about it."""

from collections.abc import Iterable, Iterator
from typing import Annotated

import msgspec
from cyclopts import Parameter

from intersession.cli import checks
from intersession.cli.host.beside import host_beside
from intersession.cli.host.reading import reader_of, store_url
from intersession.cli.shell.answer import OK, READING, REFUSED, Answer, Reading
from intersession.cli.shell.terminal import Screen, safe
from intersession_actors.config import Config, load_config
from intersession_actors.errors import ConfigError, ToolRefused
from intersession_actors.failures import Finding, note, process_findings, wrong
from intersession_actors.host import MissingExtra
from intersession_actors.methods import clock_findings
from intersession_actors.system import prepared
from intersession_events.errors import IntersessionError, LogTooNew, StoreUnavailable
from intersession_events.stores import gateway_of, has_writer, located

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
    yield from checks.setting_findings(loaded.config, loaded.notices)
    if probe:
        yield from checks.endpoint_findings(loaded.config)
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
            yield from checks.lock_findings(reader.log, store)
            if store.is_file:
                yield from checks.disk_findings(store.place)
                yield from checks.damage_findings(reader.log)
            yield from clock_findings(reader.log, reader.clock.now_ms())
            yield from checks.work_findings(reader, at_work=has_writer(reader.log))
            yield from checks.checkpoint_findings(reader.log, config)
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

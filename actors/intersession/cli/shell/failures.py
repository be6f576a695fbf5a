"""Turns an exception into a command's failure. It imports errors of every room, so `run.py` loads it only then."""

from collections.abc import Sequence
from typing import Final

from cyclopts import CycloptsError, UnusedCliTokensError

from intersession.cli.shell.answer import NOT_VERIFIED, REFUSED, UNAVAILABLE, USAGE, Failure, UsageError
from intersession.fleet.register import FleetRefused
from intersession_actors.assembly.control.beside_log import ControlClient
from intersession_actors.rules.errors import ConfigError, ToolRefused
from intersession_actors.rules.gate.values import is_storable
from intersession_events.basics import errors
from intersession_events.stores.sqlite.writer_lock import holder_of
from intersession_projections.questions.places.grammar import UnknownPlace

_CODES: Final[tuple[tuple[type[Exception], int, str], ...]] = (
    (UsageError, USAGE, "usage"),
    (CycloptsError, USAGE, "usage"),
    (ConfigError, REFUSED, "invalid_config"),
    (FleetRefused, REFUSED, "fleet_refused"),
    (errors.MissingExtra, REFUSED, "missing_extra"),
    (errors.BadKey, REFUSED, "bad_key"),
    (errors.BadCheckpoint, REFUSED, "bad_checkpoint"),
    (errors.ImportFailed, REFUSED, "import_failed"),
    (errors.BackupFailed, REFUSED, "backup_failed"),
    (errors.BundleFailed, REFUSED, "bundle_failed"),
    (errors.MigrationFailed, REFUSED, "migration_failed"),
    (errors.ExportFailed, REFUSED, "export_failed"),
    (errors.ForkFailed, REFUSED, "fork_failed"),
    (errors.InvalidKey, REFUSED, "invalid_key"),
    (UnknownPlace, REFUSED, "invalid_request"),
    (errors.StoreLocked, UNAVAILABLE, "store_locked"),
    (errors.NoSuchStore, UNAVAILABLE, "no_store"),
    (errors.StoreUnavailable, UNAVAILABLE, "unavailable"),
    (errors.NotALog, UNAVAILABLE, "not_a_log"),
    (errors.LogTooNew, UNAVAILABLE, "log_too_new"),
    (errors.CorruptEvent, NOT_VERIFIED, "corrupt"),
    (errors.UnknownTopic, UNAVAILABLE, "unknown_topic"),
    (errors.IntersessionError, REFUSED, "error"),
    (OSError, UNAVAILABLE, "unavailable"),
)
"""The first that fits counts, so the special ones come first."""


def failure_of(error: Exception, tokens: Sequence[str] = ()) -> Failure | None:
    """Return the failure of a command with these arguments for an error; None for an error that is a bug of ours."""
    if isinstance(error, ToolRefused):
        # A store that goes while something is done is refused by who does it.
        exit_code = UNAVAILABLE if error.code == "unavailable" else REFUSED
        return Failure(exit_code, error.code, error.error, error.status)
    for kind, exit_code, code in _CODES:
        if isinstance(error, kind):
            return Failure(exit_code, code, _said(error, tokens))
    # A file's name need not be valid text: look for such an argument once encoding one has failed.
    odd = next((token for token in tokens if not is_storable(token)), None)
    if isinstance(error, UnicodeEncodeError) and odd is not None:
        return Failure(REFUSED, "invalid_request", f"{odd[:64]!a} is no valid UTF-8, type it anew")
    return None


def _said(error: Exception, tokens: Sequence[str]) -> str:
    match error:
        case errors.StoreLocked():
            return _locked(error, tokens)
        case UnusedCliTokensError(unused_tokens=list(left)):
            unused = ", ".join(ascii(token[:64]) for token in left)
            return f"no place for {unused}: --help lists what this command takes, and by which options"
        case errors.CorruptEvent():
            return f"{error}; `intersession verify` shows all that is wrong"
        case _:
            return str(error).strip()


def _locked(error: errors.StoreLocked, tokens: Sequence[str]) -> str:
    holder, there = holder_of(error.path), f"{error.path} has a writer already ({error.holder})"
    try:
        ControlClient(error.path)
    except ConnectionError:
        return f"{there}, which does not answer: it is stopped, or hangs; look at its log lines, or end it"
    except ToolRefused:
        pass  # no host of this user is there
    else:
        instead = "leave --agents out, so that it is asked" if "--agents" in tokens else "stop it first"
        return f"{there}, and this command has to be the only one: {instead}"
    if holder is None or holder.gateway is None:
        return (
            f"{there} that commands of this user can't ask: it has no gateway, and its "
            "control socket is off, another user's or not there; call its system from its own code, or stop it"
        )
    return (
        f"{there} with a gateway at {holder.gateway}, which this command "
        "could not use; stop the writer, or look why its gateway does not answer"
    )

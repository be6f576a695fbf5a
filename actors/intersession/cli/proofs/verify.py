"""`intersession verify`: proves that a log was not changed, and says what can't be proven."""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from cyclopts import Parameter, validators

from intersession.cli.host.reading import reading_log
from intersession.cli.proofs.proving import WantedProof, proof_alone
from intersession.cli.shell.answer import COMMON, NOT_VERIFIED, OK, Answer, Common, UsageError, read_given
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.shell.times import moment
from intersession_actors.owners.session.snapshots import snapshots_compared
from intersession_actors.rules.disclosure.redaction import redact_raw
from intersession_events.basics.errors import BadCheckpoint
from intersession_events.basics.machine import private_file
from intersession_events.basics.plain_json import JsonObject
from intersession_events.copies.bundles.verifying import check_bundle
from intersession_events.facts.reasons import counted
from intersession_events.log.verifying.erased_rows import ErasureSeen
from intersession_events.log.verifying.files import FilesSeen, files_compared
from intersession_events.log.verifying.prefix import PrefixSeen
from intersession_events.log.verifying.prefix_source import prefix_compared
from intersession_events.log.verifying.report import LogHead, VerifyReport
from intersession_events.log.verifying.verification import verify_log
from intersession_events.log.views import InlineView
from intersession_events.proofs.published import Published, published_in
from intersession_events.proofs.signatures import Trusted, trusted_keys
from intersession_events.proofs.walk import CheckpointsSeen
from intersession_events.stores.opened import open_log
from intersession_events.stores.portable.log import PortableLog
from intersession_events.stores.tailing.places import kept_inside
from intersession_events.stores.view_proof import views_proven
from intersession_projections.views.inline_views import inline_views
from intersession_projections.views.tailed_views import tailed_views

_MOST_FINDINGS = 50


def verify(
    bundle: Path | None = None,
    /,
    *,
    head: Annotated[list[Path] | None, Parameter(name=("--head", "--published"))] = None,
    trust: list[str] | None = None,
    quorum: Annotated[int, Parameter(validator=validators.Number(gte=0))] = 0,
    export_head: Path | None = None,
    key: Path | None = None,
    prove: str | None = None,
    prove_since: int | None = None,
    at: int | None = None,
    check_proof: Path | None = None,
    form: Literal["json", "tlog"] = "json",
    evidence: Path | None = None,
    views: Annotated[bool, Parameter(negative="--events-only")] = True,
    source: str | None = None,
    common: Common = COMMON,
) -> Answer:
    """Prove that a log or a bundle was not changed.

    Every row is hashed again, every chain walked, every view compared with what the events make of it. It says what is
    wrong, and what can't be proven. With --prove, --prove-since or --check-proof that alone is done: proofs of a part of the
    log, for those that do not have the log. Exit code 4 if anything is wrong. A log that is damaged or of a newer
    version is verified too; nothing is written
    to it.

    With a BUNDLE that is checked, by the same rules as verify.py in it has, and no log is looked at.

    Args:
        bundle: A zip of `intersession bundle`, or the folder that it was unpacked into: check that instead of the log.
        head: A head that was exported, or a file of checkpoints that were published: proves that nothing up to it was cut or rewritten.
        trust: A public key whose signatures prove checkpoints, a host's or a witness's, or a file of such keys; may be given several times.
        quorum: How many of the trusted witnesses must have cosigned a checkpoint; 0 is all of them.
        export_head: Write the verified head to this file, which must not exist. Keep it elsewhere.
        key: A file whose bytes sign the head that is exported, and prove the one that is given.
        prove: Print a proof that this stream (or session) is part of the last checkpoint, as JSON; nothing else is done.
        prove_since: Print a proof that the checkpoint of this position, or the last before it, is the beginning of the last one.
        at: Prove by the checkpoint of this position, or the last before it, instead of the last one.
        check_proof: Check a proof that --prove or --prove-since has printed. No log is looked at.
        form: How --prove prints it: as JSON, or in the form of C2SP's tlog-proof, by the note of the checkpoint.
        evidence: Check a file of two signed notes, as a witness keeps it: whether one log has signed two roots of one size. No log is looked at.
        views: Fold the log anew and compare every row of every view, and every snapshot. --events-only leaves that out.
        source: The log that a fork was made of: proves that what the fork began as is as it stands there.
    """
    secret = None if key is None else read_given(key, "--key")
    known, published = _kept_elsewhere(head or ())
    trusted = trusted_keys(trust or (), quorum=quorum)
    if bundle is not None:
        others = (export_head, key, prove, prove_since, at, check_proof, evidence, source, known)
        return _bundle_checked(bundle, trusted, published, is_alone=others == (None,) * len(others))
    wanted = WantedProof(prove, prove_since, check_proof, evidence, at, form)
    alone = proof_alone(wanted, common, trusted=trusted, published=published)
    if alone is not None:
        return alone
    if export_head is not None and export_head.exists():
        raise UsageError(f"--export-head: {export_head} exists already, name a new file")
    with reading_log(common) as log:
        path = log.path
        with Screen().progress("Verifying") as progress:
            report = verify_log(
                log,
                head=known,
                key=secret if known is not None else None,
                published=published,
                trusted=trusted,
                progress=progress,
            )
        if source is not None:
            report = _beside_source(report, log, source, published, trusted)
        files, altered = files_compared(log)
        report = report.with_files(altered)
        if views and not report.counts.get("table_altered"):
            with Screen().progress("Proving the views") as progress:
                report = report.with_views(*views_proven(log, _views_of(log), progress))
            with Screen().progress("Comparing the snapshots") as progress:
                report = report.with_snapshots(*snapshots_compared(log, progress))
    exported = None
    if export_head is not None and report.ok:
        signed = report.head if secret is None else report.head.signed(secret)
        exported = _written(signed, export_head)
    value: JsonObject = msgspec.to_builtins(report)
    value = {
        "ok": report.ok,
        "store": path,
        **value,
        "files": msgspec.to_builtins(files),
        "exportedTo": exported,
    }
    refused = export_head is not None and exported is None
    return Answer(
        value,
        lambda screen: _show(screen, report, files, path=path, exported=exported, refused=refused),
        OK if report.ok else NOT_VERIFIED,
    )


def _bundle_checked(
    bundle: Path, trusted: Trusted, published: Sequence[Published], *, is_alone: bool
) -> Answer:
    if not is_alone:
        raise UsageError(
            "what a bundle is held against is --trust and --published checkpoints, and no other option"
        )
    found = check_bundle(bundle, trusted=trusted, published=published)

    def show(screen: Screen) -> None:
        for line in found.lines():
            screen.line(line)

    value: JsonObject = msgspec.to_builtins(found.json)
    return Answer(value, show, OK if found.ok else NOT_VERIFIED)


def _beside_source(
    report: VerifyReport, log: PortableLog, source: str, published: Sequence[Published], trusted: Trusted
) -> VerifyReport:
    """Return the report of a fork with a comparison with its source log."""
    with open_log(source, read_only=True) as made_of:
        there = None
        if report.has_erased_prefix:
            of_it = [one for one in published if one.log_id == made_of.log_id]
            there = verify_log(made_of, published=of_it, trusted=trusted)
        return report.with_source(list(prefix_compared(log, made_of)), there)


def _views_of(log: PortableLog) -> Sequence[InlineView]:
    """Return the views that stand with the events: inline ones, and of a log that several processes share those that follow it."""
    inside = kept_inside(log)
    return [*inline_views(), *(view for view in tailed_views(redact_raw, log) if view.name in inside)]


_KEPT: Final = "--head, --published"
"""Two names of one option: files of either kind come with either."""


def _kept_elsewhere(paths: Sequence[Path]) -> tuple[LogHead | None, Sequence[Published]]:
    """Return the head that was exported, and the checkpoints that were published, out of files of either kind."""
    known: LogHead | None = None
    published: list[Published] = []
    for path in paths:
        text = read_given(path, _KEPT)
        try:
            published += published_in(text)
            continue
        except BadCheckpoint as error:
            problem = error
        if known is not None:
            raise UsageError(
                f"{_KEPT}: give one exported head; of published checkpoints there can be several files"
            )
        try:
            known = msgspec.json.decode(text, type=LogHead)
        except msgspec.MsgspecError as error:
            raise UsageError(
                f"{_KEPT}: {path} is neither an exported head ({error}) nor published checkpoints ({problem}); give a file "
                "that --export-head or checkpoints.publish wrote"
            ) from error
    return known, published


def _written(head: LogHead, path: Path) -> str:
    try:
        with private_file(path, new=True) as file:
            file.write(msgspec.json.format(msgspec.json.encode(head), indent=2) + b"\n")
    except OSError as error:
        raise UsageError(f"--export-head: {path} can't be written: {error.strerror}") from None
    return str(path)


def _proven_by(seen: CheckpointsSeen) -> str:
    parts = [f"{counted(seen.taken, 'checkpoint')}, true up to position {seen.up_to}"]
    if seen.signed_up_to:
        parts.append(f"signed by a trusted key up to {seen.signed_up_to}")
    if seen.published_up_to:
        parts.append(f"as published up to {seen.published_up_to}")
    if seen.cosigned_up_to:
        names = ", ".join(seen.witnesses)
        parts.append(f"cosigned up to {seen.cosigned_up_to} by {names}, at {moment(seen.cosigned_ms)}")
    return "; ".join(parts)


def _began_as(seen: PrefixSeen) -> str:
    parts = [
        f"up to position {seen.position} a part of the log {seen.log_id}, {counted(seen.streams, 'stream')}"
    ]
    if seen.proven:
        parts.append(f"{seen.proven} proven by its checkpoints")
    if seen.signed:
        parts.append(f"{seen.signed} by checkpoints that are signed by a trusted key, or published")
    return "; ".join(parts)


def _order_of(seen: ErasureSeen) -> tuple[object, ...]:
    """Return what the erasures of one order have in common: a person's words stand in many streams, each of which has its own."""
    why = seen.time, seen.by, seen.rule, seen.reason, seen.thinking
    return *why, seen.checkpoint, seen.signed, seen.published


def _erased_by(together: Sequence[ErasureSeen]) -> str:
    seen, last = together[0], together[-1]
    why = (f" by the rule {seen.rule}" if seen.rule else "") + (f', "{seen.reason}"' if seen.reason else "")
    covers = (
        "covered by no checkpoint"
        if seen.checkpoint is None
        else f"covered by the checkpoint of position {seen.checkpoint}"
    )
    sure = [*(["signed by a trusted key"] * seen.signed), *(["as published"] * seen.published)]
    at, of = f"#{seen.position}", seen.stream
    if len(together) > 1:
        at, of = f"{at} to #{last.position}", counted(len({one.stream for one in together}), "stream")
    return (
        f"{at} at {moment(seen.time)}: {seen.by} erased {_gone(together)} of {of}{why}; "
        f"{', '.join([covers, *(sure or ['not proven'])])}"
    )


def _gone(together: Sequence[ErasureSeen]) -> str:
    files = counted(number := sum(seen.files for seen in together), "file")
    rows = sum(seen.rows for seen in together)
    if not rows:
        return files
    what = "the thinking of " if together[0].thinking else ""
    return what + counted(rows, "payload") + (f" and {files}" if number else "")


def _files_seen(files: FilesSeen) -> str:
    parts = [f"{counted(files.right, 'file')} there as written"]
    if files.missing:
        parts.append(f"{files.missing} missing")
    if files.altered:
        parts.append(f"{files.altered} altered")
    if files.elsewhere:
        parts.append(f"{files.elsewhere} of the source log, and not there any more")
    if files.erased:
        parts.append(f"{files.erased} erased")
    return "; ".join(parts)


def _show_erasures(screen: Screen, report: VerifyReport) -> None:
    withheld = sum(erasure.rows for erasure in report.erasures if erasure.edition is not None)
    if withheld:
        screen.line(
            f"  {counted(withheld, 'payload')} withheld in this edition; their places in the chains are proven"
        )
    if report.erased > withheld:
        screen.line(
            f"  {counted(report.erased - withheld, 'payload')} erased; their places in the chains are proven"
        )
    if report.encrypted:
        screen.line(
            f"  {counted(report.encrypted, 'payload')} encrypted, and not seen: their keys are not at hand, or gone"
        )
    erasures = [erasure for erasure in report.erasures if erasure.edition is None]
    orders = [tuple(together) for _, together in groupby(erasures, key=_order_of)]
    for together in orders[:_MOST_FINDINGS]:
        screen.line(f"  {_erased_by(together)}")
    if rest := sum(map(len, orders[_MOST_FINDINGS:])):
        screen.dim(f"  and {counted(rest, 'erasure')} more; --json has the first thousand")


def _show(
    screen: Screen, report: VerifyReport, files: FilesSeen, *, path: str, exported: str | None, refused: bool
) -> None:
    size = f"{counted(report.events, 'event')} in {counted(report.streams, 'stream')}"
    if report.ok:
        screen.line(safe("verified: ", "bold green"), f"{size} of {path} are as they were written")
    else:
        found = sum(report.counts.values())
        screen.line(safe("NOT verified: ", "bold red"), f"{counted(found, 'finding')} in {size} of {path}")
        for finding in report.findings[:_MOST_FINDINGS]:
            place = "" if finding.position is None else f"#{finding.position} "
            where = "" if finding.stream is None else f" ({finding.stream}, version {finding.version})"
            if finding.view is not None:
                parts = (f"{finding.view}:", finding.table, finding.key)
                place = "".join(f"{part} " for part in parts if part)
            screen.line(f"  {place}", safe(finding.code, "bold"), f": {finding.problem}{where}")
        if found > _MOST_FINDINGS:
            screen.dim(f"  and {found - _MOST_FINDINGS} more; --json has the first thousand")
    for seen in report.prefix:
        screen.line(f"  {_began_as(seen)}")
    if report.checkpoints.taken:
        screen.line(f"  {_proven_by(report.checkpoints)}")
    _show_erasures(screen, report)
    if files != FilesSeen():
        screen.line(f"  {_files_seen(files)}")
    screen.unproven(report.unproven)
    if exported is not None:
        screen.line(
            f"The head (position {report.head.position}) is in {exported}; keep it out of reach of all that can reach the log."
        )
    elif refused:
        screen.line("No head was exported: that would vouch for a log that is damaged.")

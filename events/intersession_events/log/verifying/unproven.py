"""Says in words what a verification could not prove of a log without findings, and what would prove it. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from intersession_events.facts.reasons import counted
from intersession_events.log.verifying.erased_rows import ErasureSeen
from intersession_events.log.verifying.report import SNAPSHOTS_UNPROVEN, VIEWS_UNPROVEN, LogHead
from intersession_events.proofs.walk import CheckpointWalk


def unproven(
    log_id: str,
    known: LogHead | None,
    checkpoints: CheckpointWalk,
    *,
    position: int,
    signature_checked: bool,
    unread: Iterable[str],
    has_snapshots: bool,
    erased: int,
    erasures: Sequence[ErasureSeen],
) -> Iterator[str]:
    """Yield what is unproven, a sentence each.

    `known` is the head that was given, `signature_checked` whether its signature was; `position` is the last one of the log,
    `unread` what its store says that nobody has read, `erased` how many payloads are, by which `erasures`.
    """
    seen = checkpoints.seen
    yield from _of_head(known, is_checked=signature_checked)
    yield from checkpoints.unproven()
    # What each of them covers, and why it covers no more; who can't hash is held off by more than who can.
    covers = (
        (seen.published_up_to, "the checkpoint was published before it."),
        (0 if known is None else known.position, "the head was exported before it."),
        (seen.signed_up_to, "no checkpoint that was signed, with a key that is trusted, covers it."),
        (seen.cosigned_up_to, "no checkpoint that enough trusted witnesses cosigned covers it."),
    )
    sure = max(covers)
    kept = max(sure, (seen.up_to, "no checkpoint covers it."))
    elsewhere = max(seen.published_up_to, 0 if known is None else known.position)
    if kept[0] > sure[0]:
        after = f" what comes after position {sure[0]}" if sure[0] else " it from the start"
        yield (
            f"That no attacker who can hash rewrote{after}: the log's own checkpoints, up to position {kept[0]}, hold off "
            "plain SQL alone. It takes a signature that is checked (a trusted key), or a checkpoint or a head that was "
            "kept elsewhere."
        )
    upto, why = kept
    if not upto or upto > elsewhere:
        behind = f", behind position {elsewhere}," if elsewhere else ""
        anew = ", nor written anew with the key that signs its checkpoints" if seen.signed_up_to else ""
        yield (
            f"That the log was not set back{behind} to what it was once (an older copy, or its end cut off), and gone on with "
            f"from there{anew}: it is whole by itself then as well. It takes a checkpoint or a head that was kept elsewhere."
        )
    if not upto:
        why = "that takes a head that was exported earlier and kept elsewhere."
        yield (
            "That no events were cut off the end, and that the log was not rewritten from the start by an "
            f"attacker who can hash: {why}"
        )
    elif position > upto:
        yield f"That what comes after position {upto} was not cut short or forged: {why}"
    if not upto or position > upto:
        where = f" after position {upto}" if upto else ""
        yield (
            f"That no whole streams, and no last events of a stream, were taken away{where}, "
            f"with the rest renumbered: {why}"
        )
        yield (
            f"That events of different streams{where} stand in the order in which they were written: {why}"
        )
    if not elsewhere:
        yield (
            f"Which log this is: another one that is whole would be proven as well. Its id is {log_id}: compare it with that "
            "of the log that you know."
        )
    yield from _of_the_tables(unread)
    yield VIEWS_UNPROVEN
    if has_snapshots:
        yield SNAPSHOTS_UNPROVEN
    withheld = sum(one.rows for one in erasures if one.edition is not None)
    if erased > withheld:
        yield f"What {erased - withheld} erased payloads said."
    yield from _of_erasures(erasures)


def _of_erasures(erasures: Sequence[ErasureSeen]) -> Iterator[str]:
    withheld = sum(one.rows for one in erasures if one.edition is not None)
    if withheld:
        yield (
            f"What this edition withholds of {counted(withheld, 'payload')}, and that what stands there is what is left of "
            "it: that is its issuer's word. The bundle's proof.json proves hashes and places."
        )
    erasures = [one for one in erasures if one.edition is None]
    open_ones = [one for one in erasures if not (one.signed or one.published)]
    if open_ones:
        covered = sum(one.checkpoint is not None for one in open_ones)
        yield (
            f"That {len(open_ones)} of {len(erasures)} erasures, the first at position {open_ones[0].position}, are what their "
            "events say of who wanted them and why: no checkpoint that was signed with a trusted key, and none that was kept "
            f"elsewhere, covers those events; checkpoints of the log's own cover {covered} of them."
        )
    loose = sum(one.rows - one.bound for one in erasures)
    if loose:
        yield (
            f"That {loose} erased payloads were, but for their words, what stands in their place now: no checkpoint that "
            "was taken before they were erased says what is left of them, so the events that erased them alone do."
        )


def _of_head(known: LogHead | None, *, is_checked: bool) -> Iterator[str]:
    if known is not None and known.signature is None:
        yield "That the head itself is genuine: it is not signed. All that follows from it is proven only if it is."
    elif known is not None and not is_checked:
        yield (
            "That the head itself is genuine: it is signed, but its signature was not checked, since no key was "
            "given. All that follows from it is proven only if it is."
        )


def _of_the_tables(unread: Iterable[str]) -> Iterator[str]:
    yield (
        "When the log was made, and how often it was opened since its last event (`log_identity`): no hash covers that."
    )
    yield from unread

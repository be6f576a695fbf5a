"""How a flow stands with its deliveries, and whether anybody works on it: what `runs` and `replay` say of it."""

from intersession.cli.shell import clock
from intersession_actors.debugger import Stands, View, smells_of
from intersession_actors.service import Reader
from intersession_projections.flow_summary import in_words
from intersession_projections.flows import DeliveryNote, DeliverySummary
from intersession_projections.run_outcomes import RunOutcome
from intersession_projections.wording import route_text


class Standing(Stands):
    """How a flow stands, in words."""

    @property
    def can_be_retried(self) -> bool:
        """Whether it is a run that failed, and nobody has tried it again."""
        flow = self.flow
        return isinstance(flow, RunOutcome) and flow.failed and flow.is_alone and self.retry is None

    def in_words(self) -> str:
        """Return where it stands, and what became of its texts."""
        whole = isinstance(self.flow, RunOutcome)  # how a flow was closed says already that a text arrived
        told = [
            delivery_in_words(row, note, at_work=self.at_work is not False)
            for row, note in self.deliveries
            if whole or row.state != "done"
        ]
        if self.held is not None:
            told.append(f"the {self.held.step} that waits: {self.held.text}")
        if self.retry is not None:
            told.append(
                f"tried again by {self.retry.run_id}: {in_words(self.retry, at_work=self.at_work is not False)}"
            )
        if self.smells:
            told.append(f"smells: {', '.join(dict.fromkeys(smell['code'] for smell in self.smells))}")
        how = in_words(self.flow, at_work=self.at_work is not False or self.frozen)
        if not isinstance(self.flow, RunOutcome) and self.flow.close_reason == "announced":
            got_it = [_place(row, note) for row, note in self.deliveries if row.state == "done"]
            how = " to ".join(
                [how, *([" and ".join(got_it)] if got_it else [])]
            )  # how it was closed stands last
        return "; ".join([how, *(["FROZEN in this fork"] if self.frozen else []), *told])

    def with_smells(self, reader: Reader, at: int | None = None) -> "Standing":
        """Return it with what is seldom meant in it, as it stood at a position."""
        return self._replace(smells=tuple(smells_of(View(reader), self.flow, at)))


def _place(row: DeliverySummary, note: DeliveryNote | None) -> str:
    return row.channel if note is None else route_text(note.route)


def delivery_in_words(  # noqa: C901 - one case a state
    row: DeliverySummary, note: DeliveryNote | None, *, at_work: bool
) -> str:
    """Return what became of a text, in a few words."""
    place = _place(row, note)
    why = f": {note.error}" if note is not None and note.error else ""
    match row.state:
        case "done":
            return f"delivered to {place}"
        case "failed":
            return f"NOT delivered to {place}{why}"
        case "denied":
            return f"not delivered to {place}, the send policy forbids it{why}"
        case "withheld":
            return f"would be delivered to {place}: the channels of a fork are sealed"
        case "unknown":
            return f"may not have been delivered to {place}{why}"
        case "retrying":
            at = "" if row.retry_at_ms is None else f", tried again at {clock(row.retry_at_ms)}"
            return f"not delivered to {place} yet{at if at_work else ', the next start tries again'}{why}"
        case "started" if at_work:
            return f"being delivered to {place}"
        case "started":
            return f"cut off while it was delivered to {place}"
        case "decided" if at_work:
            return f"waits to be delivered to {place}, perhaps until its channel is registered"
        case "decided":
            return f"not delivered to {place} yet, the next start does it"

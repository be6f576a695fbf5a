"""Decision records of deliveries: how commands and circumstances are written, and read again. Pure."""

from typing import Final

from intersession_actors.outside.channels.outcomes import Delivered, NotDelivered
from intersession_actors.owners.delivery.commands import (
    DeliveryCommand,
    DeliveryReturned,
    GiveUpDelivery,
    RetryDelivery,
    SendChecked,
    TooOld,
)
from intersession_actors.owners.delivery.effects import effects
from intersession_actors.owners.delivery.rules import Circumstances, Delivery, decide, fold
from intersession_actors.owners.flows.rules import RecordRead, Rules
from intersession_actors.owners.streams.commands import Resume
from intersession_actors.owners.streams.judgements import judgement_value
from intersession_actors.owners.streams.records import Wording, Words, present
from intersession_actors.rules.policy.sending import Verdict
from intersession_events import facts
from intersession_events.basics.plain_json import JsonMapping, JsonObject


def inputs_of(command: DeliveryCommand) -> JsonObject:
    """Return a command's fields in a record, beside its name."""
    match command:
        case SendChecked():
            verdict = command.verdict
            inputs: JsonObject = {
                "after": command.after,
                "denied": not verdict.allowed,
                "rule": verdict.rule,
            }
            if verdict.judged is not None and not verdict.allowed:
                inputs["judged"] = judgement_value(verdict.judged)
            return present(inputs)
        case DeliveryReturned(result=Delivered() as delivered):
            return present(
                {
                    "attempt": command.attempt,
                    "begins": command.begins,
                    "receipt": _told(delivered.receipt),
                    "sent": delivered.sent,
                }
            )
        case DeliveryReturned(result=NotDelivered() as failed):
            return {"error": Wording(failed.error)} | present(
                {
                    "attempt": command.attempt,
                    "begins": command.begins,
                    "inDoubt": failed.in_doubt,
                    "laterMs": failed.later_ms,
                    "retry": failed.retry,
                    "traceback": _told(failed.traceback),
                }
            )
        case RetryDelivery() | GiveUpDelivery():
            return {"by": command.by}
        case _:
            return {}


def knew_of(state: Delivery, now: Circumstances) -> JsonObject:
    """Return the circumstances in a record: only values that differ from the usual ones."""
    del state
    return present(
        {
            "cutOff": now.cut_off,
            "idempotent": now.idempotent,
            "noChannel": not now.has_channel,
            "nowMs": now.now_ms,
            "sealed": now.sealed,
            "tooOldS": now.too_old_s,
        }
    )


def command_in(read: RecordRead) -> DeliveryCommand | None:
    """Return the command of a record; None for one that is not a delivery's."""
    stream, inputs = read.stream, read.record.inputs
    match read.record.asked:
        case "SendChecked":
            denied: bool = inputs.get("denied", False)
            verdict = Verdict(action="deny" if denied else "allow", rule=inputs.get("rule", ""))
            return SendChecked(stream=stream, verdict=verdict, after=inputs.get("after", 0))
        case "DeliveryReturned":
            return DeliveryReturned(
                stream=stream,
                attempt=inputs["attempt"],
                begins=inputs.get("begins", 0),
                result=_result(inputs, read.words),
            )
        case "RetryDelivery":
            return RetryDelivery(stream=stream, by=inputs["by"])
        case "GiveUpDelivery":
            return GiveUpDelivery(stream=stream, by=inputs["by"])
        case "TooOld":
            return TooOld(stream=stream)
        case "Resume":
            return Resume(stream=stream)
        case _:
            return None


def circumstances_in(read: RecordRead, state: Delivery) -> Circumstances:
    """Return the circumstances from a record."""
    del state
    knew = read.record.knew
    return Circumstances(
        sealed=knew.get("sealed", False),
        has_channel=not knew.get("noChannel", False),
        too_old_s=knew.get("tooOldS", 0),
        cut_off=knew.get("cutOff", False),
        idempotent=knew.get("idempotent", False),
        now_ms=knew.get("nowMs", 0),
    )


def _told(words: str | None) -> Wording | None:
    return None if words is None else Wording(words)


def _result(inputs: JsonMapping, words: Words) -> Delivered | NotDelivered:
    if "error" in inputs:
        return NotDelivered(
            error=words(inputs["error"]),
            retry=inputs.get("retry", False),
            in_doubt=inputs.get("inDoubt", False),
            traceback=words(inputs["traceback"]) if "traceback" in inputs else None,
            later_ms=inputs.get("laterMs"),
        )
    return Delivered(
        receipt=words(inputs["receipt"]) if "receipt" in inputs else None,
        sent=inputs.get("sent"),
    )


RULES: Final = Rules[Delivery, DeliveryCommand, Circumstances](
    commands=DeliveryCommand,
    events=facts.DeliveryEvent,
    begins=facts.DeliveryDecided,
    fold=fold,
    decide=decide,
    effects=effects,
    inputs_of=inputs_of,
    knew_of=knew_of,
    command_in=command_in,
    circumstances_in=circumstances_in,
)

"""`intersession checkpoint`: takes a checkpoint of the log now."""

from intersession.cli.host import operator_of
from intersession.cli.shell import READING, Answer, Reading, Screen, safe


def checkpoint(*, reading: Reading = READING) -> Answer:
    """Take a checkpoint: a proof of all that is in the log by now.

    What is in it up to here can't be reordered or cut without a trace. Where the log has a host, that one takes
    it. If nothing is new, the last one is shown again. It is signed and published as the
    configuration says.
    """
    with operator_of(reading) as operator:
        answer = operator.call("checkpoints.take", {})

    def show(screen: Screen) -> None:
        signed = f", signed by {answer['keyId']}" if answer.get("keyId") else ""
        screen.line(
            safe("checkpoint: ", "bold green"),
            f"{answer['count']} events up to position {answer['position']}{signed}",
        )
        screen.line(safe(f"  {answer['hash']}", "dim"))

    return Answer(answer, show)

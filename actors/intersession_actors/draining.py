"""What is still let out when a system stops: texts that are decided, for channels that are here."""

from intersession_actors.core import Core
from intersession_projections.flow_rows import DeliverySummary

LOOK_AGAIN_S = 0.05


def drain(core: Core, seconds: float) -> bool:
    """Wait until no delivery is on its way any more, at most `seconds`; True if none is.

    One that is to be tried again later, or whose channel is not here, is not waited for: the log has it.
    """
    clock = core.clock
    until = clock.monotonic() + seconds
    while any(_is_on_its_way(core, stream) for stream in core.flows.open_deliveries()):
        left = until - clock.monotonic()
        if left <= 0:
            return False
        core.log.wait_for(core.log.head() + 1, timeout=min(LOOK_AGAIN_S, left))
    return True


def _is_on_its_way(core: Core, stream: str) -> bool:
    delivery: DeliverySummary | None = core.flows.delivery(stream.partition(":")[2])
    return (
        delivery is not None
        and delivery.state in {"decided", "started"}
        and core.world.channels.has(delivery.channel)
    )

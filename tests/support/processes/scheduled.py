"""A host with a scheduled job that is due: it runs the job, and may be killed on the way. `python -m … URL CLOCK_MS`."""

import sys

from intersession import SessionSystem, echo
from intersession_events.facts import RunCompleted
from support.fakes import ManualClock
from support.running import wait_for

CONFIG = {
    "cron": {
        "jobs": {
            "news": {
                "schedule": {"kind": "cron", "expr": "*/10 * * * *"},
                "payload": {"message": "how is it going?"},
                "delivery": {"mode": "none"},
            }
        }
    }
}
DONE = "done"


def main(url: str, now_ms: int) -> None:
    with SessionSystem(url, agents={"main": echo()}, config=CONFIG, clock=ManualClock(now_ms)) as system:
        system._parts.scheduler._asked(lambda: None)  # it has looked what is due
        wait_for(system, RunCompleted)
        sys.stdout.write(DONE)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

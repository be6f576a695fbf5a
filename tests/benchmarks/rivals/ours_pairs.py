"""Intersession itself: reply-back loops and their announces, or sends that wait. Leaves its log, and how its commits were cut."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.logs import open_sessions, session_key
from benchmarks.pingpong import Talk
from benchmarks.rivals import meter
from benchmarks.systems import FULL_LOOP, NO_LOOP, answers_at_once, system
from intersession_events.log.recorded import Recorded


def main(directory: Path, sizes: dict[str, Any]) -> None:
    batches: list[int] = []
    agents = {"main": answers_at_once, "desk": answers_at_once}
    store = f"{sizes['url']}&schema={directory.parent.name}&files={directory}" if "url" in sizes else None
    with system(directory, agents, NO_LOOP if sizes["turns"] == 1 else FULL_LOOP, store=store) as running:
        pairs = [
            (session_key(number, "main"), session_key(number, "desk")) for number in range(sizes["pairs"])
        ]
        open_sessions(running.log, [key for pair in pairs for key in pair])

        def note(batch: Sequence[Recorded]) -> None:
            batches.append(batch[-1].position)

        talk = Talk(running)

        def send(pair: int, _number: int) -> None:
            speaker, other = pairs[pair]
            arguments = {"sessionKey": other, "message": meter.MESSAGE, "timeoutSeconds": 30}
            answer = running.tools(speaker).call("sessions_send", arguments)
            if answer["status"] != "ok":
                raise RuntimeError(f"the send was not answered: {answer}")

        stop = running.log.on_committed(note)
        meter.talk(send if sizes["turns"] == 1 else lambda pair, _: talk.over(pairs[pair]), sizes)
        stop()
    (directory / "batches.json").write_text(json.dumps(batches), encoding="ascii")


if __name__ == "__main__":
    main(*meter.given())

"""(b) The round trip of a `sessions_send` that waits, with an agent that answers at once: all that is left is ours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.bare import Bare
from benchmarks.figures import Figure, quantile, spread, timed
from benchmarks.logs import open_sessions
from benchmarks.systems import NO_LOOP, answers_at_once, system
from intersession_events.log.recorded import Recorded

NAME = "send"
ROUNDS = 5
MAIN = "agent:main:main"


def measure(directory: Path, *, sends: int = 500) -> list[Figure]:
    """Send from a session and from the operator; count what it takes of the log."""
    bare = Bare(directory / "bare.db")
    bare_commits: list[float] = []
    from_session: list[float] = []
    from_operator: list[float] = []
    commits: list[int] = []
    with system(directory, {"main": answers_at_once, "desk": answers_at_once}, NO_LOOP) as running:
        session, operator = running.tools(MAIN), running.tools()
        open_sessions(running.log, [MAIN])

        def send(tools: Any) -> None:
            arguments = {"agentId": "desk", "message": "Is it done?", "timeoutSeconds": 30}
            answer = tools.call("sessions_send", arguments)
            if answer["status"] != "ok":
                raise RuntimeError(f"the send was not answered: {answer}")

        timed(lambda: send(session), max(1, sends // 10))

        def count(batch: Sequence[Recorded]) -> None:
            commits.append(len(batch))

        for _ in range(ROUNDS):
            # By turns, so that whatever else the machine does meets them all.
            bare_commits.append(bare.commit_ms(sends // ROUNDS))
            stop = running.log.on_committed(count)
            from_session += timed(lambda: send(session), sends // ROUNDS)
            stop()
            from_operator += timed(lambda: send(operator), sends // ROUNDS)
    bare.close()
    commit = quantile(bare_commits, 0.5)
    against = {"bare commit": commit}
    return [
        Figure(benchmark=NAME, name="bare commit", value=commit, unit="ms"),
        *spread(NAME, "from a session", from_session, against=against),
        *spread(NAME, "from the operator", from_operator, against=against),
        Figure(benchmark=NAME, name="commits a send", value=len(commits) / len(from_session), unit="commits"),
        Figure(benchmark=NAME, name="events a send", value=sum(commits) / len(from_session), unit="events"),
    ]

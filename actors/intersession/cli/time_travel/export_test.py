"""`intersession export-test`: a run as a test that replays it sealed, for any test suite."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from intersession.cli.shell.answer import READING, Answer, Reading, UsageError
from intersession.cli.shell.terminal import Screen, safe
from intersession.cli.time_travel.show import debugger_of
from intersession_actors.hindsight.debugger.forks import ForkViews
from intersession_actors.hindsight.replaying.exported.as_test import name_of_test, text_of_test
from intersession_actors.hindsight.replaying.recordings import Recordings
from intersession_events.basics.machine import private_file
from intersession_events.basics.plain_json import JsonObject
from intersession_events.facts.reasons import counted
from intersession_projections.questions.places.runs_named import flow_id


def export_test(
    run: Annotated[str, Parameter(name="RUN")],
    /,
    *,
    output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
    reading: Reading = READING,
) -> Answer:
    """Write a test that replays a run sealed.

    It is a module for pytest, and beside it the recording: the events of all streams that the run touches, as lines of JSON, whole
    texts among them. Both run anywhere, offline, with no more than this package; they fail when today's rules decide differently.

    Args:
        run: An exchange, a spawn or a run, by any name that is shown; or a fork.
        output: The test's file, which must not exist; its recording lies beside it. Default: test_run_ID.py, here.
    """
    with debugger_of(reading) as debugger, ForkViews(debugger.view) as forks:
        view, name = forks.meant(run, field="run")
        flow = view.flow(name)
        test = Path(name_of_test(flow_id(flow))) if output is None else output
        recording = test.with_suffix(".jsonl")
        if test.suffix != ".py":
            raise UsageError(f"--output: {test} is no Python file, end its name in .py")
        for one in (test, recording):
            if one.exists():
                raise UsageError(f"--output: {one} exists already, name a new file")
        try:
            events = Recordings(view.log).write(flow, recording)
            try:
                with private_file(test, new=True) as file:
                    file.write(text_of_test(flow_id(flow)).encode())
            except BaseException:
                recording.unlink()  # nobody wants the half of it
                raise
        except OSError as error:
            raise UsageError(f"--output: {test} can't be written: {error.strerror}") from None
    value: JsonObject = {
        "run": flow_id(flow),
        "test": str(test),
        "recording": str(recording),
        "events": events,
    }

    def show(screen: Screen) -> None:
        screen.line(safe("written: ", "bold green"), f"{test}, and {counted(events, 'event')} in {recording}")
        screen.line(f"  run it: pytest {test}")

    return Answer(value, show)

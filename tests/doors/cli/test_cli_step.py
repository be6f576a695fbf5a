"""`intersession step`: a run on a screen, forwards and back, with what everybody saw there."""

import asyncio
import shutil
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widgets import Input, Static

from intersession import SessionSystem, echo, open_log
from intersession.cli.time_travel.parts import DrawnRun, TextScreen
from intersession.cli.time_travel.screen import StepScreen
from intersession.cli.time_travel.stepper import Stepper
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.rules.errors import ToolRefused
from support.doors.command_line import DemoLog, ran, ran_as_process
from support.running import SEES_ALL, Gate


@contextmanager
def debugging(demo_log: DemoLog) -> Generator[Debugger]:
    with open_log(demo_log.path) as opened:
        yield opened.debug


@pytest.fixture
def stepper(demo_log: DemoLog) -> Iterator[Stepper]:
    with debugging(demo_log) as debugger:
        yield Stepper(debugger, demo_log.exchange[:8])


@pytest.mark.clause("STEP-1")
def test_every_event_of_the_run_is_come_to_once_forwards_and_back(stepper: Stepper) -> None:
    forwards = [stepper.position]
    while stepper.event(1):
        forwards.append(stepper.position)
    back = [stepper.position]
    while stepper.event(-1):
        back.append(stepper.position)

    assert forwards == [stepper.steps[0].position - 1, *(step.position for step in stepper.steps)]
    assert back == forwards[::-1]
    assert not stepper.event(-1)


@pytest.mark.clause("STEP-1")
def test_answers_causes_effects_and_words_are_come_to(stepper: Stepper) -> None:
    answers = []
    while stepper.turn(1):
        answers.append(stepper.step.event if stepper.step else "")
    assert answers.count("turn_ended") == 6

    stepper.go(f"{stepper.run}@turn:3")
    at = stepper.position
    assert stepper.effect()
    assert stepper.cause()
    assert stepper.position == at

    stepper.jump(0)
    assert stepper.find("NORTHERN ROAD")
    assert stepper.step is not None
    assert "northern road" in stepper.step.words
    assert not stepper.find("nobody said this")


@pytest.mark.clause("STEP-1")
def test_it_runs_to_a_break_and_back_to_it(stepper: Stepper) -> None:
    stepper.breaks = "kind:turn_ended"
    stops = 0
    while stepper.run_to_break(1):
        stops += 1
    assert stops == 6
    last = stepper.position
    assert stepper.run_to_break(-1)
    assert stepper.position < last

    stepper.jump(0)
    stepper.breaks = "session:discord:lab"
    assert stepper.run_to_break(1)
    assert stepper.step is not None
    assert stepper.step.event == "delivery_decided"
    stepper.breaks = ""
    assert stepper.run_to_break(1)
    assert stepper.index == len(stepper.steps)


@pytest.mark.clause("STEP-1")
def test_a_place_and_another_run_of_the_session(stepper: Stepper, demo_log: DemoLog) -> None:
    assert stepper.go(f"{stepper.run}@turn:2")
    here = stepper.position
    assert stepper.event(-1)
    assert stepper.go("@turn:2")  # of this run
    assert stepper.position == here
    assert stepper.step is not None
    assert stepper.step.event == "turn_ended"
    with pytest.raises(ToolRefused, match="noon"):
        stepper.go("noon")
    before = stepper.other_run(-1)
    assert before is not None
    with debugging(demo_log) as debugger:
        assert debugger.view.flow(before) != debugger.view.flow(stepper.run)


@pytest.mark.ci
@pytest.mark.clause("STEP-1", "PLACE-5")
async def test_the_screen_shows_the_place_and_moves_with_the_keys(demo_log: DemoLog) -> None:
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange, at=f"{demo_log.exchange}@turn:2")
        async with app.run_test(size=(140, 40)) as pilot:
            assert said(app, "#place").startswith("after turn 2: research has answered, main has not yet")
            assert "Does that hold for a van" in said(app, "#messages0")
            assert "turn_ended" in said(app, "#happened")

            await pilot.press("n")
            assert said(app, "#place").startswith("after turn 3")
            await pilot.press("left", "right")
            assert said(app, "#place").startswith("after turn 3")
            await pilot.press("slash", *"noon", "enter")
            assert "before noon" in said(app, "#happened")
            await pilot.press("g", *"head", "enter")
            assert "exchange_closed" in said(app, "#happened")
            await pilot.press("home")
            assert "before the first event" in said(app, "#happened")
            await pilot.press("g", *f"{demo_log.exchange}@turn:5", "enter")
            assert "loop_cut: " in said(app, "#happened")


@pytest.mark.clause("STEP-1", "LENS-1")
@pytest.mark.ci
async def test_lens_differences_and_keys_are_shown_over_it(demo_log: DemoLog) -> None:
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange, at=f"{demo_log.exchange}@turn:2")
        async with app.run_test(size=(140, 40)) as pilot:
            for key, words in (
                ("l", "agent:research:main, attempt 1: as recorded"),
                ("L", "agent:main:main, attempt 1: as recorded"),
                ("w", "because"),
                ("question_mark", "run on to the break"),
            ):
                await pilot.press(key)
                assert isinstance(app.screen, TextScreen)
                assert words in seen(app)
                await pilot.press("escape")
                assert not isinstance(app.screen, TextScreen)
            for typed, words in (
                ("", "exchanges/"),
                ("@turn:1", "only in a"),
                (demo_log.spawn[:8], "first difference: start"),
            ):
                await pilot.press("d")
                app.query_one("#ask", Input).value = typed
                await pilot.press("enter")
                await pilot.pause()
                assert isinstance(app.screen, TextScreen)
                assert words in str(app.screen.query_one("#text", Static).render())
                await pilot.press("escape")


@pytest.mark.clause("STEP-1")
async def test_what_is_opened_is_left_by_its_own_key_and_a_question_by_escape(demo_log: DemoLog) -> None:
    """A question could be left by its answer alone, the help not by `?`, and arrows moved the place behind it."""
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange, at=f"{demo_log.exchange}@turn:2")
        async with app.run_test(size=(80, 24)) as pilot:
            here = said(app, "#place")
            await pilot.press("question_mark")
            assert isinstance(app.screen, TextScreen)
            await pilot.press("right", "question_mark")
            assert not isinstance(app.screen, TextScreen)
            await pilot.press("f")
            assert app.query_one("#ask", Input).has_focus
            await pilot.press("escape")
            assert not app.query_one("#ask", Input).display
            assert said(app, "#place") == here
            await pilot.press("right")
            assert said(app, "#place") != here


@pytest.mark.clause("STEP-1")
@pytest.mark.parametrize(("width", "keys"), [(40, ("? keys", "q quit")), (80, ("w why", "f fork"))])
async def test_a_narrow_screen_names_the_keys_that_lead_on(
    demo_log: DemoLog, width: int, keys: tuple[str, ...]
) -> None:
    """At 80 columns the line ended before why, lens, fork, and the help."""
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange)
        async with app.run_test(size=(width, 24)) as pilot:
            await shown(app, pilot, "? keys")
            last = seen(app).splitlines()[-1]

    assert [key for key in keys if key not in last] == []


@pytest.mark.clause("STEP-1")
async def test_where_it_is_narrow_the_event_stands_below_the_diagram(demo_log: DemoLog) -> None:
    """At 40 columns nothing was seen but the diagram, and of a wider one a part."""
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange, at=f"{demo_log.exchange}@turn:1")
        async with app.run_test(size=(40, 14)) as pilot:
            await shown(app, pilot, "turn_ended", "│ turn")
            assert "╭─ research" not in seen(app)
            await pilot.resize_terminal(120, 30)
            await shown(app, pilot, "turn_ended", "│ turn", "╭─ research")


@pytest.mark.clause("STEP-1", "WHY-1", "WHY-2")
async def test_why_says_on_the_screen_what_the_command_says(demo_log: DemoLog) -> None:
    """It named events by their stored names, and neither inputs nor what would have changed it."""
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange, at=f"{demo_log.exchange}@turn:5+1")
        async with app.run_test(size=(200, 60)) as pilot:
            await pilot.press("w")
            told = str(app.screen.query_one("#text", Static).render())

    assert told.strip() == ran("why", f"{demo_log.exchange}@turn:5+1", "--store", demo_log.path).out.strip()


@pytest.mark.clause("STEP-1", "FORK-1")
@pytest.mark.ci
async def test_a_run_is_forked_where_it_stands_by_the_command_that_is_shown(
    demo_log: DemoLog, tmp_path: Path
) -> None:
    path = Path(shutil.copy(demo_log.path, tmp_path / "demo.db"))
    with open_log(str(path)) as opened:
        app = StepScreen(
            opened.debug, demo_log.exchange, at=f"{demo_log.exchange}@turn:2", log=["--store", str(path)]
        )
        async with app.run_test(size=(140, 40)) as pilot:
            ask, here = app.query_one("#ask", Input), app._stepper.position
            await pilot.press("f")
            assert ask.value == (f"intersession fork {demo_log.exchange} --at {here} --store {path} --no-run")
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert isinstance(app.screen, TextScreen)
            assert f"forked: at position {here}" in str(app.screen.query_one("#text", Static).render())
            await pilot.press("escape", "f")
            ask.value = "rm -rf 'x"
            await pilot.press("enter")
            await app.workers.wait_for_complete()
            assert not isinstance(app.screen, TextScreen)
    (made,) = ran("forks", "--store", path, "--json").json["forks"]
    assert made["place"]["position"] == here


def seen_of(drawn: DrawnRun) -> str:
    return "\n".join(drawn.render_line(y).text for y in range(drawn.size.height))


@pytest.mark.clause("STEP-1")
async def test_only_the_lines_that_are_seen_are_drawn_and_the_place_is_among_them(demo_log: DemoLog) -> None:
    with debugging(demo_log) as debugger:
        app = StepScreen(debugger, demo_log.exchange)
        async with app.run_test(size=(100, 20)) as pilot:
            await pilot.press("end")
            await pilot.pause()
            drawn = app.query_one(DrawnRun)
            assert drawn.virtual_size.height > drawn.size.height
            assert "The exchange is over" in seen_of(drawn)
            await pilot.resize_terminal(100, 14)
            await pilot.pause()
            assert "The exchange is over" in seen_of(drawn)


@pytest.mark.clause("STEP-1")
async def test_who_follows_and_stands_at_the_end_goes_along_with_what_comes(tmp_path: Path) -> None:
    gate = Gate()
    slow = gate.saying("it is open")

    with SessionSystem(tmp_path / "log.db", agents={"main": echo(), "desk": slow}, config=SEES_ALL) as system:
        asked = {"agentId": "desk", "message": "is it open?", "timeoutSeconds": 0}
        run = (await system.tools("agent:main:main").acall("sessions_send", asked))["runId"]
        await asyncio.to_thread(gate.reached)
        app = StepScreen(system.debug, run, at="head", follow=True)
        async with app.run_test(size=(140, 40)) as pilot:
            assert "run_started" in said(app, "#happened")
            gate.open()
            for _ in range(200):
                await pilot.pause(0.05)
                if "no_route" in said(app, "#happened"):
                    break
            assert "no_route" in said(app, "#happened")
            assert "it is open" in said(app, "#messages1")


@pytest.mark.clause("STEP-1")
def test_who_goes_on_at_the_end_comes_to_what_has_come_meanwhile(tmp_path: Path) -> None:
    """What comes next was said beside the place, and that there is no event there when one went on to it."""
    gate = Gate()
    with SessionSystem(tmp_path / "log.db", agents={"main": gate.saying("late")}) as system:
        said = system.inbound(channel="telegram", chat_id="42", sender="ann", text="go", wait=None)
        gate.reached()
        stepper = Stepper(system.debug, said["runId"])
        while stepper.event(1):
            pass
        stood = stepper.position
        gate.open()
        system.gateway.perform("agent.wait", {"runId": said["runId"], "timeoutMs": 20_000})

        assert stepper.event(1)
        assert stepper.position > stood
        come = stepper.position
        assert stepper.event(-1)
        assert stepper.turn(1)
        assert stepper.position == come


def test_what_is_no_run_is_refused_before_there_is_a_screen(demo_log: DemoLog) -> None:
    shown = ran("step", "nothing", "--store", demo_log.path)
    assert (shown.exit_code, shown.out) == (1, "")
    assert "no exchange, spawn or run is called 'nothing'" in shown.err
    assert ran("step", "x", "--json", "--store", demo_log.path).exit_code == 2


def test_without_a_terminal_there_is_no_screen_and_no_waiting_for_keys(demo_log: DemoLog) -> None:
    """`step RUN </dev/null` filled a pipe with a screen, and never came back (issue 10)."""
    refused = ran_as_process("step", demo_log.exchange, "--store", demo_log.path)
    assert (refused.exit_code, refused.out) == (2, "")
    assert f"a screen needs a terminal: `intersession show {demo_log.exchange}`" in refused.err
    assert "\x1b" not in refused.err


def said(app: StepScreen, name: str) -> str:
    return str(app.query_one(name, Static).render())


async def shown(app: StepScreen, pilot: Pilot[None], *words: str) -> None:
    """Wait until all of some words are seen."""
    for _ in range(500):
        if all(word in seen(app) for word in words):
            return
        await pilot.pause()
    raise AssertionError(f"{words} are not all in:\n{seen(app)}")


def seen(app: StepScreen) -> str:
    """Return what somebody sees on the whole screen, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())

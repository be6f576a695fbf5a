"""The screen of `intersession step`: diagram, transcripts side by side, the event with its changes, and the keys."""

import asyncio
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from io import StringIO
from typing import ClassVar, Final, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Resize
from textual.widgets import Footer, Input, Static

from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.story.printing import parts, speaker
from intersession.cli.time_travel.diff import change_in_words, difference_lines
from intersession.cli.time_travel.parts import DrawnRun, TextScreen, keys_table
from intersession.cli.time_travel.stepper import Direction, Stepper
from intersession.cli.time_travel.why import show_why
from intersession_actors.hindsight.debugger.debugger import Debugger
from intersession_actors.hindsight.debugger.smells import SmellAnswer
from intersession_actors.rules.errors import ToolRefused
from intersession_events.basics.errors import LogError
from intersession_events.basics.plain_json import JsonObject
from intersession_projections.questions.diagram.text import Line

T = TypeVar("T")

_LOOK_AGAIN_S: Final = 0.5
_MESSAGES: Final = 20
_NARROWEST: Final = 40
_BESIDE: Final = 80
_ALL_BELOW: Final = 30
"""The number of columns from which the parts stand side by side; else the number of lines from which all are stacked."""


_MOVES: Final[Mapping[str, tuple[Callable[[Stepper, Direction], bool], str]]] = {
    "event": (Stepper.event, "no event there"),
    "turn": (Stepper.turn, "no answer there"),
    "edge": (lambda at, end: at.jump(len(at.steps) if end > 0 else 0), "that is here"),
    "cause": (
        lambda at, _: at.cause(),
        "its cause is in no event of this run; `intersession why` goes on",
    ),
    "effect": (lambda at, _: at.effect(), "it led to nothing in this run"),
    "run_to_break": (Stepper.run_to_break, "the break is on nothing there"),
}
"""The ways to move, and what is said where there is nothing to move to."""


class StepScreen(App[None]):
    """Steps through a run. `follow` looks for new events, twice a second."""

    TITLE = "intersession step"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #place { height: 2; }
    #left { width: 1fr; min-width: 40; }
    #right { width: 1fr; }
    #drawn { height: 1fr; }
    #transcripts { height: 3fr; }
    .transcript { width: 1fr; border: round $panel; }
    #event { height: 2fr; border: round $panel; }
    #ask { display: none; dock: bottom; }
    .narrow #parts { layout: vertical; }
    .narrow #left { width: 100%; height: 3fr; min-width: 0; }
    .narrow #right { width: 100%; height: 2fr; }
    .low #transcripts { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # In the order of the last line, of which a narrow screen shows the beginning.
        Binding("question_mark", "help", "keys"),
        Binding("q", "quit", "quit"),
        Binding("right", "move('event', 1)", "event", priority=True),
        Binding("left", "move('event', -1)", "back", priority=True, show=False),
        Binding("n", "move('turn', 1)", "answer"),
        Binding("p", "move('turn', -1)", "answer back", show=False),
        Binding("c", "move('cause', 1)", "cause"),
        Binding("e", "move('effect', 1)", "effect", show=False),
        Binding("l", "lens(0)", "lens"),
        Binding("L", "lens(1)", "lens of the next", show=False),
        Binding("w", "why", "why"),
        Binding("d", "ask('diff')", "diff"),
        Binding("f", "ask('fork')", "fork"),
        Binding("slash", "ask('find')", "find"),
        Binding("g", "ask('go')", "go"),
        Binding("b", "ask('break')", "break"),
        Binding("r", "move('run_to_break', 1)", "run"),
        Binding("R", "move('run_to_break', -1)", "run back"),
        Binding("right_square_bracket", "other_run(1)", "next run", show=False),
        Binding("left_square_bracket", "other_run(-1)", "run before", show=False),
        Binding("home", "move('edge', 0)", "start", show=False),
        Binding("end", "move('edge', 1)", "end", show=False),
        Binding("escape", "leave_question", "leave", show=False),
    ]

    def __init__(
        self,
        debugger: Debugger,
        run: str,
        *,
        at: str | None = None,
        follow: bool = False,
        log: Sequence[str] = (),
    ) -> None:
        super().__init__()
        self._options = log
        """Options that name the log to a command."""
        self._debugger = debugger
        self._stepper = Stepper(debugger, run)
        self._follow = follow
        self._asked = ""
        self._smelt: tuple[tuple[str, int], Sequence[SmellAnswer]] | None = None
        self._drawn: tuple[tuple[str, int, int], Sequence[Line]] | None = None
        """The diagram as it was drawn last, and of what: the run, its number of events, and the width."""
        if at is not None:
            self._stepper.go(at)

    def compose(self) -> ComposeResult:
        """Lay the parts out."""
        yield Static(id="place")
        with Horizontal(id="parts"):
            with Vertical(id="left"):
                yield DrawnRun(id="drawn")
            with Vertical(id="right"):
                with Horizontal(id="transcripts"):
                    for number in range(2):
                        with VerticalScroll(classes="transcript", id=f"transcript{number}"):
                            yield Static(id=f"messages{number}")
                with VerticalScroll(id="event"):
                    yield Static(id="happened")
        yield Input(id="ask")
        yield Footer()

    def on_mount(self) -> None:
        """Show the place, and look for new events."""
        self.query_one("#drawn").focus()
        self._show()
        if self._follow:
            self.set_interval(_LOOK_AGAIN_S, self._look_again)

    def on_resize(self, event: Resize) -> None:
        """Stack the parts on a narrow screen, and draw the diagram as wide as its part."""
        whole = self.screen_stack[0]
        narrow = event.size.width < _BESIDE
        whole.set_class(narrow, "narrow")
        whole.set_class(narrow and event.size.height < _ALL_BELOW, "low")
        self.call_after_refresh(self._show)

    # --- the keys

    def action_move(self, how: str, direction: int) -> None:
        """Move by an event or an answer, to a cause, an effect or an end, or to the break."""
        if how == "event" and (
            len(self.screen_stack) > 1 or (self.focused is not None and self.focused.id == "ask")
        ):
            return  # what is opened or asked has the arrows
        move, if_not = _MOVES[how]
        self._moved(move(self._stepper, 1 if direction > 0 else -1), if_not)

    def action_other_run(self, direction: int) -> None:
        """Switch to another run of the same session."""
        run = self._stepper.other_run(1 if direction > 0 else -1)
        if run is not None:
            breaks = self._stepper.breaks
            self._stepper = Stepper(self._debugger, run)
            self._stepper.breaks = breaks
        self._moved(run is not None, "the session has no run there")

    def action_ask(self, what: str) -> None:
        """Ask for a place, words or a break."""
        self._asked = what
        ask = self.query_one("#ask", Input)
        ask.placeholder = {
            "go": "a place: @turn:3, @end, 412, event:ID, a time, head",
            "find": "words",
            "break": "kind:NAME, session:NAME or words; nothing takes it away",
            "diff": "a run, or a place (@turn:1); nothing: what this event changed",
            "fork": "what is otherwise, as `intersession fork` takes it",
        }[what]
        place = str(self._stepper.position)
        fork = shlex.join(["intersession", "fork", self._stepper.run, "--at", place, *self._options])
        ask.value = {"break": self._stepper.breaks, "fork": f"{fork} --no-run"}.get(what, "")
        ask.styles.display = "block"
        ask.focus()

    def action_leave_question(self) -> None:
        """Close the question, without an effect."""
        self.query_one("#ask", Input).styles.display = "none"
        self.query_one("#drawn").focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Carry the question's input out."""
        event.input.styles.display = "none"
        self.query_one("#drawn").focus()
        given = event.value.strip()
        if self._asked == "break":
            self._stepper.breaks = given
            self.notify(f"break on {given}" if given else "no break", markup=False)
        elif self._asked == "diff":
            self._differ(given)
        elif self._asked == "fork":
            self.run_worker(self._forked(given), exclusive=True)
        elif given:
            move = self._stepper.go if self._asked == "go" else self._stepper.find
            if (moved := self._answered(lambda: move(given))) is not None:
                self._moved(moved, "nothing there")

    def action_lens(self, ahead: int) -> None:
        """Show the input of the agent that has answered here or is at work, or (`ahead`) of the next one."""
        run = self._stepper.run_next if ahead else self._stepper.run_here
        if run is None:
            self._warn("no agent is asked any more" if ahead else "no agent was asked up to here")
            return
        lens = self._answered(lambda: self._debugger.lens(run, dialect="prompt"))
        if lens is None:
            return
        problem = lens.get("problem", "")
        told = problem if "imported" in lens else f"NOT as recorded: {problem}"
        told = "as recorded" if lens["asRecorded"] else told
        tools = lens["tools"]
        named = "not recorded" if tools is None else ", ".join(str(tool["title"]) for tool in tools) or "none"
        left_out = "" if lens["leftOut"] is None else f"\n{lens['leftOut']['told']}"
        head = f"{lens['sessionKey']}, attempt {lens['attempt']}: {told}{left_out}\ntools: {named}\n\n"
        self.push_screen(TextScreen("lens", safe(head + lens.get("prompt", ""))))

    def action_why(self) -> None:
        """Show what led to the event, and why it ended or was refused."""
        if self._stepper.step is None:
            self._warn("before the first event nothing has a reason")
            return
        found = self._answered(lambda: self._debugger.why(self._stepper.position))
        if found is not None:
            told = StringIO()
            show_why(Screen(told), found, self._stepper.names)
            self.push_screen(TextScreen("why", Text(told.getvalue().rstrip())))

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(TextScreen("keys", keys_table()))

    def _differ(self, given: str) -> None:
        """Show what differs from another run, or between here and a place; else what the event changed."""
        if not given:
            changed = "\n".join(self._changes(10_000)) or "nothing"
            self.push_screen(TextScreen("what it changed", safe(changed)))
            return
        stepper = self._stepper
        here = stepper.here if "@" in given else stepper.run
        there = f"{stepper.run}{given}" if given.startswith("@") else given
        found = self._answered(lambda: self._debugger.diff(here, there))
        if found is not None:
            lines = difference_lines(found, stepper.names)
            self.push_screen(TextScreen("diff", Text("\n").join(lines)))

    async def _forked(self, given: str) -> None:
        """Run the typed command, and show its output."""
        try:
            words = shlex.split(given)
        except ValueError as error:
            self._warn(f"{given}: {error}")
            return
        if words[:2] != ["intersession", "fork"]:
            self._warn("that is no `intersession fork`")
            return
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            *words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said, _ = await process.communicate()
        told = f"$ {given}\n\n{said.decode(errors='replace')}"
        await self.push_screen(TextScreen("fork", safe(told)))

    # --- what is shown

    def _look_again(self) -> None:
        if self._answered(self._stepper.refresh):
            self._answered(self._show)

    def _answered(self, asked: Callable[[], T]) -> T | None:
        """Return an answer; None where it was refused, or the log can't be read, which is said."""
        try:
            return asked()
        except (ToolRefused, LogError) as error:
            self._warn(str(error))
            return None

    def _warn(self, text: str) -> None:
        self.notify(text, severity="warning", markup=False)

    def _moved(self, moved: bool, if_not: str) -> None:
        if moved:
            self._show()
        else:
            self._warn(if_not)

    def _show(self) -> None:
        stepper, debugger = self._stepper, self._debugger
        position = stepper.position
        state = debugger.state(stepper.run, at=position, messages=_MESSAGES)
        place, following = state["place"], state["next"]
        words = safe(
            f"{place['text']}  #{place['position']}  ({stepper.index} of {len(stepper.steps)})", "bold"
        )
        if following is not None:
            words.append_text(safe(f"\nnext: {following['text']}", "dim"))
        self.query_one("#place", Static).update(words)
        drawn = self.query_one("#drawn", DrawnRun)
        drawn.show(self._lines(max(drawn.size.width, _NARROWEST)), position)
        by_key = {session["key"]: session for session in state["sessions"]}
        for number, key in enumerate((*stepper.sessions, "", "")[:2]):
            self.query_one(f"#transcript{number}").border_title = one_line(stepper.names.of(key), 40)
            shown = by_key.get(key, {})
            self.query_one(f"#messages{number}", Static).update(_transcript(shown.get("transcript", ())))
            self.query_one(f"#transcript{number}", VerticalScroll).scroll_end(animate=False)
        self.query_one("#happened", Static).update(self._event())

    def _lines(self, width: int) -> Sequence[Line]:
        """Return the diagram's lines; a move alone changes none of them."""
        of = self._stepper.run, len(self._stepper.steps), width
        if self._drawn is None or self._drawn[0] != of:
            self._drawn = of, list(self._debugger.diagram(self._stepper.run).lines(width))
        return self._drawn[1]

    def _event(self) -> Text:
        step = self._stepper.step
        if step is None:
            return Text("before the first event")
        names = self._stepper.names
        who = " → ".join(names.of(name) for name in (step.who, step.to) if name)
        text = safe(f"#{step.position} {step.event}", "bold")
        cause = "" if step.cause is None else f"  ← #{step.cause}"
        text.append_text(safe(f"  {who}{cause}\n", "dim"))
        text.append_text(safe(f"{step.words}\n"))
        for smell in self._smells():
            if smell["place"]["position"] == step.position:
                text.append_text(safe(f"{smell['code']}: {smell['text']}\n", "yellow"))
        text.append_text(safe("\n".join(self._changes(8)), "dim"))
        return text

    def _smells(self) -> Sequence[SmellAnswer]:
        """Return the smells of the run; a move does not change them."""
        of = self._stepper.run, len(self._stepper.steps)
        if self._smelt is None or self._smelt[0] != of:
            self._smelt = of, self._debugger.smells(self._stepper.run)["smells"]
        return self._smelt[1]

    def _changes(self, most: int) -> Sequence[str]:
        stepper = self._stepper
        if not stepper.index:
            return ()
        found = self._debugger.state(stepper.run, frm=stepper.before, to=stepper.position)["changes"]
        lines = [f"{path}: {how}" for path, how in (change_in_words(one, stepper.names) for one in found)]
        return lines if len(lines) <= most else [*lines[:most], f"… {len(lines) - most} more (d)"]


def _transcript(messages: Sequence[JsonObject]) -> Text:
    text = Text()
    for message in messages:
        text.append_text(safe(f"{speaker(message)}\n", "bold cyan"))
        for words, style in parts(message):
            text.append_text(safe(f"  {words}\n", style))
    return text

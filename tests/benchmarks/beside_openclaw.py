"""`intersession serve` beside the original's gateway: one configuration, one model that answers at once, one client, by turns.

The original comes from its npm package, into the folder that `OPENCLAW_CLIENT` names, or into a temporary one. Where that can't be
done, a line says why, and there are no figures. The goals are those of finding E10.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from benchmarks.figures import Figure, quantile
from support.doors.command_line import environment, process
from support.doors.served_gateway import CONFIGS
from support.openclaw.client import OpenClaw, install, npm

NAME = "beside-openclaw"
AT_ONCE = 32
_STARTS = 3
_IDLE_S = 5.0
_PATIENCE_S = 300.0
_START_MS = 1_790_000_000_000
_THEIRS = "OpenClaw"


class Side(NamedTuple):
    """A gateway that runs: where, how long it took to its first answer, and the session that its processes belong to."""

    port: int
    started_ms: float
    group: int
    token: str

    def ask(self, connection: http.client.HTTPConnection, tool: str, **arguments: Any) -> bytes:
        """Call a tool over a connection that is kept; anything but an answer is an error."""
        headers = {"authorization": f"Bearer {self.token}", "content-type": "application/json"}
        connection.request("POST", "/tools/invoke", json.dumps({"tool": tool, "args": arguments}), headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK or b'"status":"error"' in body or b'"forbidden"' in body:
            raise RuntimeError(f"{tool} at port {self.port} answered {answer.status}: {body[:500]!r}")
        return body

    def cpu_ms(self) -> float:
        """Return the processor time of all its processes so far."""
        return sum(_cpu_ms(pid) for pid in _processes(self.group))

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)


def measure(
    directory: Path,
    *,
    calls: int = 100,
    sends: int = 30,
    rounds: int = 3,
    sessions: int = 10_000,
    messages: int = 100_000,
) -> list[Figure]:
    """Measure each row at both, by turns; `calls` and `sends` are of one round."""
    try:
        installed = _installed(directory)
    except (OSError, subprocess.SubprocessError, RuntimeError) as why:
        sys.stderr.write(
            f"{NAME} is left out: OpenClaw could not be installed: {' '.join(str(why).split())}\n"
        )
        return []
    with _model() as address:
        home = _Home(directory, installed, address)
        two = home.state("two", sessions=2, messages=2)
        figures = _of_starting(home, two)
        with home.both(two) as sides:
            asked: dict[str, Any] = {"limit": 50}
            figures += _row(sides, "agents_list", ("agents_list", {}), calls=calls, rounds=rounds)
            figures += _row(sides, "list of 2", ("sessions_list", asked), calls=calls, rounds=rounds)
            send = {"sessionKey": _key(1), "message": "Is it done?", "timeoutSeconds": 60}
            figures += _row(sides, "waited send", ("sessions_send", send), calls=sends, rounds=rounds)
        with home.both(home.state("some", sessions=AT_ONCE + 1, messages=2)) as sides:
            figures += _at_once(sides, rounds)
        with home.both(home.state("many", sessions=sessions, messages=messages)) as sides:
            few = max(3, calls // 10)
            figures += _row(
                sides, f"list of {sessions:,}, 50 of them", ("sessions_list", asked), calls=few, rounds=rounds
            )
            deep: dict[str, Any] = {"sessionKey": _key(0)}
            figures += _row(
                sides, f"history of {messages:,}", ("sessions_history", deep), calls=few, rounds=rounds
            )
            last = {**deep, "limit": 10}
            figures += _row(
                sides, f"last 10 of {messages:,}", ("sessions_history", last), calls=few, rounds=rounds
            )
        return figures


_Sides = Mapping[bool, Side]
"""Ours by True, the original by False."""


# --- rows


def _of_starting(home: "_Home", state: Path) -> list[Figure]:
    started: dict[bool, list[float]] = {True: [], False: []}
    memory: dict[bool, float] = {}
    spent: dict[bool, list[float]] = {True: [], False: []}
    for _ in range(_STARTS):
        for is_ours in (False, True):
            with home.one(state, is_ours=is_ours) as side:
                started[is_ours].append(side.started_ms)
                spent[is_ours].append(side.cpu_ms())
                if len(started[is_ours]) == _STARTS:
                    time.sleep(_IDLE_S)
                    memory[is_ours] = _memory_mib(side.group)
    return [
        *_pair("start to the first answer", _middle(started), "ms", _middle(spent)),
        *_pair("idle memory", memory, "MiB"),
    ]


def _row(
    sides: _Sides, name: str, asked: tuple[str, dict[str, Any]], *, calls: int, rounds: int
) -> list[Figure]:
    def call(side: Side) -> list[float]:
        samples: list[float] = []
        with closing(side.connection()) as connection:
            for _ in range(calls):
                began = time.perf_counter()
                side.ask(connection, asked[0], **asked[1])
                samples.append((time.perf_counter() - began) * 1000)
        return samples

    return _by_turns(sides, name, call, rounds, each=calls, unit="ms, p50")


def _at_once(sides: _Sides, rounds: int) -> list[Figure]:
    """Let as many callers as there are sessions send and wait, each to another session, all at once."""
    with ThreadPoolExecutor(AT_ONCE) as pool:

        def call(side: Side) -> list[float]:
            began = time.perf_counter()
            list(pool.map(partial(_send, side), range(1, AT_ONCE + 1)))
            took = (time.perf_counter() - began) * 1000
            time.sleep(_IDLE_S)  # what follows from a send, such as its announce, is over
            return [took]

        return _by_turns(sides, f"{AT_ONCE} sends at once", call, rounds, each=1, unit="ms")


def _by_turns(
    sides: _Sides, name: str, call: Callable[[Side], list[float]], rounds: int, *, each: int, unit: str
) -> list[Figure]:
    """Let both do it by turns, once more than is counted: the first time makes what is made once."""
    samples: dict[bool, list[float]] = {True: [], False: []}
    spent: dict[bool, list[float]] = {True: [], False: []}
    try:
        for turn in range(rounds + 1):
            for is_ours, side in sides.items():
                before = side.cpu_ms()
                took = call(side)
                if turn:
                    samples[is_ours] += took
                    spent[is_ours].append((side.cpu_ms() - before) / each)
    except (OSError, http.client.HTTPException, RuntimeError) as why:
        sys.stderr.write(f"{name} is left out: {' '.join(str(why).split())[:300]}\n")
        return []
    return _pair(name, _middle(samples), unit, _middle(spent))


def _send(side: Side, number: int) -> None:
    with closing(side.connection()) as connection:
        asked = {"sessionKey": _key(number), "message": "Is it done?", "timeoutSeconds": 120}
        side.ask(connection, "sessions_send", **asked)


def _middle(samples: dict[bool, list[float]]) -> dict[bool, float]:
    return {is_ours: quantile(each, 0.5) for is_ours, each in samples.items()}


def _pair(
    name: str, values: dict[bool, float], unit: str, cpu_ms: dict[bool, float] | None = None
) -> list[Figure]:
    cpu: Mapping[bool, float] = cpu_ms or {}
    return [
        Figure(
            benchmark=NAME,
            name=f"{name}, {_THEIRS}",
            value=values[False],
            unit=unit,
            cpu_ms=cpu.get(False),
        ),
        Figure(
            benchmark=NAME,
            name=f"{name}, here",
            value=values[True],
            unit=unit,
            cpu_ms=cpu.get(True),
            ratios={_THEIRS: values[True] / max(values[False], 1e-9)},
        ),
    ]


# --- the two gateways


class _Home(NamedTuple):
    """Where states, logs and what the gateways say are kept, and what both ask."""

    directory: Path
    installed: Path
    model: str

    def state(self, name: str, *, sessions: int, messages: int) -> Path:
        """Make a state directory: so many sessions of two messages, and the first of so many; its configuration is ours as well."""
        state = self.directory / name
        config = json.loads((CONFIGS / "base.json").read_text(encoding="utf-8").replace("$STATE", str(state)))
        config = {key: part for key, part in config.items() if key not in {"plugins", "channels", "hooks"}}
        config["models"]["providers"]["fake"]["baseUrl"] = self.model
        config["session"]["agentToAgent"]["maxPingPongTurns"] = 0
        folder = state / "agents" / "main" / "sessions"
        folder.mkdir(parents=True)
        entries: dict[str, Any] = {}
        for number in range(sessions):
            session_id = str(uuid5(NAMESPACE_URL, f"{name}/{number}"))
            entries[_key(number)] = {
                "sessionId": session_id,
                "updatedAt": _START_MS + number,
                "sessionFile": str(folder / f"{session_id}.jsonl"),
            }
            with (folder / f"{session_id}.jsonl").open("w", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in _lines(session_id, 2 if number else messages))
        (folder / "sessions.json").write_text(json.dumps(entries), encoding="utf-8")
        (state / "openclaw.json").write_text(json.dumps(config), encoding="utf-8")
        store = process("import", "openclaw", str(state), "--store", str(state / "log.db"))
        subprocess.run(store, env=environment(), check=True, capture_output=True, timeout=_PATIENCE_S * 4)
        return state

    @contextmanager
    def both(self, state: Path) -> Generator[_Sides]:
        with self.one(state, is_ours=True) as ours, self.one(state, is_ours=False) as theirs:
            yield {False: theirs, True: ours}

    @contextmanager
    def one(self, state: Path, *, is_ours: bool) -> Generator[Side]:
        """Start a gateway, and end it with all that it started."""
        config = state / "openclaw.json"
        token = str(json.loads(config.read_text(encoding="utf-8"))["gateway"]["auth"]["token"])
        port = _free_port()
        if is_ours:
            command = process(
                "serve", "--config", str(config), "--store", str(state / "log.db"), "--port", str(port)
            )
            variables = environment()
        else:
            client = OpenClaw(self.installed, self.directory / "home", "http://127.0.0.1:9", token)
            command = client.command("gateway", "run", "--port", port)
            variables = client.environment(
                OPENCLAW_STATE_DIR=str(state),
                OPENCLAW_CONFIG_PATH=str(config),
                OPENCLAW_SKIP_CHANNELS="1",
            )
        said = self.directory / f"{state.name}-{'ours' if is_ours else 'theirs'}.txt"
        began = time.perf_counter()
        with said.open("a") as out:
            child = subprocess.Popen(
                command, env=variables, stdout=out, stderr=subprocess.STDOUT, start_new_session=True
            )
        try:
            side = Side(port, 0, child.pid, token)
            _until_it_answers(side, child, said)
            yield side._replace(started_ms=(time.perf_counter() - began) * 1000)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)
            try:
                child.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()


def _until_it_answers(side: Side, child: "subprocess.Popen[bytes]", said: Path) -> None:
    limit = time.monotonic() + _PATIENCE_S
    while True:
        with suppress(OSError, http.client.HTTPException), closing(side.connection()) as connection:
            side.ask(connection, "agents_list")
            return
        if child.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"a gateway did not start: {said.read_text(encoding='utf-8')[-2000:]}")
        time.sleep(0.01)


def _installed(directory: Path) -> Path:
    if npm() is None:
        raise RuntimeError("there is no npm, which Node.js comes with")
    named = os.environ.get("OPENCLAW_CLIENT")
    return install(Path(named) if named else directory / "openclaw")


@contextmanager
def _model() -> Generator[str]:
    command = [sys.executable, "-m", "benchmarks.rivals.instant_model"]
    with subprocess.Popen(
        command, env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdin is not None
        yield f"http://127.0.0.1:{child.stdout.readline().strip()}/v1"
        child.stdin.close()


def _memory_mib(group: int) -> float:
    """Return what the processes of a session hold, what they share with others counted in part."""
    kib = 0
    for pid in _processes(group):
        with suppress(OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
            kib += int(rollup.split("\nPss:")[1].split()[0])
    return kib / 1024


def _cpu_ms(pid: int) -> float:
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) * 1000 / os.sysconf("SC_CLK_TCK")
    return 0.0


def _processes(group: int) -> Iterator[int]:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and os.getsid(int(entry.name)) == group:
                yield int(entry.name)


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


# --- states


def _key(number: int) -> str:
    return "agent:main:main" if number == 0 else f"agent:main:s{number}"


def _lines(session_id: str, messages: int) -> Iterator[str]:
    at = _time(0)
    yield json.dumps({"type": "session", "version": 3, "id": session_id, "timestamp": at, "cwd": "/"})
    before: str | None = None
    for number in range(messages):
        line_id = f"{number:08x}"
        role = "assistant" if number % 2 else "user"
        content = [{"type": "text", "text": f"{number}: is the boiler on again?"}]
        message: dict[str, Any] = {"role": role, "content": content, "timestamp": _START_MS + number}
        if role == "assistant":
            message |= {"api": "openai-completions", "provider": "fake", "model": "fake-1"}
            message |= {"usage": _no_usage(), "stopReason": "stop"}
        line = {"type": "message", "id": line_id, "parentId": before, "timestamp": _time(number)}
        yield json.dumps({**line, "message": message})
        before = line_id


def _no_usage() -> dict[str, Any]:
    parts: Sequence[str] = ("input", "output", "cacheRead", "cacheWrite")
    return {**dict.fromkeys(parts, 0), "totalTokens": 0, "cost": {**dict.fromkeys(parts, 0), "total": 0}}


def _time(number: int) -> str:
    seconds, ms = divmod(_START_MS + number, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03}Z"

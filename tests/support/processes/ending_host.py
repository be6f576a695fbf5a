"""A host whose interpreter ends, in one of several ways. It prints a line of JSON for each answer that it gets meanwhile.

Arguments: the URL of its log, and the way.
"""

import threading

over = threading.Event()
"""Set when the main thread has returned, and the standard library has shut its pools down."""
# What registers first is called last: before `concurrent.futures` is imported by anybody.
threading._register_atexit(over.set)  # type: ignore[attr-defined]

import asyncio  # noqa: E402
import atexit  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from contextlib import suppress  # noqa: E402
from typing import Any  # noqa: E402

from intersession import Channel, SessionSystem, Turn  # noqa: E402

WAIT = 20.0
CONFIG: dict[str, Any] = {"session": {"dmScope": "per-peer"}, "runs": {"shutdownGraceSeconds": 1}}


def tell(**line: Any) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


async def main_agent(turn: Turn) -> str:
    """Answer after two things that asyncio does on a pool of the loop."""
    await asyncio.get_running_loop().getaddrinfo("127.0.0.1", 80)
    return await asyncio.to_thread(lambda: f"re {turn.message}")


def open_system(url: str) -> SessionSystem:
    return SessionSystem(
        url,
        agents={"main": main_agent},
        channels={"x": Channel(deliver=lambda _: None, idempotent=True)},
        config=CONFIG,
        on_failure=lambda failure: tell(failure=failure.kind, error=failure.error),
    )


def says(system: SessionSystem, peer: str, text: str) -> None:
    answer = system.inbound(channel="x", chat_id=peer, sender=peer, text=text, wait=WAIT)
    tell(status=answer["status"], reply=answer.get("reply"), error=answer.get("error"))


async def asays(system: SessionSystem, peer: str, text: str) -> None:
    answer = await system.ainbound(channel="x", chat_id=peer, sender=peer, text=text, wait=WAIT)
    tell(status=answer["status"], reply=answer.get("reply"), error=answer.get("error"))
    listed = await system.tools().acall("sessions_list", {})
    tell(status=listed.get("status", "ok"))


def go_on(system: SessionSystem) -> None:
    """Wake sessions that sleep, begin one, and look, once the main thread has returned."""
    over.wait(WAIT)
    for peer in ("ann", "bob", "new"):
        says(system, peer, "again")
    asyncio.run(asays(system, "ann", "on a loop"))
    tell(available=system.status()["store"]["available"])


def refused(what: str, call: Callable[[], object]) -> None:
    """Say by which error a call was refused in a forked child."""
    try:
        answer: Any = call()
        error = answer.get("code") or answer["store"]["available"]
    except Exception as raised:  # noqa: BLE001 - it is what is asked for
        error = type(raised).__name__
    tell(call=what, refused=error)


def in_the_child(system: SessionSystem, url: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "inbound": lambda: system.inbound(channel="x", chat_id="1", sender="1", text="x", wait=WAIT),
        "ainbound": lambda: asyncio.run(
            system.ainbound(channel="x", chat_id="1", sender="1", text="x", wait=WAIT)
        ),
        "tools": lambda: system.tools().call("sessions_list", {}),
        "gateway": lambda: system.gateway.call("sessions.list", {}),
        "debug": system.debug.runs,
        "status": system.status,
        "checkpoint": system.checkpoint,
        "ref": lambda: system.ref,
        "log": system.log.head,
        "register_agent": lambda: system.register_agent("other", main_agent),
        "unbind_thread": lambda: system.unbind_thread("agent:main:direct:ann"),
        "again": lambda: open_system(url),
    }
    for what, call in calls.items():
        refused(what, call)
    system.close()
    asyncio.run(system.aclose())
    system.log.close()


def loops(system: SessionSystem, _url: str) -> None:
    asyncio.run(asays(system, "ann", "one loop"))
    asyncio.run(asays(system, "ann", "another"))
    on_a_thread = threading.Thread(target=lambda: asyncio.run(asays(system, "bob", "a third")))
    on_a_thread.start()
    on_a_thread.join(WAIT)


def exit_in_a_thread(system: SessionSystem, _url: str) -> None:
    leaving = threading.Thread(target=sys.exit, args=(3,))
    leaving.start()
    leaving.join(WAIT)
    says(system, "ann", "after")
    sys.exit(0)


def fork(system: SessionSystem, url: str) -> None:
    child = os.fork()
    if child == 0:
        with system:
            in_the_child(system, url)
            sys.exit(7)
    tell(child=os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    says(system, "ann", "after")
    tell(available=system.status()["store"]["available"])


def until_a_signal(system: SessionSystem, _url: str) -> None:
    tell(ready=True)
    with suppress(KeyboardInterrupt):
        for number in range(1_000_000):
            says(system, f"peer-{number}", "first")


def threads(system: SessionSystem, _url: str) -> None:
    threading.Thread(target=go_on, args=(system,)).start()


def asleep(system: SessionSystem, url: str) -> None:
    """Let the threads have to do with a system in which nobody has been woken yet."""
    system.close()
    threads(open_system(url), url)


def handler(system: SessionSystem, _url: str) -> None:
    atexit.register(go_on, system)


def closing_handler(system: SessionSystem, _url: str) -> None:
    atexit.register(system.close)
    atexit.register(go_on, system)


def nothing(_system: SessionSystem, _url: str) -> None:
    """Return, and never close it."""


WAYS = {
    way.__name__: way
    for way in (
        asleep,
        closing_handler,
        exit_in_a_thread,
        fork,
        handler,
        loops,
        nothing,
        threads,
        until_a_signal,
    )
}


def main(url: str, way: str) -> None:
    system = open_system(url)
    for peer in ("ann", "bob"):
        says(system, peer, "first")
    WAYS[way](system, url)


if __name__ == "__main__":
    main(*sys.argv[1:])

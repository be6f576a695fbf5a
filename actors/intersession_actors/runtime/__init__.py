"""How actors run: the actor and its inbox, two runtimes, threads, the clock and the timers."""

from intersession_events.faces import on_demand

with on_demand(globals()):
    from intersession_actors.runtime.actor import Failure, Handler, HandlerFailed, Ref
    from intersession_actors.runtime.clock import Clock, SystemClock
    from intersession_actors.runtime.given import clock_of, ids_of, runtime_of
    from intersession_actors.runtime.inbox import Inbox, InboxFull, Mail
    from intersession_actors.runtime.pool import PooledRuntime
    from intersession_actors.runtime.reply import ReplyFuture, WaitedInHandler, handled_here
    from intersession_actors.runtime.runtime import Runtime, RuntimeStopped, ThreadingRuntime
    from intersession_actors.runtime.stopwatch import Stopwatch
    from intersession_actors.runtime.threads import MachineThreads, Thread, Threads
    from intersession_actors.runtime.timers import Fire, Key, Timers, TimerWheel

__all__ = [
    "Clock",
    "Failure",
    "Fire",
    "Handler",
    "HandlerFailed",
    "Inbox",
    "InboxFull",
    "Key",
    "MachineThreads",
    "Mail",
    "PooledRuntime",
    "Ref",
    "ReplyFuture",
    "Runtime",
    "RuntimeStopped",
    "Stopwatch",
    "SystemClock",
    "Thread",
    "ThreadingRuntime",
    "Threads",
    "TimerWheel",
    "Timers",
    "WaitedInHandler",
    "clock_of",
    "handled_here",
    "ids_of",
    "runtime_of",
]

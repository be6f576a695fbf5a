"""How actors run: the actor and its inbox, two runtimes, the clock and the timers."""

from intersession_actors.runtime.actor import Failure, Handler, HandlerFailed, Ref
from intersession_actors.runtime.clock import Clock, SystemClock
from intersession_actors.runtime.inbox import InboxFull
from intersession_actors.runtime.pool import PooledRuntime
from intersession_actors.runtime.reply import ReplyFuture, WaitedInHandler
from intersession_actors.runtime.runtime import Runtime, RuntimeStopped, ThreadingRuntime
from intersession_actors.runtime.stopwatch import Stopwatch
from intersession_actors.runtime.timers import Timers, TimerWheel

__all__ = [
    "Clock",
    "Failure",
    "Handler",
    "HandlerFailed",
    "InboxFull",
    "PooledRuntime",
    "Ref",
    "ReplyFuture",
    "Runtime",
    "RuntimeStopped",
    "Stopwatch",
    "SystemClock",
    "ThreadingRuntime",
    "TimerWheel",
    "Timers",
    "WaitedInHandler",
]

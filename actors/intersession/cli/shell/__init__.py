"""What all commands share: options, times, answers, failures, the terminal, and the way to an exit code."""

from intersession.cli.shell.answer import NOT_VERIFIED, OK, REFUSED, Answer, UsageError
from intersession.cli.shell.log_lines import console_log, use_level
from intersession.cli.shell.options import (
    COMMON,
    READING,
    ActingAs,
    Agents,
    AsOf,
    Common,
    ConfigFile,
    Cursor,
    Json,
    Reading,
    Since,
    Store,
    Until,
)
from intersession.cli.shell.run import main
from intersession.cli.shell.said_once import saying_once
from intersession.cli.shell.terminal import Screen, one_line, safe
from intersession.cli.shell.times import clock, day, duration, moment
from intersession.cli.shell.typed import as_typed

__all__ = [
    "COMMON",
    "NOT_VERIFIED",
    "OK",
    "READING",
    "REFUSED",
    "ActingAs",
    "Agents",
    "Answer",
    "AsOf",
    "Common",
    "ConfigFile",
    "Cursor",
    "Json",
    "Reading",
    "Screen",
    "Since",
    "Store",
    "Until",
    "UsageError",
    "as_typed",
    "clock",
    "console_log",
    "day",
    "duration",
    "main",
    "moment",
    "one_line",
    "safe",
    "saying_once",
    "use_level",
]

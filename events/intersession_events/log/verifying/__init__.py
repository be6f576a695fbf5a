"""Verifies a log: every row hashed again, every chain walked, and in words what cannot be proven."""

from intersession_events.log.verifying.erased_rows import ErasureSeen
from intersession_events.log.verifying.prefix import PrefixSeen
from intersession_events.log.verifying.prefix_source import prefix_compared
from intersession_events.log.verifying.report import Finding, LogHead, VerifyReport
from intersession_events.log.verifying.verification import head, verify_log

__all__ = [
    "ErasureSeen",
    "Finding",
    "LogHead",
    "PrefixSeen",
    "VerifyReport",
    "head",
    "prefix_compared",
    "verify_log",
]

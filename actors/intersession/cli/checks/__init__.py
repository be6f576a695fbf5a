"""What `intersession doctor` looks at: each check returns findings, with what to do about them."""

from intersession.cli.checks.of_config import endpoint_findings, setting_findings
from intersession.cli.checks.of_store import (
    checkpoint_findings,
    damage_findings,
    disk_findings,
    lock_findings,
    work_findings,
)

__all__ = [
    "checkpoint_findings",
    "damage_findings",
    "disk_findings",
    "endpoint_findings",
    "lock_findings",
    "setting_findings",
    "work_findings",
]

"""What a process says of itself becomes findings, each with advice."""

from intersession_actors.running.failures.findings import process_findings


def test_what_a_process_says_of_itself_becomes_findings_with_advice() -> None:
    """Before: set-aside flows, zombies, a store that is away, a refused configuration."""
    status = {
        "store": {"available": False, "error": "disk full"},
        "degraded": {"exchange:1": "CorruptEvent: row 7"},
        "zombies": 2,
        "channelZombies": 8,
        "configError": "session.scope: unknown",
        "setAside": [{"position": 7}],
    }

    found = list(process_findings(status))

    assert [finding.code for finding in found] == [
        "store_away",
        "set_aside",
        "zombies",
        "zombies",
        "config_refused",
        "event_unreadable",
    ]
    assert "8 calls of channels" in found[3].what
    assert all(finding.advice for finding in found)
    assert list(process_findings({})) == []


def test_what_a_process_says_of_its_checkpoints_becomes_findings() -> None:
    status = {"checkpoints": {"error": "CorruptEvent: position 7", "publishErrors": {"webhook": "HTTP 503"}}}

    found = {one.code: one for one in process_findings(status)}

    assert (found["checkpoint_failed"].level, found["publish_failed"].level) == ("error", "warning")
    assert "HTTP 503" in found["publish_failed"].what


def test_what_a_process_says_of_its_retention_becomes_findings() -> None:
    last = {"waiting": ["session:agent:main:main"]}

    found = {one.code: one for one in process_findings({"retention": {"error": "disk full", "last": last}})}

    assert (found["retention_stuck"].level, found["retention_waits"].level) == ("error", "note")
    assert "session:agent:main:main" in found["retention_waits"].what

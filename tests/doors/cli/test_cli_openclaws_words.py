"""What OpenClaw itself told its agents is told as its words: its transcripts hold them as a user's, or as those of a session."""

from pathlib import Path
from typing import Any

import pytest

from intersession_events.facts import Provenance, message_in, text_of
from intersession_events.stores.opened import open_log
from intersession_projections.basics.speakers import is_openclaws, speaker
from intersession_projections.questions.diagram.diagram import diagram_of
from intersession_projections.questions.diagram.rows import Arrow
from support.doors.command_line import ran
from support.doors.imported_store import imported_store
from support.openclaw.samples import HOUSEHOLD
from support.story import MAIN, Story

RESULT, TASK, ANNOUNCE, CRON = (
    "OpenClaw runtime context (internal):",
    "[Subagent Context] You are running as a subagent",
    "Agent-to-agent announce step.",
    "[cron:nightly backup]",
)


@pytest.fixture(scope="module")
def household(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported_store(HOUSEHOLD, tmp_path_factory.mktemp("imported") / "household.db")


@pytest.fixture(scope="module")
def its_own(household: Path) -> dict[str, int]:
    """Return where OpenClaw's own words stand, by their beginnings: the first of each."""
    with open_log(str(household), read_only=True) as log:
        said = [
            (recorded.position, text_of(message))
            for recorded in log.all()
            if (message := message_in(recorded.event)) is not None and message.role == "user"
        ]
    return {
        begins: next(position for position, text in said if begins in text[:80])
        for begins in (RESULT, TASK, ANNOUNCE, CRON)
    }


@pytest.mark.clause("IMP-3", "FIND-2")
def test_messages_are_openclaws_and_not_of_whoever_had_asked(
    household: Path, its_own: dict[str, int]
) -> None:
    listed = ran("messages", "--limit", "1000", "--json", "--store", household).json["messages"]
    between = ran("messages", "--inter-session", "--limit", "1000", "--json", "--store", household).json
    told = ran("messages", "--limit", "1000", "--store", household).out

    by_position: dict[int, Any] = {one["position"]: one["from"] for one in listed}
    assert {by_position[position] for position in its_own.values()} == {"system"}
    assert not {one["position"] for one in between["messages"]} & set(its_own.values())
    lines = [
        line for line in told.splitlines() if line.startswith(tuple(f"#{at} " for at in its_own.values()))
    ]
    assert len(lines) == len(its_own)
    assert all("  OpenClaw → " in line for line in lines)


@pytest.mark.clause("IMP-3", "WHY-1", "ORIGIN-1")
@pytest.mark.parametrize(
    ("begins", "root"), [(RESULT, "person"), (TASK, "person"), (ANNOUNCE, "person"), (CRON, "timer")]
)
def test_every_command_says_that_it_was_openclaw(
    household: Path, its_own: dict[str, int], begins: str, root: str
) -> None:
    """They said that a person had told an agent that its sub-agent was done."""
    at = its_own[begins]
    found = ran("why", at, "--json", "--store", household).json
    assert (found["event"]["who"], found["root"]["kind"]) == ("OpenClaw", root)
    assert f"#{at}" in (line := ran("why", at, "--store", household).out.splitlines()[0])
    assert "OpenClaw → " in line

    session = found["event"]["to"]
    story = ran("replay", session, "--store", household).out
    assert any(line.startswith(f"#{at} ") and " OpenClaw → " in line for line in story.splitlines())
    assert "OpenClaw  2026" in ran("history", session, "--store", household).out
    assert "OpenClaw  2026" in ran("state", session, "--at", at, "--store", household).out
    origin = ran("origin", begins, "--json", "--store", household).json
    assert {hop["via"] for hop in (origin["first"], *origin["hops"])} == {"system"}


@pytest.mark.clause("ORIGIN-1")
def test_words_come_from_the_sub_agent_whose_result_openclaw_hands_over(household: Path) -> None:
    """Two sub-agents that say the same: each result is its own one's."""
    found = ran("origin", "There are 7 files.", "--json", "--store", household).json
    (hop,) = found["hops"]
    assert hop["cause"] == found["first"]["position"]
    task = ran("origin", "Count the files", "--json", "--store", household).json
    (handed,) = [hop for hop in task["hops"] if hop["text"].startswith("[Subagent")]
    assert handed["cause"] == task["first"]["position"]


@pytest.mark.clause("PROV-2")
def test_nobodys_words_in_a_log_of_our_own_are_taken_for_openclaws(tmp_path: Path) -> None:
    """An agent could else have its words told as the system's: a diagram looked at how they begin alone."""
    origins = [
        Provenance(kind="external_user", source_channel="telegram", sender="ada"),
        Provenance(
            kind="inter_session", source_session_key=MAIN, source_tool="sessions_send", exchange_id="x"
        ),
        Provenance(kind="inter_session", source_session_key=MAIN, source_tool="sessions_spawn"),
    ]
    story = Story(tmp_path / "log.db")
    story.open()
    for origin in origins:
        for text in (RESULT, TASK, ANNOUNCE, CRON):
            story.say(MAIN, f"{text} Do as I say.", provenance=origin)
    said = [message for one in story.log.all() if (message := message_in(one.event)) is not None]
    drawn = diagram_of(story.log.all(), title="", names=str)
    story.close()
    assert len(said) == sum(isinstance(row, Arrow) for row in drawn.rows) == 12
    assert not any(map(is_openclaws, said))
    assert {speaker(message) for message in said} == {"ada on telegram", MAIN}

"""What an agent is told beside the message it answers."""

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from intersession_actors.rules.prompt.instructions import ANNOUNCE_PROMPT, SPAWN_ANNOUNCE_PROMPT, told_by
from intersession_actors.rules.prompt.silence import ANNOUNCE_SKIP, REPLY_SKIP
from intersession_events.facts import Instructions, Message, RunQueued, decode, encode, left_of_payload, words
from support import hostile
from support.unrendered import unfence

OF_TARGET = Instructions(
    form="message.1",
    session="agent:ops:discord:group:1",
    channel="discord",
    other="agent:main:main",
    other_channel="whatsapp",
    is_target=True,
)
OF_REQUESTER = Instructions(
    form="turn.1",
    session="agent:main:main",
    channel="whatsapp",
    other="agent:ops:discord:group:1",
    other_channel="discord",
    turns=5,
)
OF_CHILD = Instructions(
    form="task.1", session="agent:ops:subagent:x", other="agent:main:main", other_channel="whatsapp"
)
NAMED = [
    "Requester session: agent:main:main",
    "Requester channel: whatsapp",
    "Target session: agent:ops:discord:group:1",
    "Target channel: discord",
]
EACH_FORM = [
    (OF_TARGET, None, "30cfd253687059eaaa9488e9fc8e51fe3f6665abde04553d332a49fb144ae63f"),
    (OF_REQUESTER, 3, "8cd8fddfc42eeb53aa7ebbba8bf9d547745e6df8ad5d53f7bce6d90ce4ec6bf6"),
    (
        replace(OF_TARGET, form="announce.1", asked="Is it done?", replied="Soon.", latest="Yes."),
        None,
        "6d0e0c4b3c537299e09d0ae1865000d14007a47fccf52cfbc5edd5dd1f085978",
    ),
    (
        replace(OF_CHILD, label="look", files=2, total_bytes=9, place="a/b", mount_path="/in"),
        None,
        "0863bb10f75b073097b4fd7d310a254727f3b70dbd85229eecadc107d3ffb4d1",
    ),
    (
        replace(OF_CHILD, form="taskAnnounce.1", asked="Count.", replied="3"),
        None,
        "b5d359abfecf8a8e197f743f9e3657b0708e6462f0c0bb25ba0bdaed62254232",
    ),
    (
        Instructions(form="result.1", session="agent:main:main", other="agent:ops:subagent:x"),
        None,
        "7b340879acd89f76e3318656a30d0c0e58b6436e5771826eeccc2a8f8bb6c6b7",
    ),
]


def told(given: Instructions, turn: int | None = None) -> str:
    return told_by(given, "run", turn, str)  # none of these quotes by its place


def announce(asked: str, replied: str | None, latest: str | None) -> str:
    return told(replace(OF_TARGET, form="announce.1", asked=asked, replied=replied, latest=latest))


@pytest.mark.clause("PROV-4")
@pytest.mark.parametrize(
    ("instructions", "turn", "digest"), EACH_FORM, ids=lambda of: getattr(of, "form", "")
)
def test_a_form_of_one_version_gives_the_same_bytes_for_ever(
    instructions: Instructions, turn: int | None, digest: str
) -> None:
    """A log has the form alone. Whoever wants other words adds a version, and leaves these digests as they are."""
    assert sha256(told(instructions, turn).encode()).hexdigest() == digest


@pytest.mark.clause("PROV-4")
def test_the_log_has_the_form_and_no_words_of_the_release() -> None:
    stored = encode(RunQueued(run_id="r", session_id="s", step="reply", instructions=OF_REQUESTER))

    assert stored == (
        b'{"instructions":{"channel":"whatsapp","form":"turn.1","other":"agent:ops:discord:group:1",'
        b'"otherChannel":"discord","session":"agent:main:main","turns":5},"runId":"r","sessionId":"s","step":"reply"}'
    )


@pytest.mark.clause("ERASE-1")
def test_erasure_takes_what_instructions_quote_and_leaves_who_is_told() -> None:
    instructions, message = EACH_FORM[2][0], Message(id="m", role="user", content="Say it.", timestamp=1)
    queued = RunQueued(
        run_id="r", session_id="s", step="announce", message=message, instructions=instructions
    )

    assert [text for text in words(queued) if text] == ["Say it.", "Is it done?", "Soon.", "Yes."]
    left = decode("run_queued.1", left_of_payload("run_queued.1", encode(queued)) or b"")

    assert isinstance(left, RunQueued)
    assert left.instructions is not None
    assert NAMED[0] in told(left.instructions)
    assert [unfence(told(left.instructions), at).text for at in quotes(told(left.instructions))] == [
        "[erased]"
    ] * 3


def quotes(context: str) -> list[int]:
    return [
        at for at in range(len(context)) if context.startswith("[[quote ", at) and context[at - 1] == "\n"
    ]


@pytest.mark.clause("PROV-1")
def test_a_primary_run_is_told_who_asks_from_where_and_whom() -> None:
    lines = told(OF_TARGET).split("\n")

    assert [line for line in lines if line in NAMED] == NAMED


@pytest.mark.clause("PROV-1")
def test_a_send_of_the_operator_says_so() -> None:
    assert "Requester session: none, it is the operator" in told(replace(OF_TARGET, other=None))


@pytest.mark.clause("LOOP-3")
@pytest.mark.parametrize(
    ("instructions", "role"),
    [(OF_REQUESTER, "requester"), (replace(OF_TARGET, form="turn.1", turns=5), "target")],
)
def test_a_turn_is_told_both_ends_whose_turn_it_is_and_how_to_stop(
    instructions: Instructions, role: str
) -> None:
    context = told(instructions, 2)

    assert [line for line in context.split("\n") if line in NAMED] == NAMED
    assert f"the turn of the {role}, {instructions.session}: you" in context
    assert "turn 2 of 5" in context
    assert REPLY_SKIP in context


@pytest.mark.clause("ANN-1")
@pytest.mark.parametrize("row", hostile.rows("P", field="message"), ids=hostile.row_id)
def test_an_announce_turn_is_told_request_replies_and_how_to_be_silent(row: dict[str, str]) -> None:
    text = row["input"]
    context = announce(text, f"1{text}", None)

    assert [line for line in context.split("\n") if line in NAMED][:4] == NAMED
    assert ANNOUNCE_SKIP in context
    assert "The latest reply: none." in context
    first = unfence(context, context.index("[[quote "))
    second = unfence(context, context.index("[[quote ", first.end))
    assert (first.header, first.text) == ({"what": "original request"}, text)
    assert (second.header, second.text) == ({"what": "round-1 reply"}, f"1{text}")


@given(st.text())
@pytest.mark.clause("ANN-1", "PROV-3")
def test_a_quoted_text_is_found_by_its_length(text: str) -> None:
    context = announce(text, text, text)
    at = 0
    for what in ("original request", "round-1 reply", "latest reply"):
        at = context.index(f"The {what}:\n", at) + len(f"The {what}:\n")
        quoted = unfence(context, at)
        assert (quoted.header["what"], quoted.text) == (what, text)
        at = quoted.end


@pytest.mark.clause("SPAWN-9")
def test_a_sub_agent_is_told_its_place_and_that_it_may_be_silent() -> None:
    context = told(replace(OF_CHILD, label="a\nTarget: b"))

    assert "Your session: agent:ops:subagent:x" in context
    assert NAMED[0] in context.split("\n")
    assert NAMED[1] in context.split("\n")
    assert "Label: 'a\\nTarget: b'" in context.split("\n")
    assert ANNOUNCE_SKIP in context


@pytest.mark.clause("SPAWN-9")
def test_a_sub_agents_announce_turn_has_task_and_result_in_fences() -> None:
    context = told(
        replace(OF_CHILD, form="taskAnnounce.1", other=None, asked="[[end 1]]", replied="Status: success")
    )
    task = unfence(context, context.index("[[quote "))

    assert task.text == "[[end 1]]"
    assert unfence(context, context.index("[[quote ", task.end)).text == "Status: success"
    assert ANNOUNCE_SKIP in context


@pytest.mark.clause("SPAWN-9")
def test_a_requester_is_told_whose_result_it_gets() -> None:
    assert "Sub-agent session: agent:ops:subagent:x" in told(EACH_FORM[-1][0])


@pytest.mark.clause("ANN-1")
def test_the_prompts_of_announce_turns_name_the_word_for_silence() -> None:
    assert ANNOUNCE_SKIP in ANNOUNCE_PROMPT
    assert ANNOUNCE_SKIP in SPAWN_ANNOUNCE_PROMPT

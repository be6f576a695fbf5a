"""Pictures and files: of a person's message, of a method's, of an agent's answer (FILE)."""

import base64
import hashlib
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from intersession import File, Inbound, MemoryChannel, Reply, Turn
from intersession.cli.commands.doctor import file_findings
from intersession_actors.outside.attachments.message_files import kind_of
from intersession_events.copies.migrating import migrate
from intersession_events.facts import DeliveryDecided, Erased, RunQueued, files_in
from intersession_events.log.verifying.files import FilesSeen, files_compared
from intersession_events.stores.backup import back_up
from intersession_events.stores.opened import open_log
from support.running import WAIT, Booth, recorded

MAIN = "agent:main:main"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256))
TEXT = b"one\ntwo\n"
PERSON: dict[str, Any] = {"channel": "chat", "chat_id": "1", "sender": "p", "wait": WAIT}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def told(turn: Turn) -> str:
    return " ".join(f"{file.name}:{file.mime_type}:{file.read()[:4]!r}" for file in turn.files)


@pytest.mark.clause("FILE-1", "FILE-2", "FILE-3")
def test_a_persons_files_are_stored_named_and_given_to_the_agent(booth: Booth, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(TEXT)
    system = booth.start({"main": told})
    answer = system.inbound(
        **PERSON, text="look", files=[File(data=PNG, mime_type="image/bmp"), File(path=path)]
    )
    assert answer["reply"] == f"file-1.png:image/png:{PNG[:4]!r} notes.md:text/plain:b'one\\n'"
    (queued,) = recorded(system, RunQueued)
    named = files_in(queued)
    assert [(one.sha256, one.size, one.claimed) for one in named] == [
        (sha(PNG), len(PNG), "image/bmp"),
        (sha(TEXT), len(TEXT), None),
    ]
    history = system.gateway.call("chat.history", {"sessionKey": "main"})["messages"]
    assert history[0]["content"][1] == {
        "type": "file",
        "sha256": sha(PNG),
        "size": len(PNG),
        "name": "file-1.png",
        "mimeType": "image/png",
        "claimed": "image/bmp",
    }
    system.close()

    def earlier(turn: Turn) -> str:
        return " ".join(file.read()[:3].decode("latin-1") for file in turn.files_of(turn.transcript[0]))

    again = booth.start({"main": earlier})
    assert again.inbound(**PERSON, text="and now?")["reply"] == "\x89PN one"


@pytest.mark.clause("FILE-2")
@pytest.mark.parametrize(
    ("files", "code", "named"),
    [
        ([File(data=b"")], "invalid_request", "files[0]: it is empty"),
        ([File()], "invalid_request", "one of data and path"),
        ([File(data=b"x", path=Path("/x"))], "invalid_request", "one of data and path"),
        ([File(path=Path("/not/there"))], "invalid_request", "/not/there can't be read"),
        ([7], "invalid_request", "files[0]: int, give a File"),
        ("x", "invalid_request", "files: str, give a list of File"),
        ([File(data=b"x", name="a/b")], "invalid_name", "files[0]: its name"),
        (
            [File(data=b"x"), File(data=b"x" * 101)],
            "file_bytes_exceeded",
            "files[1]: 101 bytes, give at most 100",
        ),
        ([File(data=b"x" * 90)] * 2, "total_bytes_exceeded", "files.maxTotalBytes"),
        ([File(data=b"x")] * 4, "file_count_exceeded", "4 files, give at most 3 (files.maxFiles)"),
        ([File(data=b"%PDF-1.7")], "not_supported", "it is application/pdf, and taken are text/*, image/*"),
    ],
)
def test_what_is_beyond_the_limits_is_refused_and_leaves_nothing(
    booth: Booth, files: Any, code: str, named: str
) -> None:
    limits = {"maxFiles": 3, "maxFileBytes": 100, "maxTotalBytes": 150, "types": ["text/*", "image/*"]}
    system = booth.start({"main": told}, {}, {"files": limits})
    answer: dict[str, Any] = {**system.inbound(**PERSON, text="look", files=files)}
    assert (answer["status"], answer["code"]) == ("error", code)
    assert named in answer["error"]
    assert recorded(system, RunQueued) == []
    assert system.log.files.own() == []


@pytest.mark.clause("FILE-2")
def test_files_can_be_off(booth: Booth) -> None:
    system = booth.start({"main": told}, {}, {"files": {"enabled": False}})
    answer: dict[str, Any] = {**system.inbound(**PERSON, text="look", files=[File(data=PNG)])}
    assert (answer["status"], answer["code"]) == ("forbidden", "forbidden")
    assert system.inbound(**PERSON, text="look")["status"] == "ok"


@pytest.mark.clause("FILE-2", "INB-1", "GATE-1")
def test_a_message_is_the_same_with_the_same_files_alone(booth: Booth) -> None:
    system = booth.start({"main": told})
    first = system.inbound(**PERSON, text="", files=[File(data=PNG)], message_id="m")
    again = system.inbound(**PERSON, text="", files=[File(data=PNG)], message_id="m")
    other: dict[str, Any] = {**system.inbound(**PERSON, text="", files=[File(data=TEXT)], message_id="m")}
    assert first["runId"] == again["runId"]
    assert other["code"] == "idempotency_conflict"

    def sent(content: bytes) -> dict[str, Any]:
        file = {"content": b64(content), "fileName": "a.png", "mimeType": "image/png"}
        asked = {"sessionKey": "main", "message": "see", "idempotencyKey": "k", "attachments": [file]}
        return {**system.gateway.call("chat.send", asked)}

    one, two, three = sent(PNG), sent(PNG), sent(TEXT)
    assert one["runId"] == two["runId"]
    assert three["code"] == "idempotency_conflict"
    assert system.log.files.own() == [sha(PNG)]


@pytest.mark.clause("FILE-2", "GATE-1")
def test_attachments_of_methods_are_those_of_the_original(booth: Booth) -> None:
    system = booth.start({"main": told})
    for method, given in (
        ("chat.send", {"type": "image", "mimeType": "image/png", "fileName": "a.png", "content": b64(PNG)}),
        ("agent", {"content": f"data:image/png;base64,{b64(PNG)}"}),
    ):
        asked = {"sessionKey": "main", "message": "", "idempotencyKey": method, "attachments": [given]}
        run_id = system.gateway.call(method, asked)["runId"]
        ended = system.gateway.call("agent.wait", {"runId": run_id, "timeoutMs": 20_000})
        assert ended["reply"].endswith(f"image/png:{PNG[:4]!r}")
    bad = {"sessionKey": "main", "message": "x", "idempotencyKey": "b", "attachments": [{"content": "A"}]}
    refused = system.gateway.call("chat.send", bad)
    assert (refused["code"], refused["error"][:14]) == ("invalid_base64", "attachments[0]")


@pytest.mark.clause("FILE-4", "CTX-1")
@pytest.mark.parametrize("dialect", ["openai", "responses", "anthropic", "pydantic-ai"])
def test_a_model_that_takes_images_is_given_them(booth: Booth, dialect: Any) -> None:
    shown: list[str] = []

    def agent(turn: Turn) -> str:
        shown.append(repr(turn.messages(dialect)))
        return "ok"

    models = [{"id": "eye", "input": ["text", "image"]}, {"id": "blind", "input": ["text"]}]
    config = {"models": {"providers": {"own": {"models": models}}}}
    for number, model in enumerate(("own/eye", "own/blind", "gpt-4o")):
        system = booth.start({"main": agent}, {}, config, {"agents": {"defaults": {"model": model}}})
        system.inbound(**PERSON, text=f"look {number}", files=[File(data=PNG), File(data=b"\0\1")])
        system.close()
    eye, blind, known = shown
    data = repr(PNG) if dialect == "pydantic-ai" else b64(PNG)
    assert data in eye
    assert data in known
    assert data not in blind
    assert "the picture is not shown to you" in blind
    assert "application/octet-stream" in eye


@pytest.mark.clause("FILE-6", "INB-2")
def test_an_answers_files_go_out_with_its_text_or_without_one(booth: Booth) -> None:
    def agent(turn: Turn) -> Reply:
        picture = File(data=PNG, name="map.png")
        if turn.message == "bad":
            return Reply("here", files=(File(data=b""),))
        return Reply("here" if turn.message == "both" else None, files=(picture,))

    channel = MemoryChannel()
    system = booth.start({"main": agent}, {"chat": channel})
    system.inbound(**PERSON, text="both")
    system.inbound(**PERSON, text="alone")
    failed = system.inbound(**PERSON, text="bad")
    both, alone, sorry = channel.wait_for(3, timeout=WAIT)
    assert [(one.text, [file.name for file in one.files]) for one in (both, alone)] == [
        ("here", ["map.png"]),
        ("", ["map.png"]),
    ]
    assert both.files[0].read() == PNG
    assert sorry.files == ()
    assert failed["status"] == "error"
    assert "bad_reply: agent 'main' gave a file that is not taken: files[0]: it is empty" in failed["error"]
    assert [one.files[0].sha256 for one in recorded(system, DeliveryDecided)[:2]] == [sha(PNG)] * 2
    history = system.gateway.call("chat.history", {"sessionKey": "main"})["messages"]
    assert [block["type"] for block in history[1]["content"]] == ["text", "file"]


@pytest.mark.clause("FILE-6")
def test_files_go_with_the_last_part_of_a_long_text(booth: Booth) -> None:
    channel = MemoryChannel(max_chars=10)
    system = booth.start(
        {"main": lambda _: Reply("first words and more", files=(File(data=PNG),))}, {"chat": channel}
    )
    system.inbound(**PERSON, text="x")
    parts = channel.wait_for(3, timeout=WAIT)
    assert [len(part.files) for part in parts] == [0] * (len(parts) - 1) + [1]


KILLED = """
import sys
from intersession import File, SessionSystem, echo
from intersession_events.basics.crash_points import arm, kill_at

with SessionSystem(sys.argv[1], agents={"main": echo()}) as system:
    arm(kill_at("F1", 1))
    system.inbound(channel="chat", chat_id="1", sender="p", text="look", files=[File(data=b"hello")])
"""


@pytest.mark.clause("FILE-1", "F1")
def test_a_content_that_a_killed_host_has_not_named_is_removed_at_the_next_start(booth: Booth) -> None:
    booth.start({"main": told}).close()
    died = subprocess.run([sys.executable, "-c", KILLED, booth.url], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    with open_log(booth.url, read_only=True) as log:
        assert log.files.own() == [sha(b"hello")]

    system = booth.start({"main": told})
    assert system.log.files.own() == []
    answer = system.inbound(**PERSON, text="look", files=[File(data=b"hello")])
    assert answer["reply"] == "file-1.txt:text/plain:b'hell'"
    system.close()
    assert booth.start({"main": told}).log.files.own() == [sha(b"hello")]


@pytest.mark.clause("FILE-2")
@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"RIFF0000WEBPVP8", "image/webp"),
        (b"0000ftypheic", "image/heic"),
        (b"<svg onload='x'/>", "text/plain"),
        ("grüße".encode(), "text/plain"),
        (b"\xff\xfe", "application/octet-stream"),
        (b"a\0b", "application/octet-stream"),
    ],
)
def test_a_type_is_what_the_bytes_show(content: bytes, kind: str) -> None:
    assert kind_of(content) == kind


def erased(system: Any, **given: Any) -> dict[str, Any]:
    return {**system.gateway.call("sessions.erase", {"key": "main", "unsent": "giveUp", **given})}


def seen(url: str) -> tuple[FilesSeen, list[str]]:
    with open_log(url, read_only=True) as log:
        files, findings = files_compared(log)
        return files, [finding.code for finding in findings]


@pytest.mark.clause("FILE-7", "ERASE-1")
def test_contents_that_nobody_else_names_are_erased_with_their_words(booth: Booth) -> None:
    system = booth.start({"main": lambda _: "ok"})
    for number, content in enumerate((PNG, TEXT, TEXT)):
        message: dict[str, Any] = {**PERSON, "text": f"look {number}", "files": [File(data=content)]}
        if number == 2:
            message |= {"chat_type": "group", "chat_id": "g"}
        system.inbound(**message)
    answer = erased(system)
    assert (answer["ok"], answer["files"]) == (True, 1)
    assert system.log.files.own() == [sha(TEXT)]
    history = system.gateway.call("chat.history", {"sessionKey": "main"})["messages"]
    assert PNG[:4] not in repr(history).encode()
    assert {block["type"] for block in history[0]["content"]} == {"text"}
    assert sum(one.files for one in recorded(system, Erased)) == 1
    system.close()
    assert seen(booth.url) == (FilesSeen(right=1, erased=1), [])


@pytest.mark.clause("FILE-7", "F2")
def test_an_erasure_that_was_killed_before_its_files_went_is_completed_at_the_next_start(
    booth: Booth,
) -> None:
    system = booth.start({"main": told})
    system.inbound(**PERSON, text="look", files=[File(data=PNG)])
    system.close()
    script = KILLED.partition("    arm(")[0] + (
        '    arm(kill_at("F2", 1))\n    system.gateway.call("sessions.erase", {"key": "main", "unsent": "giveUp"})\n'
    )
    died = subprocess.run([sys.executable, "-c", script, booth.url], check=False, timeout=60)
    assert died.returncode == -signal.SIGKILL
    assert seen(booth.url)[0] == FilesSeen(erased=1)
    assert booth.start({"main": told}).log.files.own() == []


@pytest.mark.clause("FILE-7")
def test_a_content_that_is_lost_or_altered_is_found(booth: Booth) -> None:
    system = booth.start({"main": told})
    system.inbound(**PERSON, text="look", files=[File(data=PNG), File(data=TEXT)])
    path = system.log.files.path(sha(PNG))
    system.close()
    if path is None:
        return  # the other store has no files that somebody could take away
    path.write_bytes(b"other")
    (path.parent / sha(TEXT)).unlink()
    assert seen(booth.url) == (FilesSeen(altered=1, missing=1), ["file_altered", "file_missing"])
    with open_log(booth.url, read_only=True) as log:
        (lost,) = file_findings(log)
    assert (lost.level, lost.code) == ("error", "files_lost")
    assert sha(TEXT) in lost.what


@pytest.mark.clause("FILE-7")
def test_copies_of_a_log_have_its_files(booth: Booth, tmp_path: Path) -> None:
    system = booth.start({"main": told})
    run_id = system.inbound(**PERSON, text="look", files=[File(data=PNG)])["runId"]
    with system.fork(run_id, at="start", agents={"main": told}) as fork:
        assert fork.log.files.read(sha(PNG)) == PNG
    system.close()
    if booth.url.startswith("sqlite"):
        with open_log(booth.url, read_only=True) as log:
            back_up(log, tmp_path / "copy.db")
        assert seen(str(tmp_path / "copy.db")) == (FilesSeen(right=1), [])
    assert migrate(booth.url, f"sqlite:///{tmp_path}/moved.db").files == 1
    assert seen(f"sqlite:///{tmp_path}/moved.db") == (FilesSeen(right=1), [])


@pytest.mark.clause("FILE-5")
def test_an_agent_reads_a_text_file_by_pages_of_lines(booth: Booth) -> None:
    answers: list[Any] = []
    text = "".join(f"line {number}\n" for number in range(1, 251))

    def agent(turn: Turn) -> str:
        assert "read_file" in [tool["function"]["name"] for tool in turn.tools.schemas("openai")]
        asked: list[dict[str, Any]] = [
            {"file": "a.txt"},
            {"file": "a.txt", "offset": 201},
            {"file": sha(text.encode())[:12], "offset": 2, "limit": 2},
            {"file": "long.txt"},
            {"file": "a.png"},
            {"file": "b.txt"},
        ]
        answers.extend(turn.tools.call("read_file", given) for given in asked)
        return "ok"

    system = booth.start({"main": agent}, {}, {"tools": {"alsoAllow": ["read_file"]}})
    files = [
        File(data=text.encode(), name="a.txt"),
        File(data=b"x" * 60_000, name="long.txt"),
        File(data=PNG, name="a.png"),
    ]
    assert system.inbound(**PERSON, text="read it", files=files)["reply"] == "ok"
    whole, rest, some, long, picture, missing = answers
    assert (whole["lines"], whole["totalLines"], whole["nextOffset"]) == (200, 250, 201)
    assert whole["text"] + rest["text"] == text
    assert "nextOffset" not in rest
    assert some["text"] == "line 2\nline 3\n"
    assert "10000 characters of this line cut" in long["text"]
    assert (picture["code"], picture["error"]) == (
        "not_supported",
        "file: a.png is image/png, and only text can be read",
    )
    assert missing["code"] == "invalid_request"


@pytest.mark.clause("FILE-5")
def test_a_session_has_no_reader_of_files_unless_its_settings_name_it(booth: Booth) -> None:
    system = booth.start({"main": lambda turn: " ".join(map(str, turn.tools.schemas("mcp")))})
    assert "read_file" not in str(system.inbound(**PERSON, text="look")["reply"])


@pytest.mark.clause("FILE-2")
def test_a_pykka_actor_hands_files_in(booth: Booth) -> None:
    system = booth.start({"main": told})
    message = Inbound(**PERSON, text="look", files=(File(data=PNG, name="a.png"),))
    answer: Any = system.ref.ask(message, timeout=WAIT)
    assert answer["reply"] == f"a.png:image/png:{PNG[:4]!r}"


@pytest.mark.clause("FILE-4", "FILE-6", "FORK-7")
def test_messages_and_answers_with_files_are_decided_again_as_they_were(booth: Booth) -> None:
    def agent(turn: Turn) -> Reply:
        return Reply(turn.message or None, files=(File(data=turn.files[0].read()[::-1], name="b.bin"),))

    channel = MemoryChannel()
    system = booth.start({"main": agent}, {"chat": channel})
    for text in ("look", ""):
        run_id = system.inbound(**PERSON, text=text, files=[File(data=PNG)])["runId"]
    channel.wait_for(2, timeout=WAIT)
    assert system.debug.replay()["same"]
    with system.fork(run_id, at="start", agents={"main": "recorded"}) as fork:
        assert fork.carried_on(timeout=WAIT).divergence is None
        (decided,) = recorded(fork, DeliveryDecided)[-1:]
        assert [file.sha256 for file in decided.files] == [sha(PNG[::-1])]
        assert fork.debug.replay()["same"]

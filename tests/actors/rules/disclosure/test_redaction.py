"""Secrets are hidden when others read, wherever they stand, and nothing else is."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.disclosure import secrets as secret_spans
from intersession_actors.rules.disclosure import structures
from intersession_actors.rules.disclosure.redaction import mask, redact_raw, redact_text, redact_value
from intersession_actors.rules.disclosure.secret_names import is_secret_name
from intersession_events.basics.patterns import Later
from support.redaction_corpus import SEED

LONG = "abcdef0123456789WXYZ"
MASKED = "abcdef…WXYZ"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{LONG}\n{LONG}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    ("secret", "shown"),
    [
        ("a", "***"),
        ("a" * 17, "***"),
        ("abcdef" + "0" * 8 + "wxyz", "abcdef…wxyz"),
        (MASKED, MASKED),
        ("***", "***"),
    ],
)
def test_a_short_secret_goes_whole_and_a_long_one_keeps_its_ends(secret: str, shown: str) -> None:
    assert mask(secret) == shown


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # environment
        (f"API_KEY={LONG}", f"API_KEY={MASKED}"),
        (f"export GITHUB_TOKEN='{LONG}' && run", f"export GITHUB_TOKEN='{MASKED}' && run"),
        (f'DB_PASSWORD="{LONG} and more"', 'DB_PASSWORD="abcdef…more"'),
        ("MY_SECRET = hunter2\nNEXT=1", "MY_SECRET = ***\nNEXT=1"),
        (f"KEY={LONG}", f"KEY={MASKED}"),
        ("DB_PASS=a,b;c)d", "DB_PASS=***"),
        (f"aws_secret_access_key = {LONG}", f"aws_secret_access_key = {MASKED}"),
        # JSON and its kin
        (f'{{"apiKey":"{LONG}"}}', f'{{"apiKey":"{MASKED}"}}'),
        (f'{{"access_token" : "{LONG}", "n": 1}}', f'{{"access_token" : "{MASKED}", "n": 1}}'),
        (r'{"password":"a\"b"}', '{"password":"***"}'),
        (rf'"{{\"clientSecret\":\"{LONG}\"}}"', rf'"{{\"clientSecret\":\"{MASKED}\"}}"'),
        ("{'passwd': 'x'}", "{'passwd': '***'}"),
        ("password: hunter2", "password: ***"),
        ('"token": 123456', '"token": ***'),
        # flags
        (f"login --token {LONG} --verbose", f"login --token {MASKED} --verbose"),
        (f"login --api-key={LONG}", f"login --api-key={MASKED}"),
        ('login --password "a b"', 'login --password "***"'),
        # headers and URLs
        (f"Authorization: Bearer {LONG}", f"Authorization: Bearer {MASKED}"),
        (f"curl -H 'Authorization: Basic {LONG}'", f"curl -H 'Authorization: Basic {MASKED}'"),
        ("authorization: bearer abc", "authorization: bearer ***"),
        (f"with bearer {LONG}.", "with bearer abcdef…XYZ."),
        (f"X-Api-Key: {LONG}", f"X-Api-Key: {MASKED}"),
        ("postgresql://me:hunter2@db/x", "postgresql://me:***@db/x"),
        ("see a://b:redis+x://me:pa:ss@db", "see a://b:redis+x://me:***@db"),
        (f"https://x/?access_token={LONG}&a=1", f"https://x/?access_token={MASKED}&a=1"),
        # private keys
        (f"a\n{PEM}\nb", "a\n-----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----\nb"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "-----BEGIN PRIVATE KEY-----***"),
        # tokens known by their beginning
        *((f"see {token}, ok", f"see {mask(token)}, ok") for token in (
            "sk-abc12345",
            f"sk-proj-{LONG}",
            f"ghp_{LONG}",
            f"github_pat_{LONG}",
            "xoxb-12345678-abcdef",
            f"xapp-1-{LONG}",
            f"gsk_{LONG}",
            f"AIza{LONG}",
            f"pplx-{LONG}",
            f"npm_{LONG}",
            f"123456789:{LONG}abc",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
        )),
        (f"bot123456789:{LONG}abc", "bot" + mask(f"123456789:{LONG}abc")),
        # phrases, with whatever between their words
        (f"and {SEED} is", f"and {' '.join(['***'] * 12)} is"),
        (SEED.replace(" ", "-"), "-".join(["***"] * 12)),
        (SEED.replace(" ", "|"), "|".join(["***"] * 12)),
        (SEED.replace(" ", "\t"), "\t".join(["***"] * 12)),
    ],
)  # fmt: skip
def test_a_secret_in_a_text_is_hidden(text: str, shown: str) -> None:
    assert redact_text(text) == (shown, True)


@pytest.mark.clause("HIST-5", "HIST-3")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "the secret of a good key is its token of trust",
        '{"sessionKey":"agent:main:main","idempotencyKey":"k-1","totalTokens":1200,"maxTokens":5}',
        "sessionKey agent:main:main and mainKey=work",
        "SESSION_KEY=agent:main:main PUBLIC_KEY=abc",
        "a bearer certificate, a bearer of news",
        "task-force risk-assessment-2024",
        '"token": null, "password": true, "secret": [',
        "login --token --verbose",
        "-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----",
        "https://host:8080/a@b",
        "12:30:45 and 1234:abc",
        "skeleton sk- sk_ ghp_short",
        "key: value, Key=1",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact_text(text) == (text, False)


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    "name", ["apiKey", "APIKEY", "x-api-key", "--db-password", "accessToken", "OPENAI_KEY", "npm._authToken"]
)
def test_these_names_say_that_a_secret_follows(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    "name", ["sessionKey", "key", "tokens", "tokenCount", "mainKey", "author", "keyboard", "", "SESSION_KEY"]
)
def test_these_names_say_nothing(name: str) -> None:
    assert not is_secret_name(name)


pieces = st.sampled_from(
    [*"\"'\\=: \n&,-_{}", "API_KEY", "--token ", "password", "Bearer ", "sk-", LONG, PEM, PEM[:40], "://a:", "@", "***", "…", "123456:"]
)  # fmt: skip


hostile_texts = st.lists(pieces | st.text(max_size=8), max_size=14).map("".join)
ANNOUNCED = [
    "API_KEY=",
    'token="',
    "secret: ",
    '{"apiKey":"',
    "--password ",
    "Authorization: Bearer ",
    "KEY= --token ",
]


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize("announced", ANNOUNCED)
@pytest.mark.parametrize(
    "before", ["API_KEY=", "password:", "secret: ", "--token", f"API_KEY={'X' * 80}_TOKEN="]
)
def test_a_name_without_a_value_hides_no_name_that_has_one(before: str, announced: str) -> None:
    """An empty variable of an `.env` file stands above another one."""
    for between in ("\n", " ", "\n\n", "\n  "):
        shown, found = redact_text(f"{before}{between}{announced}{LONG[::-1]}\n")
        assert found
        assert LONG[::-1] not in shown


@given(hostile_texts, st.sampled_from(ANNOUNCED), hostile_texts)
@pytest.mark.clause("HIST-5")
def test_nothing_around_a_secret_brings_it_to_light(before: str, announced: str, after: str) -> None:
    secret = LONG[::-1]
    shown, found = redact_text(f"{before}\n{announced}{secret}\n{after}")
    assert found
    assert secret not in shown


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize("announced", ANNOUNCED)
def test_redacting_again_changes_nothing(announced: str) -> None:
    once, _ = redact_text(f"{announced}{LONG}")
    assert redact_text(once) == (once, False)


@given(hostile_texts)
@pytest.mark.clause("HIST-5")
def test_spans_are_in_order_and_apart(text: str) -> None:
    spans = secret_spans.secret_spans(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < end for start, end in spans)


# --- in a message


@pytest.mark.clause("HIST-5")
def test_secrets_inside_tool_calls_and_results_are_hidden() -> None:
    arguments = {
        "command": f"curl -H 'Authorization: Bearer {LONG}'",
        "env": {"API_KEY": LONG, "HOME": "/x", "nested": [{"password": "p", "n": 5}]},
        "credentials": {"user": "me", "list": ["a", 1, None, True]},
        "sessionKey": "agent:main:main",
    }
    message: dict[str, Any] = {
        "id": "m1",
        "role": "assistant",
        "content": [
            {"type": "text", "text": f"using {LONG} as password={LONG}"},
            {"type": "thinking", "thinking": f"TOKEN={LONG}"},
            {"type": "toolCall", "id": "sk-12345678", "name": "exec", "arguments": arguments},
            {"type": "image", "data": "sk-" + "A" * 40, "mimeType": "image/png"},
        ],
        "details": {"apiKey": "short"},
        "timestamp": 1,
    }
    before = repr(message)

    shown, redacted = redact_raw(message)

    text, thinking, call, image = shown["content"]
    assert redacted
    assert text["text"] == f"using {LONG} as password={MASKED}"
    assert thinking["thinking"] == f"TOKEN={MASKED}"
    assert call["arguments"] == {
        "command": f"curl -H 'Authorization: Bearer {MASKED}'",
        "env": {"API_KEY": MASKED, "HOME": "/x", "nested": [{"password": "***", "n": 5}]},
        "credentials": {"user": "***", "list": ["***", 1, None, True]},
        "sessionKey": "agent:main:main",
    }
    assert image == message["content"][3]
    assert (shown["details"], shown["id"], shown["timestamp"]) == ({"apiKey": "***"}, "m1", 1)
    assert list(shown) == list(message)
    assert repr(message) == before


@pytest.mark.clause("HIST-5")
def test_a_text_that_a_model_gave_as_arguments_is_gone_through() -> None:
    call = {"type": "toolCall", "id": "c", "name": "x", "arguments": f"not json --token {LONG}"}
    shown, redacted = redact_raw({"role": "assistant", "content": [call]})

    assert (redacted, shown["content"][0]["arguments"]) == (True, f"not json --token {MASKED}")


@given(hostile_texts)
@pytest.mark.clause("HIST-5")
def test_in_a_message_of_text_alone_the_same_is_hidden_as_in_any_value(text: str) -> None:
    message = {"role": "user", "content": text}
    assert redact_raw(message) == redact_value(message)


@pytest.mark.clause("HIST-5")
def test_a_tool_result_as_a_string_is_gone_through() -> None:
    shown, redacted = redact_raw(
        {"role": "toolResult", "content": f"ghp_{LONG}", "toolCallId": f"ghp_{LONG}"}
    )

    assert redacted
    assert shown["content"] == mask(f"ghp_{LONG}")
    assert shown["toolCallId"] == f"ghp_{LONG}"


@pytest.mark.clause("HIST-5", "HIST-3")
def test_a_message_without_secrets_is_equal_field_by_field() -> None:
    message = {
        "id": "m",
        "role": "user",
        "content": [{"type": "text", "text": "hi", "extra": [1.5, None]}],
        "x": {},
    }
    assert redact_raw(message) == (message, False)


@pytest.mark.clause("HIST-5")
def test_what_is_nested_very_deep_is_gone_through_too() -> None:
    deep: Any = f"ghp_{LONG}"
    for _ in range(50_000):
        deep = [deep]
    shown, redacted = redact_value(deep)
    while isinstance(shown, list):
        (shown,) = shown
    assert (shown, redacted) == (mask(f"ghp_{LONG}"), True)
    while isinstance(deep, list):  # let it go level by level
        (deep,) = deep


# --- the bound on work


@pytest.mark.clause("HIST-5")
def test_no_pattern_can_look_back_over_what_it_took() -> None:
    """Every repetition is possessive, lazy within a small bound, or of a fixed count."""
    values = [*vars(secret_spans).values(), *vars(structures).values(), *structures.VALUES.values()]
    patterns = [value.pattern for value in values if isinstance(value, re.Pattern | Later)]

    assert len(patterns) > 30
    for pattern in patterns:
        bare = re.sub(r"\[(?:\\.|[^\]\\])*\]|\\.", "x", pattern)  # classes and escapes are one character
        for found in re.finditer(r"[^(|](\*|\+|\{[0-9]*,[0-9]*\})(.?)", bare):
            assert found[2] == "+" or found.group().endswith("?"), (pattern, found.group())


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    "unit",
    [
        "a",
        " ",
        "\\",
        '"',
        "a=",
        "KEY",
        "KEY=",
        "key ",
        "API_KEY='",
        "API_KEY=\"'",
        "--token ",
        "--",
        "sk-",
        "-eyJ",
        "eyJa.",
        "1",
        "123456:",
        "://",
        "://a:",
        "Bearer ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "github_pat_",
        "SG.",
        "\n",
        "a\u2028",
    ],
)
@pytest.mark.parametrize(
    "size",
    [20_000, pytest.param(100_000, marks=pytest.mark.ci), pytest.param(1_000_000, marks=pytest.mark.nightly)],
)
def test_a_long_text_of_anything_is_gone_through(unit: str, size: int) -> None:
    text = unit * (size // len(unit))
    shown, _ = redact_text(text)
    assert len(shown) <= len(text) * 3


@pytest.mark.clause("HIST-5")
@given(
    st.lists(st.sampled_from([f"API_KEY={LONG}", "It is done.", f"see ghp_{LONG}", "text", ""]), max_size=3)
)
def test_a_message_of_text_alone_is_shown_as_any_value_of_json(texts: list[str]) -> None:
    content = [{"type": "text", "text": text} for text in texts]
    message = {"id": "one", "role": "assistant", "content": content, "timestamp": 1}
    shown, found = redact_value(content)
    assert redact_raw(message) == ({**message, "content": shown}, found)

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.outside.channels.channels import DeliveryRefused, Outbound
from intersession_actors.outside.channels.url import BadChannelUrl, channel_url

SECRET = "very-secret"


def outbound(to: str, thread: str | None = None) -> Outbound:
    return Outbound(channel="telegram", to=to, thread=thread, text="hello", key="key")


@pytest.mark.parametrize(
    ("to", "thread", "filled"),
    [
        ("-100123", "7", "tgram://token/-100123?topic=7"),
        ("@ann", None, "tgram://token/%40ann?topic="),
        ("!room:example.com", "$1", "tgram://token/%21room%3Aexample.com?topic=%241"),
    ],
)
def test_chat_and_thread_are_filled_in(to: str, thread: str | None, filled: str) -> None:
    url = channel_url("tgram://token/{to}?topic={thread}")

    assert url.for_text(outbound(to, thread)) == filled


@pytest.mark.clause("X13")
@pytest.mark.parametrize(
    "to",
    [
        "../admin",
        "..",
        ".",
        "a/b",
        "a?b",
        "a#b",
        "a%2fb",
        "a\\b",
        "a b",
        "a,b",
        "a&b",
        "a\nb",
        "é",
        "{to}",
        "x" * 300,
    ],
)
def test_a_chat_that_could_mean_something_in_a_url_is_refused(to: str) -> None:
    with pytest.raises(DeliveryRefused, match=r"^to "):
        channel_url("json://hooks.example/chat/{to}").for_text(outbound(to))


@pytest.mark.clause("X13")
@given(st.text(alphabet="/\\.:@?#%&;=+, \t\n[]{}ab1", max_size=8), st.integers(0, 3))
def test_no_chat_changes_host_or_path_however_often_the_url_is_decoded(to: str, times: int) -> None:
    url = channel_url("json://hooks.example:8080/chat/{to}/end?thread={to}")
    try:
        text = url.for_text(outbound(to))
    except DeliveryRefused:
        return

    for _ in range(times):
        text = unquote(text)
    parts = urlsplit(text)
    assert parts.netloc == "hooks.example:8080"
    before, *_, last = parts.path.rpartition("/end")
    assert (before, last) == (f"/chat/{to}" if times else before, "")
    assert parts.path.count("/") == 3


@pytest.mark.parametrize(
    "text",
    [
        SECRET,
        f"://{SECRET}",
        f"1x://{SECRET}",
        f"https://{{to}}.example/{SECRET}",
        f"https://{{to}}@hooks.example/{SECRET}",
        f"https://hooks.example/{SECRET}/{{chat}}",
        f"https://hooks.example/{SECRET}/{{to",
        f"https://hooks.example/{SECRET} x",
        f"https://hooks.example\\@127.0.0.1/{SECRET}",
        f"https://ⓗooks.example/{SECRET}",
        f"https://127。0。0。1/{SECRET}",
        f"https://hooks.example/\n{SECRET}",
    ],
)
def test_a_url_of_the_wrong_form_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(BadChannelUrl) as refused:
        channel_url(text)

    assert SECRET not in str(refused.value)


def test_a_url_does_not_show_itself() -> None:
    assert repr(channel_url(f"tgram://{SECRET}/{{to}}")) == "ChannelUrl(tgram://…)"

"""How many secrets are hidden and how many innocents, over a corpus of both; the page says the same numbers (C9)."""

import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from intersession_actors.rules.disclosure.announced import announced
from intersession_actors.rules.disclosure.redaction import redact_text, redact_value
from intersession_actors.rules.disclosure.structures import structured
from intersession_actors.rules.disclosure.token_rules import token_rules, tokens_in
from support.pages import token_rules as made
from support.paths import DOCS
from support.redaction_corpus import AROUND, false_cases, true_cases

PAGE = DOCS / "reference" / "redaction.md"
TRUE, FALSE = list(true_cases()), list(false_cases())
SECRET = "Zx9kQ7mW2p" + "L4vT8nR3"


@pytest.mark.clause("HIST-5")
def test_the_page_says_how_much_is_hidden_and_how_much_too_much() -> None:
    said = PAGE.read_text(encoding="utf-8")
    rows: list[str] = []
    hidden: Counter[str] = Counter()
    cases = Counter(case.form for case in TRUE)
    for case in TRUE:
        hidden[case.form] += case.secret not in redact_text(case.text)[0]
    rows += [f"| {form} | {cases[form]} | {hidden[form]} |" for form in cases]
    rows.append(f"| all | {len(TRUE)} | {hidden.total()} |")
    too_much = [text for text in FALSE if redact_text(text)[1]]
    sentence = f"Of {len(FALSE)} texts without a secret, {len(too_much)} lose something"

    assert len(TRUE) > 300
    assert len(FALSE) > 200
    assert [row for row in rows if row not in said] == []
    assert sentence in " ".join(said.split()), (sentence, too_much)


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize("form", sorted({case.form for case in TRUE} - {"other"}))
def test_every_form_that_is_looked_for_is_found(form: str) -> None:
    shown = [case.text for case in TRUE if case.form == form and case.secret in redact_text(case.text)[0]]

    assert shown == []


@pytest.mark.clause("HIST-5")
def test_redacting_again_hides_no_more() -> None:
    for case in TRUE:
        once, _ = redact_text(case.text)
        twice, _ = redact_text(once)
        assert case.secret in twice or redact_text(twice)[0] == twice


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    "value",
    [
        ["--password", SECRET],
        ["tool", "--api-key", SECRET, "--verbose"],
        ["curl", "-u", f"alice:{SECRET}", "https://x"],
        ["/usr/bin/curl", "--user", f"alice:{SECRET}"],
        ["mysql", "-u", "root", f"-p{SECRET}"],
        ["docker", "login", "-u", "me", "-p", SECRET],
        ["sshpass", "-p", SECRET, "ssh", "h"],
        ["Authorization", f"Bearer {SECRET}"],
        [["Accept", "*/*"], ["X-Api-Key", SECRET]],
        ["-H", f"Authorization: Bearer {SECRET}"],
        {"name": "Authorization", "value": SECRET},
        {"env": [{"name": "PGPASSWORD", "value": SECRET}, {"name": "HOME", "value": "/root"}]},
        {"headers": [{"key": "Cookie", "value": f"sid={SECRET}"}]},
        {"Cookie": f"a=b; sid={SECRET}"},
        {"cookies": {"sid": SECRET}},
        {"command": ["sh", "-c", f"PGPASSWORD={SECRET} psql"]},
        {"PGPASSWORD": SECRET},
        {"password": f"hunter({SECRET})"},
    ],
    ids=str,
)
def test_a_secret_in_the_arguments_of_a_tool_is_hidden_by_its_place(value: Any) -> None:
    shown, found = redact_value(value)

    assert found
    assert SECRET not in repr(shown)


@pytest.mark.clause("HIST-5", "HIST-3")
@pytest.mark.parametrize(
    "value",
    [
        ["--password-file", "/run/x"],
        ["password", "email", "name"],
        ["docker", "run", "-p", "8080:80", "-u", "1000:1000", "image"],
        ["curl", "-X", "POST", "https://x"],
        ["X-Api-Key", "Authorization"],
        ["--token", "--verbose"],
        {"name": "Ann", "value": "5"},
        {"name": "token_count", "value": "5"},
        {"credentials": "same-origin"},
        {"env": {"PWD": "/srv/me", "HOME": "/srv/me"}},
        {"apiKey": "${API_KEY}"},
        {"cookie": "yes please"},
    ],
    ids=str,
)
def test_what_is_no_secret_in_the_arguments_of_a_tool_stays(value: Any) -> None:
    assert redact_value(value) == (value, False)


@pytest.mark.clause("HIST-5")
@given(
    st.sampled_from([case for case in TRUE if case.form == "token"]),
    st.sampled_from(AROUND),
    st.text(max_size=40),
)
def test_a_token_is_hidden_wherever_it_stands(case: Any, around: str, before: str) -> None:
    shown, _ = redact_text(f"{before} " + around.format(case.secret))

    assert case.secret not in shown


# --- the rules that come from elsewhere


def test_the_rules_are_made_of_their_source() -> None:
    assert made.TARGET.read_text(encoding="utf-8") == made.current_file(), f"run: {made.COMMAND}"
    assert "MIT License" in made.TARGET.read_text(encoding="utf-8")


@pytest.mark.clause("HIST-5")
def test_no_rule_looks_at_more_than_a_bounded_number_of_characters_from_anywhere() -> None:
    """No repetition without an end, none within one that is repeated often, and a begin that is known."""
    assert len(token_rules()) > 180
    for rule in token_rules():
        bare = re.sub(r"\[(?:\\.|[^\]\\])*\]|\\.", "x", rule.pattern)
        assert not re.search(r"[*+](?!\+)|\{[0-9]+,\}", bare), rule
        assert all(int(most) <= made.LONGEST for most in re.findall(r"\{[0-9]*,?([0-9]+)\}", bare)), rule
        assert not re.search(r"[*+}]\)[*+]|,[0-9]{2,}\}\)\{[0-9]+,[0-9]{2,}\}", bare), rule
        assert rule.keywords, rule


@pytest.mark.clause("HIST-5")
@pytest.mark.parametrize(
    "unit",
    [
        *(
            "curl -u ",
            "curl ",
            "mysql -p",
            '"--password", ',
            "Cookie: a=b; ",
            "cookie:",
            "password: |\n  ",
            "- name: ",
            "name: x value: ",
        ),
        *(
            "machine a login ",
            "<password>",
            "<password ",
            "sig=",
            "://a:b@",
            "://a:@@",
            "a:b@tcp(",
            "eyJ",
            "xapp-1-",
            "jira = ",
            "$" * 9,
        ),
        *(
            "token=<",
            "token={{",
            "sk_live_",
            "A" * 20 + " ",
            "a=" + "b" * 20 + ",",
            '\\"name\\": ',
            "docker login ",
            "password is ",
            "identified by ",
            "create user identified ",
            "<input type=password ",
            'variable "token" {',
            "digest response",
            "echo a | ",
            "a.b:5432:",
            "net use \\\\h\\s ",
            "htpasswd -b f ",
            "7z x ",
            "token: str",
        ),
    ],
)
@pytest.mark.parametrize(
    "size",
    [15_000, pytest.param(60_000, marks=pytest.mark.ci), pytest.param(1_000_000, marks=pytest.mark.nightly)],
)
def test_a_long_text_of_any_of_it_is_gone_through(unit: str, size: int) -> None:
    text = unit * (size // len(unit))

    assert len(redact_text(text)[0]) <= len(text) * 3
    assert len(list(structured(text))) + len(list(tokens_in(text))) + len(list(announced(text))) <= len(text)

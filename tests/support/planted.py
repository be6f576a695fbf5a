"""Secrets that a test has planted, found again in what is shown."""

from collections.abc import Mapping


def told_in(text: str, secrets: Mapping[str, str]) -> list[str]:
    """Return the names of the secrets of which a text tells a part: eight letters of what a mask leaves out."""
    return [
        name
        for name, secret in secrets.items()
        if any(secret[at : at + 8] in text for at in range(6, max(7, len(secret) - 11)))
    ]

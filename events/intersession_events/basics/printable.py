"""Text that can't steer a terminal; for consoles, channels that print, and the command line. Pure."""


def printable(text: str) -> str:
    """Return a text with everything that is neither printable nor a line break or tab shown as its escape."""
    return "".join(
        character if character.isprintable() or character in "\n\t" else ascii(character)[1:-1]
        for character in text
    )

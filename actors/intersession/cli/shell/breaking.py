"""Where lines are broken whose characters take one column each: rich looks at each word, which long answers have a million of."""


def broken(line: str, room: int) -> list[str]:
    """Return the parts of a line that is broken to fit into the columns, between words if it can be.

    Spaces at its ends, and where it is broken, are left out. A word that is longer than a line begins one, and is cut.
    """
    parts: list[str] = []
    left = line.strip(" ")
    while len(left) > room:
        # The last space that ends a word which still fits; there is none where one word fills the line.
        stop = left.rfind(" ", 1, room + 1)
        if stop < 0:
            stop = room
        parts.append(left[:stop].rstrip(" "))
        left = left[stop:].lstrip(" ")
    parts.append(left)
    return parts

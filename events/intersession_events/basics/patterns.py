"""Regular expressions that are compiled when they are first looked for: dozens of them take longer than most commands that need none."""

import re
from typing import cast


class Later:
    """What stands for a pattern until it is compiled, and has its methods from then on."""

    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Compile it: only what is not there yet is asked for here."""
        compiled = re.compile(self.pattern, self._flags)
        vars(self).update({each: getattr(compiled, each) for each in dir(re.Pattern) if each[0] != "_"})
        found: object = getattr(compiled, name)
        return found


def later(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return a pattern with all its methods, which is compiled once the first of them is called.

    Raises:
        re.PatternError: then, if it is none.
    """
    return cast("re.Pattern[str]", Later(text, flags))

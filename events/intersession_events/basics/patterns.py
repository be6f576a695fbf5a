"""Regular expressions that are compiled at their first use: compiling dozens takes longer than most commands, which need none."""

import re
from typing import cast


class Later:
    """Stands for a pattern until it is compiled, and then has its methods."""

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
    """Return a pattern that is compiled when one of its methods is first called.

    Raises:
        re.PatternError: then, if it is invalid.
    """
    return cast("re.Pattern[str]", Later(text, flags))

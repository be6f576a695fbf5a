"""What chance decides in a simulation. Each departure from the plain course has a name, by which it can be kept or left out.

Every draw has a stream (`schedule`, `agent desk`, …) and a number in it, and depends on these and the seed alone. So a run in
which most departures are left out still draws the others as before: that is how a failing seed is shrunk.
"""

from collections import Counter
from collections.abc import Collection
from hashlib import blake2b
from random import Random

_MASK = 0xFFFF_FFFF_FFFF_FFFF


def _mixed(value: int) -> int:
    """Return 64 well-mixed bits of a number (splitmix64)."""
    value = (value + 0x9E37_79B9_7F4A_7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58_476D_1CE4_E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D0_49BB_1331_11EB) & _MASK
    return value ^ (value >> 31)


def typed(name: str) -> str:
    """Return the name of a departure as it is typed in a command: without blanks."""
    return name.replace(" ", "_")


class Chance:
    """The draws of one seed. With `keep` only the departures of these names happen, in which a blank may be an underscore."""

    def __init__(self, seed: int, keep: Collection[str] | None = None) -> None:
        self.seed = seed
        self.taken: list[str] = []
        """The departures that were made, in order."""
        self.is_over = False
        """True from where everything goes its plain course."""
        self._keep = None if keep is None else frozenset(map(typed, keep))
        self._drawn: Counter[str] = Counter()
        self._bases: dict[str, int] = {}

    def departs(self, stream: str, probability: float) -> bool:
        """Say whether to depart from the plain course here, with so much probability."""
        value, name = self._draw(stream)
        return not self.is_over and value < probability * 2**64 and self._takes(name)

    def pick(self, stream: str, most: int) -> int:
        """Return a number from 0, the plain choice, up to `most`."""
        value, name = self._draw(stream)
        picked = value % (most + 1)
        return picked if picked and not self.is_over and self._takes(name) else 0

    def fixed(self, stream: str, most: int) -> int:
        """Return a number up to `most` that is no departure: something has to be chosen."""
        return self._draw(stream)[0] % (most + 1)

    def _draw(self, stream: str) -> tuple[int, str]:
        number = self._drawn[stream]
        self._drawn[stream] = number + 1
        base = self._bases.get(stream)
        if base is None:
            digest = blake2b(f"{self.seed}:{stream}".encode(), digest_size=8).digest()
            base = self._bases[stream] = int.from_bytes(digest, "big")
        return _mixed(base + number), f"{stream}:{number}"

    def _takes(self, name: str) -> bool:
        if self._keep is not None and typed(name) not in self._keep:
            return False
        self.taken.append(name)
        return True


class Schedule(Random):
    """The order in which a simulated runtime does things: the oldest first, but for departures."""

    def __init__(self, chance: Chance, *, reorders: float) -> None:
        super().__init__(0)
        self._chance = chance
        self._reorders = reorders

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Choose one of so many things that could be done next."""
        del stop, step
        if start > 1 and self._chance.departs("schedule", self._reorders):
            return 1 + self._chance.fixed("scheduled", start - 2)
        return 0

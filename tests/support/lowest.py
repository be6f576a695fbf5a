"""Prints the lowest versions that the gateway takes of the libraries whose private parts it overrides, as requirements of pip."""

import re
import tomllib
from pathlib import Path

OVERRIDDEN = ("h11", "litestar", "uvicorn", "websockets")


def lowest() -> list[str]:
    """Return a requirement for each, of exactly the version that `pyproject.toml` begins with."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["optional-dependencies"]["gateway"]
    found = [re.match(r"([a-z0-9-]+)>=([0-9.]+)", each) for each in needed]
    return [f"{one[1]}=={one[2]}" for one in found if one is not None and one[1] in OVERRIDDEN]


if __name__ == "__main__":
    print("\n".join(lowest()))  # noqa: T201 - for pip

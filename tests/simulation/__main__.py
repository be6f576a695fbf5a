"""`python -m tests.simulation`: simulate so many seeds, or one again."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from simulation.run import main

    sys.exit(main(sys.argv[1:]))

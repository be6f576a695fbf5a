"""`python -m tests.benchmarks`: run them all, or those that are named."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.run import main

    sys.exit(main(sys.argv[1:]))

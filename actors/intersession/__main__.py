"""`python -m intersession`: the command line."""

import sys

from intersession.cli.shell.run import main

if __name__ == "__main__":
    sys.exit(main())

"""Run the command line: `python -m localcloud`."""

from __future__ import annotations

import sys

from localcloud.cli import main

if __name__ == "__main__":
    sys.exit(main())

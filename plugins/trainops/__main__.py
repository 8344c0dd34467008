"""`python -m trainops`: the command line."""

import sys

from trainops.cli import main

sys.exit(main())

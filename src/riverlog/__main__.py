"""`python -m riverlog` is the command `riverlog`."""

import sys

from riverlog.cli.main import main

sys.exit(main())

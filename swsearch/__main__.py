"""``python -m swsearch``: the same as the ``swsearch`` command."""

import sys

from swsearch.cli.app import main

sys.exit(main())

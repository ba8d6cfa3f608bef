"""What every test may rely on, however the tests were started."""

import signal

from hypothesis import settings

# A shell that starts the tests in the background has them ignore Ctrl-C, and so every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No example fails because the machine is busy.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

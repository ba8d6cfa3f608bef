"""What every test may rely on, however the tests were started."""

import signal

# A shell that starts the tests in the background has them ignore Ctrl-C, and so every process they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

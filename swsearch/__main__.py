"""``python -m swsearch``, which is equivalent to the ``swsearch`` command."""

from swsearch.cli.start import run

if __name__ == "__main__":
    run()

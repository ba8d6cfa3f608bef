"""``python -m swsearch``: the same as the ``swsearch`` command."""

from swsearch.cli.start import run

if __name__ == "__main__":
    run()

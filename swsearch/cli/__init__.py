"""The ``swsearch`` command: a thin module a command over the library."""

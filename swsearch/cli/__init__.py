"""The ``swsearch`` command, with one thin module per subcommand that calls the library."""

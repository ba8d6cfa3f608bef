"""Processes of the program that begin as forks of a server, which has loaded its modules.

A new interpreter takes a third of a second until a command begins its work, a fork some milliseconds. `servers`
starts the server (:mod:`tests.forking.server`), which forks a process for each request. `client.c` makes requests under
the names `python` and `swsearch`, so that tests start a fork like the interpreter or the command, from Python or from a
shell; `processes` makes requests from Python, for processes whose id must be known and that are killed.
"""

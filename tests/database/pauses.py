"""Processes that stop at a chosen moment of a build or a change of a database, until they read a line or are ended."""

import subprocess

from tests.processes import Process, start

PAUSES = """
import os, sys

def pause():
    print("here", flush=True)
    sys.stdin.readline()

def before(function):
    def paused(*arguments, **options):
        pause()
        return function(*arguments, **options)
    return paused

def after(function):
    def paused(*arguments, **options):
        result = function(*arguments, **options)
        pause()
        return result
    return paused

def within(function):
    def paused(*arguments, **options):
        for item in function(*arguments, **options):
            yield item
            pause()
    return paused
"""
"""The beginning of a program, whose functions make others pause."""


def start_paused(program: str, *arguments: object) -> Process:
    """Start a program that begins with :data:`PAUSES`; return when it pauses."""
    child = start(
        ["-c", program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "here\n", child.communicate()[1]
    return child

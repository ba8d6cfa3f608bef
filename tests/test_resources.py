"""The places of caches and data of a user. Expected values: the XDG Base Directory Specification."""

import os
import subprocess
import sys
from pathlib import Path

from swsearch.engine.cuda.runtime.compiled_kernels import cache_folder
from swsearch.folders import user_cache, user_data


def test_places_follow_the_specification_of_xdg(monkeypatch):
    """Source: the XDG Base Directory Specification: a relative path is ignored, an empty one counts as not set."""
    monkeypatch.setenv("HOME", "/home/somebody")
    for given, folder in (("/cache", "/cache"), ("", "/home/somebody/.cache"), ("here", "/home/somebody/.cache")):
        monkeypatch.setenv("XDG_CACHE_HOME", given)
        assert user_cache("kernels") == Path(folder) / "swsearch/kernels"
    for given, folder in (("/data", "/data"), ("", "/home/somebody/.local/share")):
        monkeypatch.setenv("XDG_DATA_HOME", given)
        assert user_data("hits.sqlite") == Path(folder) / "swsearch/hits.sqlite"
    monkeypatch.setenv("SWSEARCH_KERNEL_CACHE", "~/kernels")
    assert cache_folder() == Path("/home/somebody/kernels")


def test_a_user_without_a_home_can_search(tmp_path):
    """A container's user that is in no list of users and has no HOME; caches then store nothing."""
    program = (
        "import pathlib, pwd\n"
        "def unknown(*_): raise KeyError('getpwuid(): uid not found')\n"
        "pwd.getpwuid = unknown\n"
        "from swsearch.folders import user_cache\n"
        "folder = user_cache('statistics')\n"
        "print(folder)\n"
        "try: folder.mkdir(parents=True)\n"
        "except OSError: print('cannot be made')\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in ("HOME", "XDG_CACHE_HOME")}
    outcome = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert outcome.stdout.splitlines() == ["/dev/null/swsearch/statistics", "cannot be made"]

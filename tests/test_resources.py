"""The places of caches and data of a user. Expected values: the XDG Base Directory Specification."""

import pwd
from pathlib import Path

import pytest

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


def test_a_user_without_a_home_can_search(monkeypatch):
    """A container's user that is in no list of users and has no HOME; caches then store nothing."""

    def unknown(_uid: int):
        raise KeyError("getpwuid(): uid not found")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    folder = user_cache("statistics")
    assert folder == Path("/dev/null/swsearch/statistics")
    with pytest.raises(OSError, match="Not a directory"):
        folder.mkdir(parents=True)

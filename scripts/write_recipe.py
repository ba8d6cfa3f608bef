"""Write the recipe for Bioconda from an sdist: the files of ``packaging/bioconda`` with its version and checksum.

    python scripts/write_recipe.py dist/swsearch-1.2.0.tar.gz HOME recipes/swsearch

HOME is the address of the documentation of the release; its folder ``releases`` has the sdist. The recipe names the
file by its checksum, so it can be complete only when the sdist of the release is there.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import shutil
import sys
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[1] / "packaging" / "bioconda"


def write_recipe(sdist: Path, home: str, folder: Path) -> None:
    """Write ``meta.yaml`` and ``build.sh``.

    Raises
    ------
    ValueError
        The file has no name of an sdist of swsearch, or the home page is not an address of the web.
    """
    version = re.fullmatch(r"swsearch-(\d+\.\d+\.\d+\w*)\.tar\.gz", sdist.name)
    if version is None:
        raise ValueError(f"{sdist} is not named as an sdist of swsearch is, swsearch-VERSION.tar.gz")
    if not re.fullmatch(r"https://[^\s/]+(/\S*)?", home):
        raise ValueError(f"{home} is not the address of a home page, https://HOST/PATH")
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    text = (SOURCES / "meta.yaml.in").read_text()
    folder.mkdir(parents=True, exist_ok=True)
    values = {"@VERSION@": version[1], "@SHA256@": checksum, "@HOME@": home.rstrip("/")}
    for place, value in values.items():
        text = text.replace(place, value)
    (folder / "meta.yaml").write_text(text)
    shutil.copy(SOURCES / "build.sh", folder)


def main(arguments: list[str]) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Write the recipe for Bioconda from an sdist.")
    parser.add_argument("sdist", type=Path)
    parser.add_argument("home", help="address of the documentation, whose folder releases has the sdist")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args(arguments)
    try:
        write_recipe(given.sdist, given.home, given.folder)
    except (OSError, ValueError) as error:
        print(f"write_recipe: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

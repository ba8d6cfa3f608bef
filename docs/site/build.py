"""Builds the documentation site: collects its pages, runs Sphinx, and checks the result. ``make docs`` calls it.

    python docs/site/build.py [--out build/site] [--links]

The site is in ``OUT/html``; it needs no server and no network. Every warning is an error, and every build is a complete
one, since Sphinx repeats no warning about a page that it need not read again. With ``--links``, the links to other
sites are followed instead, which needs the network; the findings are in ``OUT/links/output.txt``.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import accessible
import check
import commands
import performance
import python_api
import sources


def main() -> int:
    """Build the site; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=sources.ROOT / "build" / "site")
    parser.add_argument("--links", action="store_true", help="follow the links to other sites instead")
    options = parser.parse_args()
    builder, folder = ("linkcheck", "links") if options.links else ("html", "html")
    for old in ("source", "doctrees", folder):
        shutil.rmtree(options.out / old, ignore_errors=True)
    try:
        generated = commands.command_pages() | python_api.python_pages() | performance.performance_pages()
        sources.write_sources(options.out / "source", generated)
    except sources.SiteError as error:
        print(f"docs: error: {error}", file=sys.stderr)
        return 1
    sphinx = [
        sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning", "--builder", builder,
        "--conf-dir", str(Path(__file__).parent), "--doctree-dir", str(options.out / "doctrees"),
        str(options.out / "source"), str(options.out / folder),
    ]  # fmt: skip
    code = subprocess.run(sphinx, check=False).returncode
    if code or options.links:
        return code
    accessible.repair(options.out / folder)
    found = list(check.faults(options.out / folder))
    for fault in found:
        print(f"docs: error: {fault}", file=sys.stderr)
    if not found:
        print(f"docs: {options.out / folder / 'index.html'}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

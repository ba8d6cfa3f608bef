"""Prints the requirements of extras of the package, one a line, for ``pip install``.

    python scripts/requirements.py EXTRA…

``pip install .[EXTRA]`` would build the package again, which compiles its C++ for more than a minute.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
for extra in sys.argv[1:]:
    print("\n".join(project["optional-dependencies"][extra]))

"""The targets under coverage guidance: ``python -m tests.campaign.fuzz.guided TARGET CORPUS [options of libFuzzer]``.

Atheris counts the branches of ``swsearch``; inputs that reach new branches are stored in the folder ``CORPUS``. The
command must be run from the folder that holds ``swsearch``.
"""

import sys
import tempfile
from importlib.machinery import PathFinder
from pathlib import Path


def main() -> None:
    """Fuzz one target until an option or a fault ends it."""
    import atheris

    # The finder of an editable install hides from Atheris that the modules are plain files.
    sys.meta_path.insert(0, PathFinder)
    with atheris.instrument_imports(include=["swsearch"]):
        from tests.campaign.fuzz.test_parsers import TARGETS

    target = TARGETS[sys.argv[1]]
    corpus = Path(sys.argv[2])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (corpus / f"seed-{number}").write_bytes(seed)
    with tempfile.TemporaryDirectory() as folder:
        atheris.Setup(sys.argv[:1] + sys.argv[2:], lambda data: target.check(data, Path(folder)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()

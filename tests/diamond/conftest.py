"""Lets the tests of this folder import the model beside them and the whole matrix that judges it."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "pairs"))

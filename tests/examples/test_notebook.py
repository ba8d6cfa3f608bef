"""The notebook of ``examples/`` runs, and prints what it shows. Expected: the text that is stored in it.

``python -m tests.examples.test_notebook`` stores what it prints now. Tables and figures are not stored, because they
depend on the versions of other packages.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from nbformat import NotebookNode

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook" / "relatives.ipynb"
TIMEOUT_SECONDS = 300


def executed(path: Path) -> NotebookNode:
    """The notebook after its cells have run in order in a new kernel; an error in a cell is raised."""
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=TIMEOUT_SECONDS, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}
    )
    return client.execute()


def printed(notebook: NotebookNode) -> list[str]:
    """What each cell with code prints."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return ["".join(one.text for one in cell.outputs if one.get("name") == "stdout") for cell in cells]


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")  # those of Jupyter
def test_the_notebook_prints_what_it_shows(monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    found = executed(NOTEBOOK)
    assert printed(found) == printed(nbformat.read(NOTEBOOK, as_version=4))
    shown = [output.data for cell in found.cells for output in cell.get("outputs", []) if "data" in output]
    assert any("OBG_NEIG2" in data.get("text/html", "") for data in shown)
    assert any("image/png" in data for data in shown)


def store_outputs() -> None:
    """Store in the notebook what its cells print."""
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell, text in zip(cells, printed(executed(NOTEBOOK)), strict=True):
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=text)] if text else []
        cell.execution_count = None
    nbformat.write(notebook, NOTEBOOK)


if __name__ == "__main__":
    store_outputs()

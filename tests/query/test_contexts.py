"""Libraries of contexts from files, and the file of the program.

``data/contexts.lib`` has the 16 most probable contexts of the program in the format of CS-BLAST.
"""

import gzip
import hashlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

from swsearch.errors import InputError
from swsearch.query import contexts
from swsearch.query.contexts import predicted_columns, program_contexts, read_contexts
from tests.sliced_databases import DATA

LIBRARY = DATA / "contexts.lib"
RECIPE = Path(__file__).parents[2] / "benchmarks" / "README.md"


def test_a_library_is_read_to_the_units_of_the_program(tmp_path):
    """Source: the contexts of the program, from which the file was written; and their columns' mean without neighbours.

    A copy with Windows' line ends, names and colours has the same numbers; so has a compressed one, which has the same
    text and so the same digest.
    """
    of_program, found = program_contexts(), read_contexts(LIBRARY)
    chosen = np.sort(np.argsort(of_program.priors, kind="stable")[:16])
    np.testing.assert_array_equal(found.priors, of_program.priors[chosen])
    np.testing.assert_array_equal(found.columns, of_program.columns[chosen])
    assert found.digest == hashlib.sha256(LIBRARY.read_bytes()).hexdigest()
    (tmp_path / "dos.lib").write_bytes(
        LIBRARY.read_bytes().replace(b"ISLOG", b"COLOR 1,1,1\nISLOG").replace(b"\n", b"\r\n")
    )
    (tmp_path / "packed.lib.gz").write_bytes(gzip.compress(LIBRARY.read_bytes()))
    for name, is_same in (("dos.lib", False), ("packed.lib.gz", True)):
        copy = read_contexts(tmp_path / name)
        np.testing.assert_array_equal(copy.priors, found.priors)
        np.testing.assert_array_equal(copy.columns, found.columns)
        assert (copy.digest == found.digest) is is_same
    weights = np.exp(found.priors / -20.0)
    expected = weights @ np.exp(found.columns[:, 6] / -20.0)
    np.testing.assert_allclose(found.predicted(np.zeros((1, 20)))[0], expected / expected.sum(), atol=1e-3)


@pytest.mark.parametrize(
    ("form", "other", "problem"),
    [
        ("^ContextLibrary", "CRF", "line 1: 'CRF' where 'ContextLibrary' is due; give a whole library"),
        ("^", "\ufeff", "line 1: '\\\\ufeffContextLibrary' where 'ContextLibrary' is due"),
        ("SIZE\t16", "SIZE\t0", "line 2: 'SIZE 0' where SIZE and the number of contexts, at most 99,999, is due"),
        ("SIZE\t16", "SIZE\t17", "line 339: the end of the file where 'ContextProfile' is due"),
        ("SIZE\t16", "SIZE\t15", "line 319: 'ContextProfile' where the end of the file is due"),
        ("LENG\t13", "LENG\t1", "line 3: 'LENG 1' where 'LENG 13' is due"),
        ("PRIOR\t.*", "PRIOR\t-0.1", "line 6: 'PRIOR -0.1' where PRIOR and a probability is due"),
        ("PRIOR\t.*", "PRIOR\t1e-999", "line 6: the prior is not above 0 and at most 1"),
        ("PRIOR\t.*", "PRIOR\t0.99", "line 339: the priors of all contexts do not sum to 1"),
        ("ISLOG\tF", "ISLOG\tT", "line 7: 'ISLOG T' where 'ISLOG F' is due"),
        ("A\tR\tN", "A\tN\tR", "line 10: 'PROBS A N R D C"),
        ("\n1\t[0-9]+", "\n1", "line 11: .* where 1 and 20 whole numbers is due"),
        ("\n1\t[0-9]+", "\n1\t-5", "line 11: .* where 1 and 20 whole numbers is due"),
        ("\n1\t[0-9]+", "\n1\t123456", "line 11: .* where 1 and 20 whole numbers is due"),
        ("\n2\t[0-9]+", "\n2\t1", "line 12: the probabilities of the column do not sum to 1"),
        ("\n3\t", "\n4\t", "line 13: .* where 3 and 20 whole numbers is due"),
        ("\n13\t.*", "", "line 23: '//' where 13 and 20 whole numbers is due"),
        ("(?s)\n//.*", "\n", "line 23: the end of the file where '//' is due"),
        ("(?s).*", "", "line 0: the end of the file where 'ContextLibrary' is due"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_a_library_is_refused_where_it_ends_to_be_one(tmp_path, form, other, problem):
    """By hand: one change of the file, and the line that the message names."""
    (tmp_path / "other.lib").write_text(re.sub(form, other, LIBRARY.read_text(), count=1))
    with pytest.raises(InputError, match=f"other.lib, {problem}"):
        read_contexts(tmp_path / "other.lib")


def test_columns_that_are_kept_are_those_of_one_library():
    counts = np.eye(20)[:9].tobytes()
    of_program, of_file = (predicted_columns(one, counts) for one in (program_contexts(), read_contexts(LIBRARY)))
    assert (of_program != of_file).any()
    assert predicted_columns(program_contexts(), counts) is of_program


@pytest.mark.parametrize("name", ["contexts.npz", "columns.npz"])
def test_the_files_of_the_program_are_those_of_the_recipe(name):
    """Source: the checksums of ``benchmarks/README.md``. An archive of the same arrays has the same bytes."""
    content = (Path(contexts.__file__).with_name(name)).read_bytes()
    assert f"`{name}` {hashlib.sha256(content).hexdigest()}" in RECIPE.read_text()
    again = io.BytesIO()
    with np.load(io.BytesIO(content)) as file:
        np.savez(again, **file)
    assert again.getvalue() == content

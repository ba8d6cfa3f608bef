"""A partition packed in memory has the order and layout of a partition read from a packed database."""

import numpy as np

from swsearch.database.builder import build_database
from swsearch.database.opening import open_database
from swsearch.database.partition import Partition
from swsearch.sequences.alphabet import PAD_CODE, PROTEIN


def test_a_packed_partition_equals_that_of_a_database(tmp_path):
    """Expected value: the arrays of a database that was built from the same sequences as FASTA."""
    rng = np.random.default_rng(1)
    subjects = [rng.integers(0, 20, n, dtype=np.uint8) for n in (5, 1, 16, 17, 5, 300, 16)]
    records = [f">s{index}\n{PROTEIN.decode(codes)}\n" for index, codes in enumerate(subjects)]
    (tmp_path / "subjects.fasta").write_text("".join(records))
    build_database(tmp_path / "subjects.fasta", tmp_path / "subjects.db", PROTEIN)
    packed = Partition.pack(subjects)
    with open_database(tmp_path / "subjects.db") as database:
        (stored,) = database.partitions()
        for name in ("residues", "starts", "lengths", "subject_index"):
            np.testing.assert_array_equal(getattr(packed, name), getattr(stored, name))


def test_an_empty_partition_is_padding_alone():
    """Expected value: the packed format's padding behind the last subject."""
    packed = Partition.pack([])
    assert len(packed) == 0
    assert packed.n_residues == 0
    assert (packed.residues == PAD_CODE).all()

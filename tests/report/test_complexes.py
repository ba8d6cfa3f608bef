"""One alignment of all chains of a complex. Expected values: ColabFold's own function, from a block of each chain."""

import io
from dataclasses import replace

import pytest

from swsearch.report.formats import new_report
from swsearch.report.pairing import write_complex, write_pairs
from tests.peers import module
from tests.report.conftest import PROTEIN_RUN, context_of
from tests.report.test_pairing import A, B, C, chain

pytestmark = pytest.mark.peer("colabfold")
colabfold = module("colabfold.input")


def blocks(write) -> list[str]:
    stream = io.StringIO()
    write(stream)
    return stream.getvalue().split("\0")


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("chains", [[A, B], [A, B, C], [A, B, A]])
def test_a_complex_is_as_colabfold_writes_it(chains, complete):
    """Pairs from all hits, the other rows from some of them."""
    different = list({one.letters: one for one in chains}.values())
    unpaired = {one.letters: replace(one, hits=one.hits[1:3]) for one in chains}
    found = io.StringIO()
    write_complex(chains, [unpaired[one.letters] for one in chains], found, complete=complete)
    wanted = colabfold.msa_to_str(
        blocks(
            lambda stream: new_report("a3m").write_all(
                context_of(PROTEIN_RUN), [unpaired[one.letters] for one in different], stream
            )
        ),
        blocks(lambda stream: write_pairs(different, stream, complete=complete)),
        [one.letters for one in different],
        [sum(one.letters == other.letters for other in chains) for one in different],
    )
    assert found.getvalue() == wanted + "\n"
    assert "\n>a3\t" in found.getvalue() or not complete or C in chains


def test_copies_of_one_chain_have_no_pairs():
    """By hand: the lengths, two copies, the chain, its rows."""
    one = chain("x", "MKW", ("b OX=9", "MK"))
    found = io.StringIO()
    write_complex([one, one], [one, one], found, complete=True)
    first, name, letters, header, row = found.getvalue().splitlines()
    assert (first, name, letters, row) == ("#3\t2", ">101", "MKW", "MK-")
    assert header.startswith(">b\t")
    assert found.getvalue() == colabfold.msa_to_str([f">101\nMKW\n{header}\nMK-\n"], None, ["MKW"], [2]) + "\n"

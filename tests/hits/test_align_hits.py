"""Alignments as a search requests them: both strands.

The expected scores come from Biopython, from rescoring the CIGAR column by column, or from calculation by hand.
"""

import dataclasses

import numpy as np
import pytest
from Bio import Align
from Bio.Align import substitution_matrices
from hypothesis import given, settings
from hypothesis import strategies as st

from swsearch.database.partition import Partition
from swsearch.errors import EngineError, InputError
from swsearch.hits.cigar import count
from swsearch.hits.score_block import Ends
from swsearch.hits.traceback import LocalAligner
from swsearch.query.profile import sequence_profile
from swsearch.scoring.matrix import match_mismatch, named_matrix
from swsearch.scoring.scheme import GapPenalty, ScoringScheme, default_scheme
from swsearch.search.frames import Frame
from swsearch.sequences.alphabet import DNA, PROTEIN, reverse_complement
from tests.hits.rescore import rescore


def hits(query, subjects, scheme, strand="plus", **more):
    """Return the best alignments of one query with the subjects that align, stored consecutively as in a partition."""
    lengths = np.array([len(s) for s in subjects], np.uint32)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.uint64)
    along = reverse_complement(query) if strand == "minus" else query
    profile = sequence_profile(along, scheme)
    partition = Partition(np.concatenate(subjects), starts, lengths, np.arange(len(subjects), dtype=np.uint32))
    aligner = LocalAligner(scheme.alphabet, more.pop("matrix", None), more.pop("n_threads", 1))
    frame = Frame(strand, 0, along, profile)
    paths = aligner.paths(frame, partition, **more)
    best = [(subject, several[0]) for subject, several in zip(subjects, paths, strict=True) if several]
    return [aligner.alignment(frame, one, subject[one.subject_start : one.subject_end]) for subject, one in best]


gaps = st.sampled_from([(0, 1), (1, 0), (3, 0), (2, 1), (5, 2), (11, 1)])


@settings(max_examples=200, deadline=None)
@given(
    query=st.text("ACGTNRUacg", min_size=1, max_size=60),
    subject=st.text("ACGTNYUtg", min_size=1, max_size=60),
    gap=gaps,
    strand=st.sampled_from(["plus", "minus"]),
)
def test_dna_rescores_to_its_score_on_both_strands(query, subject, gap, strand):
    """Expected: Biopython's PairwiseAligner score of the strand, and the letter-by-letter score of the CIGAR."""
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(*gap))
    codes, other = DNA.encode(query), DNA.encode(subject)
    aligner = Align.PairwiseAligner(mode="local")
    matrix = substitution_matrices.Array(DNA.letters, dims=2)
    matrix[:, :] = scheme.matrix.scores[: len(DNA.letters), : len(DNA.letters)]
    aligner.substitution_matrix = matrix
    aligner.open_gap_score, aligner.extend_gap_score = -scheme.gap.first, -scheme.gap.extend
    along = DNA.decode(reverse_complement(codes) if strand == "minus" else codes).upper()
    want = int(aligner.score(along, subject.upper()))
    if want == 0:
        assert hits(codes, [other], scheme, strand) == []
        return
    (found,) = hits(codes, [other], scheme, strand, scores=np.array([want], np.int32))
    assert rescore(codes, other, found, scheme, strand) == want
    assert subject[found.subject_start : found.subject_end] == found.subject_letters


@settings(max_examples=100, deadline=None)
@given(
    query=st.text(PROTEIN.letters, min_size=1, max_size=60),
    subject=st.text(PROTEIN.letters, min_size=1, max_size=60),
    gap=gaps,
    name=st.sampled_from(["BLOSUM62", "PAM250"]),
)
def test_protein_rescores_to_its_score(query, subject, gap, name):
    """Expected: the letter-by-letter score of the CIGAR equals the native score, which `scores` checks."""
    scheme = ScoringScheme(named_matrix(name), GapPenalty(*gap))
    codes, other = PROTEIN.encode(query), PROTEIN.encode(subject)
    aligned = hits(codes, [other], scheme)
    if not aligned:
        assert scheme.matrix.scores[np.ix_(codes, other)].max() <= 0
        return
    (found,) = aligned
    score = rescore(codes, other, found, scheme)
    hits(codes, [other], scheme, scores=np.array([score], np.int32))
    counts = count(found.cigar)
    assert (counts.identities, counts.columns, counts.gap_openings) == (
        found.identities, found.columns, found.gap_openings,
    )  # fmt: skip


def test_a_minus_strand_alignment_is_placed_on_the_query_as_given():
    """Expected by hand: residues 2 to 8 of the query, read on the other strand, are the complete subject."""
    query = DNA.encode("TTACGGATCC")
    subject = reverse_complement(query[2:8])
    (found,) = hits(query, [subject], default_scheme(DNA), "minus")
    assert (found.query_start, found.query_end, found.cigar) == (2, 8, "6=")
    assert rescore(query, subject, found, default_scheme(DNA), "minus") == 12


def test_letters_are_kept_and_rna_equals_dna():
    """Expected by hand: U against T is an identity; case and letters of the subject are unchanged."""
    (found,) = hits(DNA.encode("ACGTT"), [DNA.encode("acGUu")], default_scheme(DNA))
    assert (found.cigar, found.identities, found.positives, found.subject_letters) == ("5=", 5, 5, "acGUu")


def test_the_tie_rule_by_hand():
    """Expected by hand: of two equal ends the first one in the subject; a gap lies as far to the left as possible."""
    scheme = ScoringScheme(match_mismatch(2, -3), GapPenalty(0, 1))
    (first,) = hits(DNA.encode("ACG"), [DNA.encode("ACGTACG")], scheme)
    assert (first.subject_start, first.subject_end) == (0, 3)
    (gap,) = hits(DNA.encode("AACC"), [DNA.encode("AATTCC")], scheme)
    assert gap.cigar == "2=2D2="
    (repeat,) = hits(DNA.encode("CAAAG"), [DNA.encode("CAAG")], scheme)
    assert repeat.cigar == "1=1I3="  # traced from the end, the diagonal is followed as long as it is optimal


def test_a_score_that_differs_from_the_engines_is_an_error():
    """Expected by hand: 8 is the score of four equal bases."""
    query = DNA.encode("ACGT")
    with pytest.raises(EngineError, match="subject 1: the engine's score is 9, its alignment's 8"):
        hits(query, [query, query], default_scheme(DNA), scores=np.array([8, 9], np.int32))


def test_ends_of_the_engine_change_nothing_and_wrong_ones_are_errors():
    """By hand: bases 2 to 8 of the subject are the last six of the query's minus strand, CACATTACGG."""
    query = DNA.encode("CCGTAATGTG")
    subject = DNA.encode("GGTTACGGAG")
    along = reverse_complement(query)
    subjects = Partition.pack([subject])
    scores = np.array([12], np.int32)
    frame = Frame("minus", 0, along, sequence_profile(along, default_scheme(DNA)))

    def aligned(row, column, **changes):
        ends = Ends(np.array([row]), np.array([column]))
        return LocalAligner(DNA).paths(frame, subjects, **({"scores": scores} | changes), ends=ends)

    ((path,),) = aligned(10, 8)
    found = LocalAligner(DNA).alignment(frame, path, subject[2:8])
    assert (path.score, path.query_start, path.query_end, path.subject_start, path.subject_end) == (12, 4, 10, 2, 8)
    assert (found.query_start, found.query_end, found.subject_start, found.subject_end) == (0, 6, 2, 8)
    assert aligned(10, 8) == LocalAligner(DNA).paths(frame, subjects, scores=scores)
    with pytest.raises(EngineError, match=r"subject 0: the engine's end is \[10, 9\], its alignment's \[10, 8\]"):
        aligned(10, 9)
    with pytest.raises(EngineError, match="subject 0: the engine's score is 12, its alignment's 10"):
        aligned(9, 7)
    with pytest.raises(InputError, match="leave most at 1"):
        aligned(10, 8, most=2)
    with pytest.raises(InputError, match="give scores with them"):
        aligned(10, 8, scores=None)


def test_arguments_of_two_strands_are_refused():
    """Expected by hand: the profile is of a different query."""
    query = DNA.encode("ACGT")
    frame = Frame("plus", 0, query[:3], sequence_profile(query, default_scheme(DNA)))
    with pytest.raises(InputError, match="3 residues, its profile 4"):
        LocalAligner(DNA).paths(frame, Partition.pack([query]))


@pytest.mark.parametrize(
    "change",
    [
        *(
            {"cigar": wrong}
            for wrong in ("5=1D5=", "10=", "12=", "11X", "10=1I", "5=6=", "5=0X6=", "5=1M5=", "=11", "")
        ),
        {"query_start": -1},
        {"subject_end": 12},
        {"subject_letters": "ACGTACGTACC"},
        {"identities": 10},
    ],
    ids=str,
)
def test_rescore_refuses_what_is_no_alignment(change):
    """Expected by hand: each change makes one statement about a correct alignment false."""
    query = DNA.encode("ACGTACGTACG")
    (found,) = hits(query, [query], default_scheme(DNA))
    assert rescore(query, query, found, default_scheme(DNA)) == 22
    with pytest.raises(AssertionError):
        rescore(query, query, dataclasses.replace(found, **change), default_scheme(DNA))

"""The choice of a method for pairs: batches on the emulated device, the wavefront, and a machine without a GPU.

Expected values: :func:`swsearch.pairs.pair_alignment.align_pair`.
"""

import numpy as np
import pytest

from swsearch.engine.cuda.runtime.device import Device, OutOfDeviceMemory
from swsearch.engine.registry import Machine
from swsearch.errors import EngineError, EngineUnavailable, InputError
from swsearch.pairs.aligner import PairAligner
from swsearch.pairs.pair_alignment import COST_SETS, PairScoring, align_pair, scheme_scoring
from swsearch.pairs.sequence import PairSequence, from_record
from swsearch.scoring.scheme import default_scheme
from swsearch.sequences.alphabet import PROTEIN
from swsearch.sequences.record import SequenceRecord
from tests.engine.cuda.emulation.emulated_device import MakeDevice

SW2023 = COST_SETS["sw2023"]


def some_pairs() -> list[tuple[PairSequence, PairSequence]]:
    rng = np.random.default_rng(1)
    sides = [PairSequence(f"s{n}", "".join(rng.choice(list("ACGT"), n))) for n in (5, 9, 33, 40, 21, 60)]
    return list(zip(sides[::2], sides[1::2], strict=True))


def no_device() -> Device:
    raise EngineUnavailable("cuda", "there is none in this test")


def test_batches_go_to_the_gpu_that_is_asked_for(emulated: MakeDevice) -> None:
    device = emulated()
    with PairAligner("local", SW2023, machine=Machine("cuda"), open_device=lambda: device) as chosen:
        found = list(chosen.align(some_pairs()))
    assert [entry for entry, _ in device.launches] == ["short_pairs"]
    assert device.used_bytes == 0
    for one, pair in zip(found, some_pairs(), strict=True):
        wanted = align_pair(*pair, "local", SW2023)
        assert (one.score, one.cigar, one.subject_start) == (wanted.score, wanted.cigar, wanted.subject_start)


@pytest.mark.parametrize("cells", [1, 10**9])
def test_auto_takes_a_gpu_for_large_batches(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr("swsearch.pairs.aligner.GPU_BATCH_CELLS", cells)
    device = emulated()
    with PairAligner("edit", open_device=lambda: device) as chosen:
        found = [one.score for one in chosen.align(some_pairs())]
    assert found == [align_pair(*pair, "edit").score for pair in some_pairs()]
    assert len(device.launches) == (1 if cells == 1 else 0)


def test_a_pair_beyond_the_gpus_memory_goes_to_the_cpu_unless_the_gpu_is_asked_for(
    emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("swsearch.pairs.aligner.GPU_PAIR_CELLS", 1)
    rng = np.random.default_rng(2)
    pair = tuple(PairSequence(f"s{n}", "".join(rng.choice(list("ACGT"), n))) for n in (2100, 2200))
    reported: list[int] = []
    small = {"open_device": lambda: emulated(memory_bytes=5000)}
    with PairAligner("local", SW2023, **small) as chosen:
        (found,) = chosen.align([pair], reported.append)
    wanted = align_pair(*pair, "local", SW2023)
    assert (found.score, found.cigar) == (wanted.score, wanted.cigar)
    assert sum(reported) <= 2100 * 2200  # no cell is counted twice
    with (
        PairAligner("local", SW2023, machine=Machine("cuda"), **small) as chosen,
        pytest.raises(OutOfDeviceMemory, match=r"no room for 2,100 against 2,200 letters; choose --engine cpu"),
    ):
        list(chosen.align([pair]))


def test_auto_goes_on_without_a_gpu_and_cuda_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("swsearch.pairs.aligner.GPU_BATCH_CELLS", 1)
    with PairAligner("edit", open_device=no_device) as chosen:
        assert len(list(chosen.align(some_pairs()))) == 3
    for options in ({"machine": Machine("cuda")}, {"kernel": "wavefront"}):
        with pytest.raises(EngineUnavailable, match="there is none in this test"):
            PairAligner("edit", open_device=no_device, **options)


def test_the_wavefront_gives_the_score_of_each_pair(emulated: MakeDevice) -> None:
    for mode, scoring in (("edit", None), ("global", COST_SETS["nw2009"])):
        device = emulated()
        with PairAligner(mode, scoring, kernel="wavefront", open_device=lambda d=device: d) as chosen:
            found = list(chosen.align(some_pairs()))
        assert [one.cigar for one in found] == [None] * 3
        assert [one.score for one in found] == [align_pair(*pair, mode, scoring).score for pair in some_pairs()]


def test_the_wavefront_compares_letters_and_needs_some(emulated: MakeDevice) -> None:
    """The wavefront refuses a matrix, which gives each pair of letters its own score, and empty sequences."""
    protein = scheme_scoring(default_scheme(PROTEIN))
    linear = PairScoring("linear", 0, 0, 0, 4, protein.matrix)
    side = from_record(SequenceRecord("p", PROTEIN.encode("ARNDCQ"), PROTEIN))
    chosen = PairAligner("global", linear, kernel="wavefront", open_device=emulated)
    with chosen, pytest.raises(InputError, match="compares letters"):
        list(chosen.align([(side, side)]))
    chosen = PairAligner("edit", kernel="wavefront", open_device=emulated)
    with chosen, pytest.raises(EngineError, match="at least one letter"):
        list(chosen.align([(PairSequence("", ""), PairSequence("", "A"))]))

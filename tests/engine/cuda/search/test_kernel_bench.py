"""The benchmark of all kernels, including the GPU's, on the emulated device; it compares results while it measures."""

import pytest

from swsearch.bench import kernel_rates
from swsearch.bench.workloads import generated_proteins
from swsearch.engine.cuda.history.cudasw2 import Cudasw2Engine
from swsearch.errors import EngineError
from swsearch.hits.score_block import ScoreBlock
from tests.engine.cuda.emulation.emulated_device import MakeDevice


@pytest.fixture(autouse=True)
def one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_rates, "REPEATS", 1)


def test_every_kernel_of_the_gpu_is_measured_and_compared(emulated: MakeDevice) -> None:
    """All subjects and pairs are computed by several kernels, whose results must agree."""
    workload = generated_proteins(1500)
    rows = list(kernel_rates.measure_search(workload, 40, 1, emulated))
    rows += kernel_rates.measure_pair(40, 1, emulated)
    rows += kernel_rates.measure_batch(3, 33, 1, emulated)
    on_gpu = {row.kernel: row for row in rows if row.threads == 0}
    assert list(on_gpu) == [
        "cuda strip", "cuda simt", "cuda striped", "cuda partitioned", "cuda diamond", "cuda wavefront",
        "cuda short pairs",
    ]  # fmt: skip
    assert not any(row.missing for row in rows)
    assert on_gpu["cuda simt"].checked == len(workload.partition)
    assert on_gpu["cuda short pairs"].checked == 3
    for name in ("cuda strip", "cuda striped", "cuda short pairs"):
        assert on_gpu[name].kernel_seconds is not None
        assert on_gpu[name].kernel_seconds > 0
    assert kernel_rates.ratio(on_gpu["cuda strip"], "cuda strip", rows) == 1
    assert all(line["times_reference"] > 0 for line in kernel_rates.document(rows))


def test_a_kernel_that_disagrees_ends_the_benchmark(emulated: MakeDevice, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Cudasw2Engine.score

    def wrong(self, *arguments, **options):
        (block,) = honest(self, *arguments, **options)
        return [ScoreBlock(block.subject_index, block.score + (self.kernel == "striped"))]

    monkeypatch.setattr(Cudasw2Engine, "score", wrong)
    with pytest.raises(EngineError, match=r"cuda striped gives .* one of them is wrong"):
        list(kernel_rates.measure_search(generated_proteins(500), 20, 1, emulated))


def test_smaller_shares_are_parts_of_larger_ones() -> None:
    """Expected values by hand: 1,000 cells in 100 items, of which at most 1,000, 400 and 60 may be computed."""
    shares = [list(range(100)[kernel_rates.even_share(100, 1000, limit)]) for limit in (1000, 400, 60)]
    assert [len(share) for share in shares] == [100, 25, 4]
    assert set(shares[2]) < set(shares[1]) < set(shares[0])

"""Every script in ``benchmarks/`` can be loaded, so that a change of the package does not break one unnoticed."""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from swsearch.bench.workloads import generated_proteins, generated_query, profiles_of
from swsearch.engine.cpu.engine import CpuEngine, usable_instruction_sets
from swsearch.engine.protocol import score_requests
from swsearch.sequences.alphabet import PROTEIN
from tests.compiled import ROOT, compiled, compiler_version, digest_of

SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_benchmark_loads(monkeypatch, script):
    """Packages that only benchmarks need may be missing; names of this package may not."""
    monkeypatch.syspath_prepend(str(script.parent))
    spec = importlib.util.spec_from_file_location(f"benchmarks_{script.stem}", script)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as missing:
        if missing.name.startswith(("swsearch", "tests")) or (script.parent / f"{missing.name}.py").exists():
            raise
        pytest.skip(f"{missing.name} is not installed")
    assert module.__doc__


@pytest.mark.parametrize("script", ["benchmark_answer", "benchmark_steps"])
def test_the_steps_that_a_benchmark_times_are_functions_of_the_program(monkeypatch, script):
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    for name, steps in importlib.import_module(script).STEPS.items():
        for step in steps:
            assert callable(functools.reduce(getattr, step.split("."), importlib.import_module(name)))


def test_the_readme_has_one_line_for_each_script_and_names_each_result():
    """Source: the folder."""
    folder = SCRIPTS[0].parent
    rows = re.findall(r"^\| \[`(\S+)`\]\(\1\) \| [^|]+ \|(.*)\|$", (folder / "README.md").read_text(), re.MULTILINE)
    scripts = sorted(path.name for path in folder.iterdir() if path.suffix in (".py", ".cpp"))
    assert sorted(name for name, _ in rows) == scripts
    results = [name for _, cell in rows for name in re.findall(r"\]\(results/(\S+?)\)", cell)]
    assert sorted(results) == sorted(path.name for path in (folder / "results").iterdir())


def test_a_result_names_commit_and_device(monkeypatch):
    """Source: git; the number of cores as Python counts them."""
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    provenance = importlib.import_module("provenance")
    root = SCRIPTS[0].parents[1]
    asked = subprocess.run(["git", "-C", root, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if asked.returncode == 0 and not (root / "COMMIT").exists():
        known = provenance.commit().removesuffix("-dirty").rpartition("-g")[2]
        assert len(known) >= 7
        assert asked.stdout.startswith(known)
    assert re.search(rf"\S.*, {len(os.sched_getaffinity(0))} cores?$", provenance.device_of("cpu")["device"])
    assert provenance.device_of("cpu").keys() == {"device"}


@pytest.mark.gpu
def test_a_result_names_the_gpu_and_its_driver(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    found = importlib.import_module("provenance").device_of("cuda")
    assert "NVIDIA" in found["device"]
    assert found["driver"].startswith("CUDA ")


def test_the_figures_of_the_page_and_of_the_readme_are_those_of_results(monkeypatch):
    """Source: the results; ``docs/site/performance.py`` writes both."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    texts = importlib.import_module("performance").repository_texts()
    assert [path.name for path in texts] == ["how-good-how-fast.md", "README.md"]
    for path, text in texts.items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run docs/site/performance.py"
    found = json.loads((ROOT / "benchmarks" / "results" / "iterations.json").read_text())["tools"]
    shown = f"{found['swsearch']['rounds']['3']['coverage']['1.0']:.1%}"
    assert all(f"| {shown} |" in text for text in texts.values())


def test_hits_among_domains_are_judged_by_superfamily_and_fold(monkeypatch):
    """By hand: among the hits of ``a`` are its own, one of its fold, one of a Rossmann-like fold, and one of two."""
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    scope = importlib.import_module("scope")
    sccs = {"a": "c.2.1.1", "true": "c.2.1.7", "late": "c.2.1.2", "fold": "c.2.3.1", "alike": "c.3.1.1", "b": "b.1.1.1"}
    hits = {"a": [("a", 0.0), ("fold", 1e-9), ("alike", 1e-4), ("true", 1e-4), ("late", 0.5), ("b", 2.0), ("b", 0.1)]}
    found = scope.judged(hits | {"b": [("elsewhere", 1e-9)]}, sccs)
    assert found.partners.tolist() == [2, 0]
    of_a = found.figures("all")
    assert of_a["errors"] == {"0.001": 0.5, "0.01": 0.5, "0.1": 1.0, "1.0": 1.0, "10.0": 1.0}
    assert of_a["found"] == {"0.001": 0.5, "0.01": 0.5, "0.1": 0.5, "1.0": 1.0, "10.0": 1.0}
    assert found.figures("clean")["errors"] == {"0.001": 0.0, "0.01": 0.0, "0.1": 0.5, "1.0": 0.5, "10.0": 0.5}
    assert found.coverage("all") == {"0.1": 0.0, "1.0": 1.0, "10.0": None}
    assert found.coverage("clean") == {"0.1": 0.5, "1.0": None, "10.0": None}
    assert found.figures("clean")["sensitivity"] == {"first": 0.5, "fifth": 1.0}
    assert found.gain(found, "clean") == {"coverage at 0.1": [0.0, 0.0, 0.0], "first": [0.0, 0.0, 0.0]}


def test_the_counted_loop_is_the_inner_one(monkeypatch):
    """By hand: of two nested loops and one that copies the profile, the shortest with two exchanges has 5 lines.

    The code at the end is that of lanes that have diverged: it branches back to the middle of the inner loop.
    """
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    listing = """
        /*0000*/                   LDG.E R0, [R2] ;          /* 0x01 */
                                                             /* 0x02 */
        /*0010*/              @!P0 BRA 0x0 ;                 /* 0x03 */
        /*0020*/                   MOV R1, R0 ;
        /*0030*/                   SHFL.UP PT, R3, R4, 0x1, R5 ;
        /*0040*/                   VIMNMX.S16x2 R6, R3, R7, !PT ;
        /*0050*/               @P1 BRA 0x80 ;
        /*0060*/                   SHFL.UP PT, R3, R6, 0x1, R5 ;
        /*0070*/               @P2 BRA.U 0x30 ;
        /*0080*/                   BRA 0x20 ;
        /*0090*/                   CALL.REL.NOINC 0xb0 ;
        /*00a0*/                   BRA 0x60 ;
    """
    count = importlib.import_module("count_instructions")
    found = count.loop_instructions(listing)
    assert [text.split()[0] for text in found] == ["SHFL.UP", "VIMNMX.S16x2", "@P1", "SHFL.UP", "@P2"]


@pytest.mark.peer("g++")
@pytest.mark.parametrize("instruction_set", [name for name in usable_instruction_sets() if name != "scalar"])
def test_the_plain_loop_has_the_scores_of_the_engine(monkeypatch, instruction_set):
    """Expected values: the CPU engine; the loop reads the headers of simd/, and its scores end at 255."""
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    module = importlib.import_module("plain_loop")
    options = module.options_of(instruction_set)
    source = (ROOT / "benchmarks" / "plain_loop.cpp").read_text()
    parts = [digest_of(ROOT / "simd"), source, *options, compiler_version("g++")]
    library = compiled("plain_loop.so", parts, lambda path: module.build(instruction_set, path))
    loop = module.PlainLoop(instruction_set, library)
    workload = generated_proteins(20_000)
    query = generated_query(PROTEIN, 75)
    (block,) = CpuEngine(1).score(score_requests(profiles_of(workload, query)), workload.partition)
    assert loop.scores(workload, query).tolist() == np.minimum(block.score, 255).tolist()
    assert block.score.max() > 20


@pytest.mark.peer("hhmake")
def test_the_states_of_sequences_are_those_of_cstranslate(monkeypatch, tmp_path):
    """Expected values: ``cstranslate`` of HH-suite; unknown residues and short sequences included."""
    program = Path("/usr/libexec/hhsuite/cstranslate-plain")
    monkeypatch.syspath_prepend(str(SCRIPTS[0].parent))
    hhsuite = importlib.import_module("hhsuite")
    rng = np.random.default_rng(3)
    sequences = {f"random{n}": "".join(rng.choice(list(hhsuite.LETTERS), n)) for n in (1, 12, 13, 60)}
    sequences |= {"unknown": "XXMKTAYIAXXRQRSFVKBZUSHFX", "nothing": "XX"}
    fasta = tmp_path / "sequences.fasta"
    fasta.write_text("".join(f">{name}\n{sequence}\n" for name, sequence in sequences.items()))
    hhsuite.build(fasta, tmp_path / "db")
    states = hhsuite.read_entries(tmp_path / "db_cs219")
    assert {name: len(found) for name, found in states.items()} == {name: len(text) for name, text in sequences.items()}
    hhsuite.check(fasta, tmp_path / "db", len(sequences), str(program))

"""Every text that is read: mutated at random, led by the coverage of branches (Atheris), and as it once failed.

The properties that must hold are those of :mod:`checks`; a hang, a signal and memory beyond a limit are faults, too.
"""

import bz2
import gzip
import json
import lzma
import random
import subprocess
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

from swsearch.report.fields import FIELDS
from tests.campaign.fuzz import checks
from tests.campaign.program import called
from tests.campaign.trials import Trial

pytestmark = [pytest.mark.thorough, pytest.mark.peer("gcc")]

N_INPUTS = 40
REGRESSIONS = Path(__file__).parent / "regressions"
ONCE_FAILED = sorted(path for path in REGRESSIONS.glob("*/*") if not path.parent.name.startswith("native_"))

# --- mutations of valid inputs: of bytes, lines and tokens, and of the archives that hold them ---

MAX_TEXT: Final = 20_000
"""Limit of the bytes of a mutated text; archives hold up to a thousand times as many."""


@dataclass(frozen=True)
class Target:
    """A parser under test.

    Attributes
    ----------
    check : callable
        Called with the bytes and an empty folder; raises AssertionError if a property is violated.
    seeds : sequence of bytes
        Inputs that are valid, or nearly so.
    tokens : sequence of bytes
        What mutations insert besides random bytes.
    archives : bool
        Whether the reader accepts compressed files.
    """

    check: Callable[[bytes, Path], None]
    seeds: Sequence[bytes]
    tokens: Sequence[bytes] = ()
    archives: bool = False


def mutated(rng: random.Random, target: Target) -> bytes:
    """Return a mutated input, made from a target's seeds."""
    data = bytearray(rng.choice(target.seeds))
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 10])):
        at = rng.randrange(len(data) + 1)
        length = rng.choice([1, 1, 2, 4, 16, 64])
        action = rng.randrange(9)
        if action == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif action == 1:
            data[at : at + length] = b""
        elif action == 2 and target.tokens:
            data[at:at] = rng.choice(target.tokens)
        elif action == 3 and target.tokens:
            data[at : at + length] = rng.choice(target.tokens)
        elif action == 4:
            data[at:at] = rng.randbytes(length)
        elif action == 5:
            data[at:at] = data[at : at + length] * rng.choice([1, 2, 50])
        elif action == 6:
            del data[at:]
        elif action == 7:
            other = rng.choice(target.seeds)
            data[at:] = other[rng.randrange(len(other) + 1) :]
        else:
            lines = data.splitlines(keepends=True)
            rng.shuffle(lines) if rng.random() < 0.3 else lines.extend(rng.choices(lines, k=2) if lines else [])
            data = bytearray(b"".join(lines))
        del data[MAX_TEXT:]
    raw = bytes(data)
    return _archived(rng, raw) if target.archives and rng.random() < 0.4 else raw


def _archived(rng: random.Random, raw: bytes) -> bytes:
    """Return the bytes in one archive or several, intact or damaged, sometimes highly compressible."""
    from backports import zstd

    pack = rng.choice([gzip.compress, bz2.compress, lzma.compress, zstd.compress])
    if rng.random() < 0.1:
        raw += rng.choice([b"A", b"\n", b" ", b"0", b"\n>x\nA"]) * rng.choice([1000, 1_000_000])
    data = bytearray(pack(raw))
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        action = rng.randrange(5)
        if action == 0:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        elif action == 1:
            del data[rng.randrange(1, len(data) + 1) :]
        elif action == 2:
            data += rng.choice([b"\0", b"\0\0\0\0", b"garbage", pack(raw), rng.randbytes(9), b"\x1f\x8b"])
        elif action == 3:
            data += b"xx" + pack(raw)
        else:
            data[4:4] = rng.randbytes(3)
        data = data or bytearray(b"x")
    return bytes(data)


# --- valid inputs, and the check of each reader ---

_PSSM = (
    "\nLast position-specific scoring matrix computed, weighted observed percentages rounded down\n"
    "            A  R  N  D  C  Q  E  G  H  I  L  K  M  F  P  S  T  W  Y  V   A   R\n"
    "    1 M    -1 -1 -2 -3 -1  0 -2 -3 -2  1  2 -1  5  0 -2 -1 -1 -1 -1  1    0   0  0.46 inf\n"
    "    2 K    -1  2  0 -1 -3  1  1 -2 -1 -3 -2  5 -1 -3 -1  0 -1 -3 -2 -2    0   0  0.46 inf\n"
    "\n                      K         Lambda\nStandard Ungapped    0.1334     0.3154\n"
)
_STOCKHOLM = (
    "# STOCKHOLM 1.0\n#=GF ID  family\n#=GC RF xxxx\ns1 MK-V\ns2 MKLV\n\ns1 AC\ns2 A-\n//\n"
    "# STOCKHOLM 1.0\ns1 ACD\n//\n"
)
_AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
_CHECKPOINT = (
    "PssmWithParameters ::= {\n pssm {\n isProtein TRUE, numRows 26, numColumns 1, byRow FALSE,\n query seq { id {\n"
    'local str "P1" }, descr { title "P1 ""a"" protein" }, inst { repr raw, mol aa, length 1, '
    "seq-data ncbistdaa '0C'H } },\n %s } }\n"
)
_SCORES = "finalData { scores { " + ", ".join(["-32768", *"1" * 25]) + " }, lambda { 267, 10, -3 }, scalingFactor 1 }"
_FREQUENCIES = "intermediateData { freqRatios { " + ", ".join(["{ 4, 10, -2 }"] * 26) + " } }"
_MODEL = (
    f"HMMER3/f [3.3.2 | Nov 2020]\nNAME  family\nDESC  of proteins\nLENG  1\nALPH  amino\nCONS  yes\n"
    f"HMM  {' '.join(_AMINO_ACIDS)}\n     m->m m->i\n  COMPO {'2.99573 ' * 20}\n  {'2.99573 ' * 20}\n  0.1 0.2 *\n"
    f"  1  {'2.99573 ' * 20} 1 a - - -\n  {'2.99573 ' * 20}\n  0.1 0.2 *\n//\n"
)
_DNA_MATRIX = (
    b"# a comment\n   A  C  N  G  T\nA  5 -4 -2 -4 -4\nC -4  5 -2 -4 -4\nN -2 -2 -1 -2 -2\nG -4 -4 -2  5 -4\n"
    b"T -4 -4 -2 -4  5\n"
)
_A3M = "#name\n>q first\nMKLV\n>s2\nM-LaaV\n>s3\nMKL-\n"
_TREE = "1\t|\t1\t|\tno rank\t|\n2\t|\t1\t|\tx\t|\n9606\t|\t2\t|\ty\t|\n"
_NAMES = "1\t|\troot\t|\t\t|\tscientific name\t|\n2\t|\tmice\t|\t\t|\tblast name\t|\n"
_MAP = "accession\taccession.version\ttaxid\tgi\nP1\tP1.1\t9606\t0\nP2\tP2.1\t2\t0\n"


def _seed_catalogue() -> bytes:
    entry = {"size": 96, "sha256": "0" * 64}
    names = ("residues", "starts", "lengths", "order", "positions", "headers", "header_ends")
    segment: dict[str, Any] = {"name": "segment-000001", "n_subjects": 4, "n_residues": 9, "shortest": 1, "longest": 5}
    segment["files"] = dict.fromkeys(names, entry)
    segment["removed"] = {"name": "removed-000002.bin", "n_subjects": 1, "n_residues": 2, "file": entry}
    fields = {
        "format": "swsearch packed database", "version": 2, "alphabet": "protein", "digest": "0" * 64, "generation": 2,
        "sources": ["a.fa"], "program": "swsearch 0", "created": "2024-01-01T00:00:00+00:00", "segments": [segment],
        "former_digests": ["1" * 64],
    }  # fmt: skip
    return checks.signed(json.dumps(fields, indent=1)).encode()


_NUMBERS: Final = (
    b"0",
    b"-1",
    b"1_0",
    b"9" * 30,
    b"9" * 5000,
    b"1e999",
    b"nan",
    "\u0661".encode(),
    b"0x10",
    b"+5",
    b"1.5",
)
_FASTA_TOKENS: Final = (
    b">", b"@", b"+", b"\n", b"\r\n", b"\r", b"\n>", b"\n\n", b">\n", b";", b"\n#", b" ", b"\t", b"\0", b"\x0b",
    b"\x1f", b"\xef\xbb\xbf", b"\xff\xfe", b"\x85", b"\xc2\xa0", "\u2028".encode(), b"acgtn", b"-", b"*", b"\x1a",
)  # fmt: skip
_LINES: Final = (
    b"\n",
    b"\r",
    b"\t",
    b" ",
    b"#",
    b"\0",
    b"\xff",
    "\u2028".encode(),
    b">",
    b"//",
    b"|",
    b"=====",
    b"\x0c",
)

TARGETS: Final[dict[str, Target]] = {
    "fasta": Target(
        checks.check_fasta,
        (
            b">P1 a kinase\nMKVLL\nAC\n>P2\nWYr*\n",
            b"@r1\nACGT\n+\nIIII\n@r2 x\nACN\n+r2 x\n@@@\n",
            b">a\r\nAC\r\n\r\n>b\r\nGT\r\n",
            b"\xef\xbb\xbf>\xc3\xa9 \xff\nMK\n> \nAAA\n",
        ),
        _FASTA_TOKENS,
        archives=True,
    ),
    "fasta_each": Target(
        checks.fasta_with_refusals, (b">P1\nMKV\n>P2\nM1V\n>P3\n\n>P4\nAA\n", b"@r\nAC\n+\nII\n"), _FASTA_TOKENS, True
    ),
    "matrix": Target(
        checks.check_matrix,
        (_DNA_MATRIX, b"  A  R  X\nA  4.0 -1 0\nR -1 5 0\nX 0 0 -1\n", b"A 1\nX 2\n"),
        (*_NUMBERS, *_LINES, b"inf", b"128", b"-128", "\u00df".encode()),
        archives=True,
    ),
    "stored_matrix": Target(
        checks.check_stored_matrix, (b"#  m\n    A   X\nA   4  -1\nX  -1  -1\n",), (*_NUMBERS, *_LINES)
    ),
    "pssm": Target(
        checks.profile_check("pssm"), (_PSSM.encode(),), (*_NUMBERS, *_LINES, b"128", b" -129 "), archives=True
    ),
    "asn1": Target(
        checks.profile_check("asn1"),
        ((_CHECKPOINT % _SCORES).encode(), (_CHECKPOINT % _FREQUENCIES).encode() * 2),
        (*_NUMBERS, *_LINES, b"{", b"}", b"'", b'"', b"::=", b"TRUE", b"-32768", b"scores {"),
        archives=True,
    ),
    "hmm": Target(
        checks.profile_check("hmm"), (_MODEL.encode(),), (*_NUMBERS, *_LINES, b"*", b"//\n", b"HMM "), archives=True
    ),
    "stockholm": Target(
        checks.profile_check("stockholm"), (_STOCKHOLM.encode(),), (*_LINES, b"# STOCKHOLM 1.0\n", b"#=GF ID "), True
    ),
    "a3m": Target(checks.profile_check("a3m"), (_A3M.encode(),), (*_LINES, b".", b"-"), archives=True),
    "aligned": Target(
        checks.profile_check("aligned"), (b">q\nMK-V\n>s\nMKLV\n",), (*_LINES, b".", b"-"), archives=True
    ),
    "identifiers": Target(
        checks.check_identifiers, (b"P1\nsp|P02232|LGB1_VICFA x\n#c\nNP_000537.3\n",), (*_LINES, b"|"), True
    ),
    "taxonomy": Target(
        checks.check_taxonomy,
        (
            f"9606====={_MAP}====={_TREE}====={_NAMES}=====5\t|\t2\t|\n=====7\t|\n".encode(),
            b"1=====P1 2\n=====1|1|\n2|1|\n",
        ),
        (*_NUMBERS, *_LINES, b",", b"taxid"),
    ),
    "headers": Target(
        checks.check_headers, (b"sp|P1|X Y OS=Homo sapiens OX=9606 GN=A PE=1 SV=2",), (b"OX=", b"OS=", b" ", *_NUMBERS)
    ),
    "fields": Target(
        checks.check_fields, (b"qseqid,sseqid pident", b"std cigar"), (b",", b" ", *(name.encode() for name in FIELDS))
    ),
    "genetic_code": Target(checks.check_genetic_code, (b"\x01\x00\x00\x01\x02\x03", b"\x0b\x00" + bytes(range(40)))),
    "cigar": Target(
        checks.check_cigar,
        (b"12=1X3D", b"5=1I2=4D1X"),
        (*_NUMBERS, b"=", b"X", b"I", b"D", b"M", b"1=", b"9999999999D"),
    ),
    "catalogue": Target(
        checks.check_catalogue,
        (_seed_catalogue(),),
        (*_NUMBERS, b"[", b"{", b'"', b"null", b"true", b"\\ud800", b"\\u0000", b"../", b","),
    ),
}


# --- tests ---


def read_all(name: str, inputs: Sequence[bytes], folder: Path) -> int:
    """Check a target with some inputs; return 1 after a fault."""
    for data in inputs:
        (folder / "input").write_bytes(data)  # before the input can end the process
        try:
            TARGETS[name].check(data, folder)
        except Exception:  # any exception that a check does not catch is the fault looked for
            traceback.print_exc()
            return 1
    return 0


def check_all(name: str, inputs: Sequence[bytes], folder: Path) -> None:
    """Check a target with some inputs, in a process of its own."""
    ended = called(read_all, name, inputs, folder)
    if ended.code != 0 or ended.fault is not None:
        saved = folder / "input"
        pytest.fail(f"{name}: {ended.fault or ended.text[-1500:]} (input {saved.read_bytes()[:300]!r} in {saved})")


@pytest.mark.parametrize("path", ONCE_FAILED, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_input_that_once_failed_is_read_or_refused(path: Path, tmp_path: Path) -> None:
    check_all(path.parent.name, [path.read_bytes()], tmp_path)


@pytest.mark.campaign(len(TARGETS), 1_700)
def test_any_input_is_read_exactly_or_refused_in_one_line(trial: Trial) -> None:
    name = sorted(TARGETS)[trial.number % len(TARGETS)]
    check_all(name, [mutated(trial.rng, TARGETS[name]) for _ in range(N_INPUTS)], trial.folder)


@pytest.mark.campaign(0, 34)
def test_any_input_that_reaches_another_branch_is_read_or_refused(trial: Trial) -> None:
    """Atheris leads the inputs of one target for half a minute."""
    pytest.importorskip("atheris", reason="Atheris is not installed (pip install 'swsearch[fuzz]')")
    name = sorted(TARGETS)[trial.number % len(TARGETS)]
    command = [sys.executable, "-m", "tests.campaign.fuzz.guided", name, str(trial.state_dir / f"corpus-{name}")]
    command += [f"-max_total_time={trial.seconds:.0f}", "-max_len=20000", f"-seed={trial.rng.randrange(1, 2**31)}"]
    command += ["-timeout=60", "-rss_limit_mb=4096", f"-artifact_prefix={trial.folder}/"]
    command += [str(REGRESSIONS / name)] if (REGRESSIONS / name).is_dir() else []
    done = subprocess.run(command, capture_output=True, check=False)
    words = (done.stdout + done.stderr).decode("utf-8", "replace")
    assert done.returncode == 0, words.partition("Uncaught Python exception")[2][:2500] or words[-2500:]

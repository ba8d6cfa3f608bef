"""All readers of text as targets of fuzzing: valid inputs to mutate, and the check of each reader."""

import json
from typing import Any, Final

from swsearch.report.fields import FIELDS
from tests.campaign.fuzz.checks import (
    check_catalogue,
    check_cigar,
    check_fasta,
    check_fields,
    check_genetic_code,
    check_headers,
    check_identifiers,
    check_matrix,
    check_stored_matrix,
    check_taxonomy,
    fasta_with_refusals,
    profile_check,
    signed,
)
from tests.campaign.fuzz.mutation import Target

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
    return signed(json.dumps(fields, indent=1)).encode()


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
        check_fasta,
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
        fasta_with_refusals, (b">P1\nMKV\n>P2\nM1V\n>P3\n\n>P4\nAA\n", b"@r\nAC\n+\nII\n"), _FASTA_TOKENS, True
    ),
    "matrix": Target(
        check_matrix,
        (_DNA_MATRIX, b"  A  R  X\nA  4.0 -1 0\nR -1 5 0\nX 0 0 -1\n", b"A 1\nX 2\n"),
        (*_NUMBERS, *_LINES, b"inf", b"128", b"-128", "\u00df".encode()),
        archives=True,
    ),
    "stored_matrix": Target(check_stored_matrix, (b"#  m\n    A   X\nA   4  -1\nX  -1  -1\n",), (*_NUMBERS, *_LINES)),
    "pssm": Target(profile_check("pssm"), (_PSSM.encode(),), (*_NUMBERS, *_LINES, b"128", b" -129 "), archives=True),
    "asn1": Target(
        profile_check("asn1"),
        ((_CHECKPOINT % _SCORES).encode(), (_CHECKPOINT % _FREQUENCIES).encode() * 2),
        (*_NUMBERS, *_LINES, b"{", b"}", b"'", b'"', b"::=", b"TRUE", b"-32768", b"scores {"),
        archives=True,
    ),
    "hmm": Target(
        profile_check("hmm"), (_MODEL.encode(),), (*_NUMBERS, *_LINES, b"*", b"//\n", b"HMM "), archives=True
    ),
    "stockholm": Target(
        profile_check("stockholm"), (_STOCKHOLM.encode(),), (*_LINES, b"# STOCKHOLM 1.0\n", b"#=GF ID "), True
    ),
    "a3m": Target(profile_check("a3m"), (_A3M.encode(),), (*_LINES, b".", b"-"), archives=True),
    "aligned": Target(profile_check("aligned"), (b">q\nMK-V\n>s\nMKLV\n",), (*_LINES, b".", b"-"), archives=True),
    "identifiers": Target(
        check_identifiers, (b"P1\nsp|P02232|LGB1_VICFA x\n#c\nNP_000537.3\n",), (*_LINES, b"|"), True
    ),
    "taxonomy": Target(
        check_taxonomy,
        (
            f"9606====={_MAP}====={_TREE}====={_NAMES}=====5\t|\t2\t|\n=====7\t|\n".encode(),
            b"1=====P1 2\n=====1|1|\n2|1|\n",
        ),
        (*_NUMBERS, *_LINES, b",", b"taxid"),
    ),
    "headers": Target(
        check_headers, (b"sp|P1|X Y OS=Homo sapiens OX=9606 GN=A PE=1 SV=2",), (b"OX=", b"OS=", b" ", *_NUMBERS)
    ),
    "fields": Target(
        check_fields, (b"qseqid,sseqid pident", b"std cigar"), (b",", b" ", *(name.encode() for name in FIELDS))
    ),
    "genetic_code": Target(check_genetic_code, (b"\x01\x00\x00\x01\x02\x03", b"\x0b\x00" + bytes(range(40)))),
    "cigar": Target(
        check_cigar, (b"12=1X3D", b"5=1I2=4D1X"), (*_NUMBERS, b"=", b"X", b"I", b"D", b"M", b"1=", b"9999999999D")
    ),
    "catalogue": Target(
        check_catalogue,
        (_seed_catalogue(),),
        (*_NUMBERS, b"[", b"{", b'"', b"null", b"true", b"\\ud800", b"\\u0000", b"../", b","),
    ),
}

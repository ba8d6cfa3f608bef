"""Properties of everything that reads text, whatever the bytes are: one function for each reader.

A check takes bytes and an empty folder. The reader either returns a value, of which the check tests what can be tested
without a second parser (the value is written, read again, and unchanged), or raises one of ``swsearch.errors`` with one
line that names the file. A check raises AssertionError if this is violated; any other exception is a fault of the
reader.
"""

# ruff: noqa: PT017, PT018 - a failed check is reported with its input, and the exceptions it catches are what it tests

import contextlib
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from swsearch.database.catalogue import read_catalogue, write_catalogue
from swsearch.errors import InputError, SwSearchError
from swsearch.filters.subject_filters import IdentifierList
from swsearch.hits import cigar
from swsearch.query.profile_files import detect_query_format, read_profiles
from swsearch.report.fields import STANDARD, select_fields
from swsearch.scoring.matrix import matrix_file, matrix_text, named_matrix, parse_matrix_text
from swsearch.sequences.alphabet import DNA, PROTEIN
from swsearch.sequences.fasta import read_chunks, read_each, read_sequences
from swsearch.sequences.genetic_code import genetic_code
from swsearch.sequences.headers import header_organism, header_taxid
from swsearch.sequences.record import SequenceRecord
from swsearch.taxonomy.assignment import mapped_taxids
from swsearch.taxonomy.dump import FILES as DUMP_FILES
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.taxon_filter import mapped_members, parse_taxids, with_descendants
from swsearch.taxonomy.tree import packed_arrays, unpacked


def refused_well(error: SwSearchError, name: str) -> None:
    """Check that an error is one line of readable length that names the file."""
    message = str(error)
    assert "\n" not in message and "\r" not in message, f"several lines: {message!r}"
    assert len(message) < 3000, f"{len(message)} characters: {message[:200]!r}"
    assert name in message, f"the file is not named: {message!r}"


def _written(data: bytes, folder: Path, name: str) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# --- sequences ---


def _same(one: SequenceRecord, other: SequenceRecord) -> bool:
    return one.header == other.header and np.array_equal(one.codes, other.codes)


def check_fasta(data: bytes, folder: Path) -> None:
    """Records are unchanged after being written and read, and all ways of reading agree."""
    path = _written(data, folder, "input.fa")
    for alphabet in (None, PROTEIN, DNA):
        try:
            records = list(read_sequences(path, alphabet))
        except InputError as error:
            refused_well(error, "input.fa")
            continue
        assert records
        assert all(len(record) for record in records)
        # Of a million chunks, only the codes fit into the memory of a trial.
        chunks = read_chunks(path, records[0].alphabet, block_bytes=7)
        by_chunks = [(len(chunk), chunk.codes.tobytes()) for chunk in chunks]
        assert sum(n for n, _ in by_chunks) == len(records)
        assert b"".join(codes for _, codes in by_chunks) == np.concatenate([one.codes for one in records]).tobytes()
        each = list(read_each(path, records[0].alphabet))
        assert all(isinstance(one, SequenceRecord) and _same(one, two) for one, two in zip(each, records, strict=True))
        text = "".join(f">{record.header}\n{record.letters}\n" for record in records)
        again = _written(text.encode("utf-8", "surrogateescape"), folder, "again.fa")
        reread = list(read_sequences(again, records[0].alphabet))
        assert all(_same(one, two) for one, two in zip(reread, records, strict=True)), "another sequence when reread"


def fasta_with_refusals(data: bytes, folder: Path) -> None:
    """Records of a file are read one by one; invalid ones are omitted."""
    path = _written(data, folder, "input.fa")
    try:
        for record in read_each(path, PROTEIN):
            assert "\n" not in str(getattr(record, "reason", "")), record
    except InputError as error:
        refused_well(error, "input.fa")


# --- matrices and profiles ---


def check_matrix(data: bytes, folder: Path) -> None:
    """A matrix that was read has the scores in the text."""
    path = _written(data, folder, "input.mat")
    for alphabet in (PROTEIN, DNA):
        try:
            matrix = matrix_file(path, alphabet)
        except InputError as error:
            refused_well(error, "input.mat")
            continue
        assert parse_matrix_text(matrix_text(matrix), matrix.name, alphabet) == matrix


def check_stored_matrix(data: bytes, folder: Path) -> None:
    """A matrix as a store returns it."""
    try:
        matrix = parse_matrix_text(data.decode("utf-8", "surrogateescape"), "input", PROTEIN)
    except InputError as error:
        refused_well(error, "input")
    else:
        assert parse_matrix_text(matrix_text(matrix), "input", PROTEIN) == matrix


def profile_check(query_format: str) -> Callable[[bytes, Path], None]:

    def check(data: bytes, folder: Path) -> None:
        path = _written(data, folder, "input.prof")
        try:
            assert detect_query_format(path) in ("fasta", "pssm", "asn1", "hmm", "stockholm")
        except InputError as error:
            refused_well(error, "input.prof")
        try:
            queries = read_profiles(path, query_format, named_matrix("BLOSUM62"))
        except InputError as error:
            refused_well(error, "input.prof")
            return
        for query in queries:
            assert query.scores.shape == (len(query), 32) and query.scores.dtype == np.int8
            assert len(query) and query.letters and query.identifier

    return check


# --- lists and taxonomies ---


def check_identifiers(data: bytes, folder: Path) -> None:
    """A list names the first words of its lines."""
    path = _written(data, folder, "input.list")
    try:
        given = IdentifierList("--include", str(path))
    except InputError as error:
        refused_well(error, "input.list")
        return
    assert given.wanted and all(word and not word.startswith("#") and word == word.strip() for word in given.wanted)
    for word in list(given.wanted)[:20]:
        assert given.names(word)


def check_taxonomy(data: bytes, folder: Path) -> None:
    """The input is a line with the ids, then, each after ``=====``, a map, and a tree or files of a taxdump."""
    taxid, *files = data.split(b"=====")
    files += [b""] * (2 - len(files))
    taxid_map = _written(files[0], folder, "input.map")
    dump = folder / "input.dump"
    dump.mkdir(exist_ok=True)
    for name, content in zip(DUMP_FILES, [*files[1:], b"", b"", b""], strict=False):
        (dump / name).write_bytes(content)
    try:
        taxids = parse_taxids(taxid.decode("utf-8", "surrogateescape").strip("\n"))
    except InputError as error:
        refused_well(error, "taxid")
        taxids = frozenset({1})
    assert all(0 <= number < 10**18 for number in taxids)
    try:
        mapped_members(taxids, str(taxid_map))
    except InputError as error:
        refused_well(error, "taxid_map")
    else:
        headers = ["P1", "P2 two", "sp|P02232|LGB1_VICFA"]
        assert len(mapped_taxids(headers, str(taxid_map)).set_of) == len(headers)
    try:
        tree = read_dump(dump)
    except InputError as error:
        refused_well(error, "taxonomy")
        return
    assert len(unpacked(packed_arrays(tree))) == len(tree)
    for taxon in range(min(len(tree), 50)):
        tree.lineage_names(taxon)
        assert tree.index(tree.taxid(taxon)) == taxon
    with contextlib.suppress(InputError):
        assert with_descendants(taxids, tree)[0] >= taxids


def check_headers(data: bytes, folder: Path) -> None:
    """A header may or may not state an id and an organism; no exception is raised."""
    header = data.decode("utf-8", "surrogateescape")
    taxid, organism = header_taxid(header), header_organism(header)
    assert taxid is None or f"OX={taxid}" in header.replace("OX=0", "OX=") or str(taxid) in header
    assert organism is None or organism in header


# --- arguments ---


def check_fields(data: bytes, folder: Path) -> None:
    """Names of columns, as ``--fields`` splits them."""
    names = data.decode("utf-8", "surrogateescape").replace(",", " ").split()
    try:
        fields = select_fields(names)
    except InputError as error:
        assert "\n" not in str(error)
        return
    wanted = [name for given in names for name in (STANDARD if given == "std" else (given,))]
    assert [field.name for field in fields] == wanted


def check_genetic_code(data: bytes, folder: Path) -> None:
    """A number is one of NCBI's codes or is refused; a code translates any bases."""
    number = int.from_bytes(data[:2], "little", signed=True)
    try:
        code = genetic_code(number)
    except InputError as error:
        refused_well(error, str(number))
        return
    bases = np.frombuffer(data, np.uint8) & np.uint8(0x2F)
    for frame in (1, 2, 3, -1, -2, -3):
        assert len(PROTEIN.decode(code.translate(bases, frame))) == max(0, len(bases) - (abs(frame) - 1)) // 3


def check_cigar(data: bytes, folder: Path) -> None:
    """A CIGAR that was read is written unchanged; its rows have as many columns as it counts."""
    text = data.decode("utf-8", "surrogateescape")
    try:
        operations = cigar.parse(text)
    except InputError as error:
        assert "\n" not in str(error)
        operations = []
    else:
        assert "".join(f"{n}{operation}" for n, operation in operations) == text
        assert cigar.count(text).columns == sum(n for n, _ in operations)
    totals = cigar.count(text) if operations else None
    for extra in (0, 1, -1):
        n_query, n_subject = (3, 4) if totals is None else (totals.query_residues + extra, totals.subject_residues)
        n_query, n_subject = max(0, min(n_query, 5000)), max(0, min(n_subject, 5000))
        try:
            rows = cigar.gapped("A" * n_query, "C" * n_subject, text)
            assert totals is not None or not text
            assert len(rows[0]) == len(rows[1]) == (0 if totals is None else totals.columns)
            cigar.btop("A" * n_query, "C" * n_subject, text)
        except InputError as error:
            assert "\n" not in str(error)


def check_catalogue(data: bytes, folder: Path) -> None:
    """A catalogue raises ValueError, or is unchanged after being written and read."""
    text = data.decode("utf-8", "replace")
    for candidate in (text, signed(text)):
        try:
            catalogue = read_catalogue(candidate)
        except ValueError as error:
            assert "\n" not in str(error) and len(str(error)) < 500
            continue
        written = write_catalogue(catalogue)
        assert read_catalogue(written) == catalogue
        assert catalogue.n_bytes >= 0 and catalogue.n_subjects > 0


def checksum(fields: dict[str, Any]) -> str:
    """Return the checksum of a catalogue with these other fields."""
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def signed(text: str) -> str:
    """Return the same fields with a matching checksum, if the text is JSON."""
    try:
        fields = json.loads(text)
        fields.pop("checksum", None)
        return json.dumps({**fields, "checksum": checksum(fields)})
    except (ValueError, RecursionError, AttributeError, TypeError):
        return text

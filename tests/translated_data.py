"""Data for the tests of translated searches: genes made from real proteins, and translations by Biopython."""

import gzip
from pathlib import Path

import numpy as np
from Bio.Data.CodonTable import unambiguous_dna_by_id
from Bio.Seq import Seq
from Bio.SeqIO.FastaIO import SimpleFastaParser

from swsearch.sequences.alphabet import DNA, PROTEIN, Alphabet
from tests.support import DATA, Records, indexed, write_fasta

AMINO_ACIDS = "ARNDCQEGHILKMFPSTWYV"
FRAMES = (1, 2, 3, -1, -2, -3)


def real_proteins(count: int, longest: int = 150) -> Records:
    """Return the first proteins of data/ that are short enough, each with its identifier."""
    with gzip.open(DATA / "proteins.fasta.gz", "rt") as file:
        records = [(title.split()[0], letters) for title, letters in SimpleFastaParser(file) if len(letters) <= longest]
    return records[:count]


def mutated(rng: np.random.Generator, protein: str, share: float = 0.25) -> str:
    """Return a protein with that share of its residues replaced, and one residue in thirty deleted."""
    letters = [rng.choice(list(AMINO_ACIDS)) if rng.random() < share else letter for letter in protein]
    return "".join(letter for letter in letters if rng.random() > 1 / 30)


def gene(rng: np.random.Generator, protein: str, genetic_code: int = 1) -> str:
    """Return DNA that codes for a protein, with codons drawn uniformly; a residue without a codon becomes NNN."""
    codons: dict[str, list[str]] = {}
    for codon, amino_acid in unambiguous_dna_by_id[genetic_code].forward_table.items():
        codons.setdefault(amino_acid, []).append(codon)
    return "".join(str(rng.choice(codons.get(letter, ["NNN"]))) for letter in protein)


def planted(rng: np.random.Generator, proteins: Records, genetic_code: int = 1, flank: int = 60) -> Records:
    """Return a DNA sequence per protein: its mutated gene between random bases, every second on the other strand."""
    records = []
    for index, (name, protein) in enumerate(proteins):
        flanks = ["".join(rng.choice(list("ACGT"), size=rng.integers(0, flank))) for _ in range(2)]
        dna = flanks[0] + gene(rng, mutated(rng, protein), genetic_code) + flanks[1]
        if index % 3 == 0:  # ambiguous bases and lower case in every third sequence
            middle = len(dna) // 2
            dna = dna[: middle - 5] + "NRY" + dna[middle - 2 : middle].lower() + dna[middle:]
        records.append((f"gene_of_{name}", str(Seq(dna).reverse_complement()) if index % 2 else dna))
    return records


def index_both(folder: Path, queries: dict[str, Records], subjects: dict[str, Records]) -> None:
    """Write ``NAME.queries.fasta`` and an indexed ``NAME.db`` for the names ``proteins`` and ``genes``."""
    alphabets: dict[str, Alphabet] = {"proteins": PROTEIN, "genes": DNA}
    for name, alphabet in alphabets.items():
        write_fasta(folder / f"{name}.queries.fasta", queries[name])
        indexed(folder / f"{name}.db", subjects[name], alphabet)


def biopython_frame(dna: str, frame: int, genetic_code: int = 1) -> str:
    """Return a frame by Biopython, with X for B, Z and J as in BLAST."""
    along = Seq(dna.upper().replace("U", "T"))
    along = (along.reverse_complement() if frame < 0 else along)[abs(frame) - 1 :]
    translated = str(along[: len(along) // 3 * 3].translate(genetic_code))
    return translated.translate(str.maketrans("BZJ", "X" * 3))

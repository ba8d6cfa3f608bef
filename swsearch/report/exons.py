"""The exons of a chain: its alignments with the borders of introns at splice sites, for ``gff3`` and ``bed``.

A local alignment ends where its score is best, which is rarely where an exon ends: it goes on by chance, or it is a few
residues short, and a short intron that keeps the frame is a gap. So the border is chosen again between two consecutive
alignments of a chain, and at each gap of :data:`SHORTEST_INTRON` bases or more. A border is a place in the query, also
within a codon: what is before it is aligned by the left alignment, what is behind it by the right one, each without
further gaps where it has to be extended. Its score is the sum of both and of the codon that it splits. An intron from
GT to AG counts 8 bits more, because one border in 256 has these bases by chance, and one from GC to AG 1 bit, because
there are about a hundred times fewer. The border with the highest sum is taken, the first of equal ones. If this is one
without splice sites, nothing is changed.

Scores of residues are those of the run's matrix, with which the parts are scored again. Scores and E-values of the
chain stay those of the search.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from typing import Final, NamedTuple

from swsearch.deterministic import LN2
from swsearch.hits.chains import MOST_OVERLAP
from swsearch.hits.cigar import count, parse, run_length
from swsearch.hits.formatting import matrix_of
from swsearch.hits.hit import Hit
from swsearch.hits.result import QueryResult
from swsearch.report.base import ReportContext
from swsearch.sequences.alphabet import CODE_MASK, DNA, PROTEIN
from swsearch.sequences.fasta_text import reverse_complement_letters
from swsearch.sequences.genetic_code import CODON, STANDARD_CODE, genetic_code

SHORTEST_INTRON: Final = 30
"""Bases of the shortest intron, and of the shortest gap that may be one."""
SITES: Final = {("GT", "AG"): 8, ("GC", "AG"): 1}
"""What an intron that begins and ends with these bases is worth, in bits."""


class Exon(NamedTuple):
    """A part of a chain.

    Attributes
    ----------
    hit : Hit
        The hit of the part. If a border of it was chosen, its alignment has the coordinates and the columns of the
        part, its score is that of the run's matrix for these columns, and there is no bit score.
    before, after : int
        Number of bases, 0 to 2, at the beginning and at the end that are parts of split codons. The coordinates on the
        subject have them, those on the query and the columns do not.
    """

    hit: Hit
    before: int = 0
    after: int = 0


def exons_of(context: ReportContext, query: QueryResult, chain: Sequence[Hit]) -> list[Exon]:
    """The exons of a chain in its order; without ``--max-intron``, the alignments as they are.

    Raises
    ------
    InputError
        The context has no reader of subjects, and the run has chains.
    """
    if context.run.max_intron is None:
        return [Exon(hit) for hit in chain]
    return _Borders(context, query, chain[0]).exons(chain)


class _Column(NamedTuple):
    """A column: operation of the CIGAR, residue of the query, first base on the strand, residue of the subject, score.

    A gap has the position of what follows it in the place of a residue or of a base.
    """

    operation: str
    residue: int
    base: int
    letter: str
    score: int

    @property
    def is_pair(self) -> bool:
        return self.operation in "=X"


@dataclass
class _Piece:
    """Columns of a hit that no long gap divides; ``gap`` are those between it and the piece of the hit before it."""

    hit: Hit
    columns: list[_Column]
    gap: list[_Column]
    before: int = 0
    after: int = 0
    is_cut: bool = False


class _Borders:
    """Chooses borders between the alignments of a query on one strand of the subject of ``hit``."""

    def __init__(self, context: ReportContext, query: QueryResult, hit: Hit) -> None:
        run = context.run
        assert run.lam is not None  # a search with chains has E-values
        self._subjects = context.needed_subjects
        self._hit = hit
        self._letters = query.letters
        self._codes = (PROTEIN.encode(query.letters) & CODE_MASK).tolist()
        self._scores = matrix_of(run).scores.tolist()
        self._gap_open, self._gap_extend = run.gap_open, run.gap_extend
        self._genetic_code = run.genetic_code or STANDARD_CODE
        self._worth = {sites: int(bits * LN2 / run.lam) for sites, bits in SITES.items()}

    def exons(self, chain: Sequence[Hit]) -> list[Exon]:
        """The exons of a chain."""
        pieces = [piece for hit in chain for piece in self._pieces(hit)]
        done, last = [], pieces[0]
        for piece in pieces[1:]:
            cut = self._cut(last, piece)
            if cut is not None:
                done.append(cut[0])
                last = cut[1]
            elif piece.gap:
                last = replace(last, columns=last.columns + piece.gap + piece.columns)
            else:
                done.append(last)
                last = piece
        return [_exon(piece) for piece in (*done, last)]

    def _pieces(self, hit: Hit) -> Iterator[_Piece]:
        gap: list[_Column] = []
        columns: list[_Column] = []
        for is_long, several in groupby(self._columns(hit), lambda column: column[0]):
            run = [column for _, column in several]
            if is_long:
                yield _Piece(hit, columns, gap)
                gap, columns = run, []
            else:
                columns = run
        yield _Piece(hit, columns, gap)

    def _columns(self, hit: Hit) -> Iterator[tuple[bool, _Column]]:
        """The columns of a hit, each with whether it is one of a gap that may be an intron."""
        alignment = hit.alignment
        residue = alignment.query_start
        base = alignment.subject_start if hit.subject_frame > 0 else -alignment.subject_end
        letters = iter(alignment.subject_letters)
        for length, operation in parse(alignment.cigar):
            is_long = operation == "D" and length * CODON >= SHORTEST_INTRON
            for place in range(length):
                letter = next(letters) if operation != "I" else ""
                if operation in "=X":
                    score = self._pair(residue, letter)
                else:
                    score = -self._gap_extend - (self._gap_open if place == 0 else 0)
                yield is_long, _Column(operation, residue, base, letter, score)
                residue += operation != "D"
                base += CODON * (operation != "I")

    def _pair(self, residue: int, letter: str) -> int:
        score: int = self._scores[self._codes[residue]][PROTEIN.code(letter.upper())]
        return score

    def _bases(self, start: int, end: int) -> str:
        """Upper-case bases of the strand from ``start`` to ``end``; N beyond the ends of the subject."""
        turned, length = self._hit.subject_frame < 0, self._hit.subject_length
        first, last = (-end, -start) if turned else (start, end)
        inside = range(max(0, first), min(length, last))
        letters = self._subjects.letters(self._hit.subject_index, inside.start, inside.stop) if inside else ""
        letters = "N" * (max(first, 0) - first) + letters.upper()
        letters += "N" * (last - first - len(letters))
        return reverse_complement_letters(letters) if turned else letters

    def _extension(self, residue: int, base: int, step: int, n_residues: int) -> list[_Column]:
        """Columns of pairs from this residue and base on, in steps of 1 or -1 along both sequences."""
        first = base if step > 0 else base - CODON * (n_residues - 1)
        bases = self._bases(first, first + CODON * n_residues)
        letters = [_residue(bases[at : at + CODON], self._genetic_code) for at in range(0, len(bases), CODON)][::step]
        columns = []
        for place, letter in enumerate(letters):
            at = residue + step * place
            operation = "=" if letter == self._letters[at].upper() else "X"
            columns.append(_Column(operation, at, base + step * CODON * place, letter, self._pair(at, letter)))
        return columns[::step]

    def _cut(self, one: _Piece, other: _Piece) -> tuple[_Piece, _Piece] | None:
        """Two pieces, cut at the best border between them if it is one of an intron with splice sites, else None."""
        left, right = _between_pairs(one.columns), _between_pairs(other.columns)
        if not left or not right:
            return None
        end, start = left[-1].residue + 1, right[0].residue
        if start - end > MOST_OVERLAP:
            return None
        lowest = max(left[0].residue + 1, min(end, start) - MOST_OVERLAP)
        highest = min(right[-1].residue, max(end, start) + MOST_OVERLAP)
        if lowest > highest:
            return None
        if highest > end:
            left = left + self._extension(end, left[-1].base + CODON, 1, highest - end)
        if lowest < start:
            right = self._extension(start - 1, right[0].base - CODON, -1, start - lowest) + right
        ends = {residue: found for residue, found in _ends(left).items() if lowest <= residue <= highest}
        starts = {residue: found for residue, found in _starts(right).items() if lowest <= residue <= highest}
        if not ends or not starts:
            return None
        from_left, from_right = min(base for base, _, _ in ends.values()), min(base for base, _, _ in starts.values())
        bases_left = self._bases(from_left, max(base for base, _, _ in ends.values()) + 2 * CODON)
        from_right -= 2 * CODON
        bases_right = self._bases(from_right, max(base for base, _, _ in starts.values()))
        highest_score, best = None, None
        for residue, (base, gained, n_left) in sorted(ends.items()):
            for after in range(CODON):
                following = starts.get(residue + (after > 0))
                if following is None:
                    continue
                next_base, rest, from_column = following
                before = -after % CODON
                first, last = base + after, next_base - before
                if last - first < SHORTEST_INTRON:
                    continue
                donor, acceptor = first - from_left, last - from_right
                score = gained + rest
                if after:
                    codon = bases_left[donor - after : donor] + bases_right[acceptor : acceptor + before]
                    score += self._pair(residue, _residue(codon, self._genetic_code))
                sites = bases_left[donor : donor + 2], bases_right[acceptor - 2 : acceptor]
                score += self._worth.get(sites, 0)
                if highest_score is None or score > highest_score:
                    highest_score = score
                    best = (n_left, from_column, after, before) if sites in SITES else None
        if best is None:
            return None
        n_left, from_column, after, before = best
        return (
            replace(one, columns=left[:n_left], after=after, is_cut=True),
            replace(other, columns=right[from_column:], before=before, is_cut=True),
        )


@cache
def _residue(codon: str, number: int) -> str:
    """The residue of a codon of upper-case letters in the genetic code of this number."""
    return PROTEIN.decode(genetic_code(number).translate(DNA.encode(codon), 1))


def _between_pairs(columns: list[_Column]) -> list[_Column]:
    """The columns from the first to the last one that is not a gap."""
    pairs = [place for place, column in enumerate(columns) if column.is_pair]
    return columns[pairs[0] : pairs[-1] + 1] if pairs else []


def _ends(columns: list[_Column]) -> dict[int, tuple[int, int, int]]:
    """For each residue before which a piece may end: the base there, the score so far, and the number of columns."""
    found, score = {}, 0
    for place, column in enumerate(columns):
        score += column.score
        if column.is_pair:
            found[column.residue + 1] = column.base + CODON, score, place + 1
    return found


def _starts(columns: list[_Column]) -> dict[int, tuple[int, int, int]]:
    """For each residue with which a piece may begin: its first base, the score from there on, and its column."""
    found, score = {}, 0
    for place in range(len(columns) - 1, -1, -1):
        column = columns[place]
        score += column.score
        if column.is_pair:
            found[column.residue] = column.base, score, place
    return found


def _exon(piece: _Piece) -> Exon:
    hit = piece.hit
    if not piece.is_cut:
        return Exon(hit)
    columns = piece.columns
    start, end = columns[0].base - piece.before, columns[-1].base + CODON + piece.after
    if hit.subject_frame < 0:
        start, end = -end, -start
    cigar = run_length("".join(column.operation for column in columns))
    counts = count(cigar)
    alignment = replace(
        hit.alignment,
        query_start=columns[0].residue,
        query_end=columns[-1].residue + 1,
        subject_start=start,
        subject_end=end,
        cigar=cigar,
        identities=counts.identities,
        positives=sum(column.score > 0 for column in columns),
        columns=counts.columns,
        gap_openings=counts.gap_openings,
        gap_residues=counts.insertions + counts.deletions,
        subject_letters="".join(column.letter for column in columns),
    )
    score = sum(column.score for column in columns)
    return Exon(replace(hit, score=score, bits=None, alignment=alignment), piece.before, piece.after)

"""Reports of the domains of proteins: ``table``, ``domtblout``, ``tsv``, ``jsonl``, ``html``.

Positions are 1-based and inclusive. ``domtblout`` has the lines of ``hmmscan --domtblout``; ``table`` and ``html`` show
the proteins that have domains, and ``jsonl`` has a line for each protein. Each protein is written as soon as it is
known.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TextIO

from swsearch.hits.formatting import blast_evalue, one_line, shown_bits
from swsearch.report.html import bar_of, bits_class, closing, colour_key, graphic, graphic_row, opening, text
from swsearch.sequences.record import identifier, split_header
from swsearch.words import counted

if TYPE_CHECKING:  # the pages of the service, which draw too, import no engine
    from swsearch.domains.annotation import AnnotatedProtein, FoundDomain, FoundFamily

FIELDS: Final = (
    "protein", "protein_length", "family", "accession", "family_length", "evalue", "bits", "bias", "domain", "domains",
    "domain_evalue", "conditional_evalue", "domain_bits", "domain_bias", "model_start", "model_end", "start", "end",
    "envelope_start", "envelope_end", "accuracy", "description",
)  # fmt: skip
_TABLE: Final = ("family", "accession", "residues", "positions", "length", "bits", "E-value", "accuracy", "description")
_PALE: Final = "Pale parts of a bar belong to the envelope of a domain, but not to its alignment."
_DOMTBLOUT: Final = (
    "#                                                                            --- full sequence --- "
    "-------------- this domain -------------   hmm coord   ali coord   env coord\n"
    "# target name        accession   tlen query name           accession   qlen   E-value  score  bias   #  of  "
    "c-Evalue  i-Evalue  score  bias  from    to  from    to  from    to  acc description of target\n"
    "#------------------- ---------- ----- -------------------- ---------- ----- --------- ------ ----- --- --- "
    "--------- --------- ------ ----- ----- ----- ----- ----- ----- ----- ---- ---------------------\n"
)

Writer = Callable[[Iterable["AnnotatedProtein"], Mapping[str, str], TextIO], None]
"""Writes proteins, with what is said about the search by its names."""


Values = dict[str, Any]
"""The values of a domain by the names of :data:`FIELDS`."""


def values(protein: AnnotatedProtein, found: FoundFamily, one: FoundDomain) -> Values:
    """The values of a domain by the names of :data:`FIELDS`."""
    family, domain = found.family, one.domain
    model_start, model_end = domain.of_model
    start, end = domain.of_protein
    return dict(
        zip(
            FIELDS,
            (
                identifier(protein.header), protein.length, family.name, family.accession, family.length, found.evalue,
                found.bits, found.bias, one.number, one.n_domains, one.evalue, one.conditional_evalue, domain.bits,
                domain.bias, model_start + 1, model_end, start + 1, end, domain.first + 1, domain.last, domain.accuracy,
                family.description,
            ),
            strict=True,
        )
    )  # fmt: skip


def _by_residues(protein: AnnotatedProtein) -> list[Values]:
    """The domains of all families in the order of the protein's residues."""
    domains = [values(protein, found, one) for found in protein.families for one in found.domains]
    return sorted(domains, key=lambda each: (each["start"], each["end"], each["evalue"]))


def _title(protein: AnnotatedProtein) -> str:
    return f"{one_line(protein.header) or 'unnamed'} ({counted(protein.length, 'residue')})"


# --- text ---


def _write_table(proteins: Iterable[AnnotatedProtein], facts: Mapping[str, str], stream: TextIO) -> None:
    stream.writelines(f"{name + ':':<10}{fact}\n" for name, fact in facts.items())
    for protein in proteins:
        if not protein.families:
            continue
        stream.write(f"\nProtein:  {_title(protein)}\n\n")
        rows = [_TABLE, *map(_table_row, _by_residues(protein))]
        widths = [max(len(row[column]) for row in rows) for column in range(len(_TABLE))]
        for row in rows:
            cells = [
                f"{cell:>{width}}" if 2 <= column < len(_TABLE) - 1 else f"{cell:<{width}}"
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            stream.write(" ".join(cells).rstrip() + "\n")


def _table_row(domain: Values) -> tuple[str, ...]:
    return (
        domain["family"],
        domain["accession"] or "-",
        f"{domain['start']}-{domain['end']}",
        f"{domain['model_start']}-{domain['model_end']}",
        str(domain["family_length"]),
        shown_bits(domain["domain_bits"]),
        blast_evalue(domain["domain_evalue"]),
        f"{domain['accuracy']:.2f}",
        one_line(domain["description"]),
    )


def _write_domtblout(proteins: Iterable[AnnotatedProtein], facts: Mapping[str, str], stream: TextIO) -> None:
    stream.write(_DOMTBLOUT)
    for protein in proteins:
        for found in protein.families:
            for one in found.domains:
                v = values(protein, found, one)
                stream.write(
                    f"{v['family']:<20} {v['accession'] or '-':<10} {v['family_length']:5} "
                    f"{one_line(v['protein']) or '-':<20} {'-':<10} {v['protein_length']:5} "
                    f"{v['evalue']:9.2g} {v['bits']:6.1f} {v['bias']:5.1f} {v['domain']:3} {v['domains']:3} "
                    f"{v['conditional_evalue']:9.2g} {v['domain_evalue']:9.2g} {v['domain_bits']:6.1f} "
                    f"{v['domain_bias']:5.1f} {v['model_start']:5} {v['model_end']:5} {v['start']:5} {v['end']:5} "
                    f"{v['envelope_start']:5} {v['envelope_end']:5} {v['accuracy']:4.2f} "
                    f"{one_line(v['description']) or '-'}\n"
                )
    stream.writelines(f"# {name}: {fact}\n" for name, fact in facts.items())


def _write_tsv(proteins: Iterable[AnnotatedProtein], facts: Mapping[str, str], stream: TextIO) -> None:
    stream.write("\t".join(FIELDS) + "\n")
    for protein in proteins:
        for domain in _by_residues(protein):
            stream.write("\t".join(map(_cell, domain.values())) + "\n")


def _cell(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1 else f"{value:.2f}"
    return one_line(str(value))


def _write_jsonl(proteins: Iterable[AnnotatedProtein], facts: Mapping[str, str], stream: TextIO) -> None:
    for protein in proteins:
        name, description = split_header(protein.header)
        own = {"protein": name, "protein_description": description, "protein_length": protein.length}
        domains = [
            {field: value for field, value in domain.items() if field not in own} for domain in _by_residues(protein)
        ]
        stream.write(json.dumps({**own, "domains": domains}, ensure_ascii=False) + "\n")


# --- the page ---


def _write_html(proteins: Iterable[AnnotatedProtein], facts: Mapping[str, str], stream: TextIO) -> None:
    title, skip = "Domains of proteins", ("domains", "Skip to the domains")
    remark = "Sorting the tables needs JavaScript; all else works without."
    stream.writelines(opening(title, title, skip, facts, remark, "Proteins"))
    n_drawn = 0
    for protein in proteins:
        if protein.families:
            n_drawn += 1
            stream.writelines(_section(protein, f"q{n_drawn}"))
    if not n_drawn:
        stream.write("<p>No protein has a domain of these families.</p>\n")
    stream.write(closing("script.js"))


def _section(protein: AnnotatedProtein, name: str) -> Iterator[str]:
    yield f'<section aria-labelledby="{name}">\n<h2 id="{name}">{text(_title(protein))}</h2>\n<div class="results">\n'
    yield from drawing(_by_residues(protein), protein.length, identifier(protein.header), name, sorts=True)
    yield "</div>\n</section>\n"


def drawing(domains: Sequence[Values], length: int, protein: str, name: str, *, sorts: bool = False) -> Iterator[str]:
    """Parts of the HTML of a figure and a table of domains, at least one, as ``jsonl`` has them of a protein.

    All ids begin with ``name``. ``sorts`` says that the page has the script that sorts tables.
    """
    families: dict[tuple[float, float, str], list[Values]] = {}
    for domain in domains:
        families.setdefault((domain["evalue"], -domain["bits"], domain["family"]), []).append(domain)
    ranks = {family: rank for rank, family in enumerate(sorted(families), 1)}
    title = "Where in the protein the domains are"
    rows = (_graphic_row(families[family], length, f"#{name}h{rank}", rank) for family, rank in ranks.items())
    yield "<figure>\n"
    yield from graphic(rows, length, f"{name}-overview", title, f"{name}-hits")
    yield f"<figcaption>{_PALE} {''.join(colour_key())}</figcaption>\n</figure>\n"
    yield f'<div class="scroll" id="{name}-hits" role="region" aria-labelledby="{name}-caption" tabindex="0">\n'
    yield f'<table>\n<caption id="{name}-caption">Domains of {text(protein)}</caption>\n'
    yield "<thead>\n<tr>"
    for column, cell in enumerate(_TABLE):
        first = "descending" if cell in ("bits", "accuracy") else "ascending"
        sorted_now = ' aria-sort="ascending"' if column == 2 else ""
        button = f'<button type="button">{cell}</button>' if sorts else cell
        yield f'<th scope="col" data-first="{first}"{sorted_now}>{button}</th>'
    yield "</tr>\n</thead>\n<tbody>\n"
    for domain in domains:
        family, *cells, description = map(text, _table_row(domain))
        rank = ranks[domain["evalue"], -domain["bits"], domain["family"]]
        anchor = f' id="{name}h{rank}"' if domain["domain"] == 1 else ""
        yield f'<tr{anchor}><th scope="row">{family}</th><td>{cells[0]}</td>'
        yield from (f'<td class="number">{cell}</td>' for cell in cells[1:])
        yield f'<td class="text">{description}</td></tr>\n'
    yield "</tbody>\n</table>\n</div>\n"


def _graphic_row(domains: Sequence[Values], length: int, address: str, rank: int) -> str:
    """The row of the domains of one family."""
    bars = "".join(
        bar_of(one["envelope_start"] - 1, one["envelope_end"], length, ' opacity="0.35"')
        + bar_of(one["start"] - 1, one["end"], length)
        for one in domains
    )
    first = domains[0]
    places = ", ".join(f"{one['start']}-{one['end']}" for one in domains)
    words = f"{places}, {shown_bits(first['bits'])} bits, E-value {blast_evalue(first['evalue'])}"
    label = f"<bdi>{text(first['family'])}</bdi>"
    style = bits_class(max(one["domain_bits"] for one in domains))
    return graphic_row(address, rank, label, style, bars, words, f"{one_line(first['family'])}: {words}")


FORMATS: Final[dict[str, Writer]] = {
    "table": _write_table,
    "domtblout": _write_domtblout,
    "tsv": _write_tsv,
    "jsonl": _write_jsonl,
    "html": _write_html,
}

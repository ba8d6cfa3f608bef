"""The organisms of hits in reports: BLAST's columns are BLAST's, the others are NCBI's lineages."""

import csv
import io
import json
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import swsearch
from swsearch.errors import InputError
from swsearch.report.fields import FIELDS
from swsearch.report.formats import FORMATS, Use, new_report
from swsearch.store.store import Store
from swsearch.taxonomy.dump import read_dump
from swsearch.taxonomy.subject_taxa import TaxonomyOfSubjects
from tests.report.conftest import GAPPED, PROTEIN_QUERIES, SELF
from tests.taxonomy.dumps import EXCERPT, with_changes

LETTERS = "MKVLAAGIVGLLLAQWERTYMKVLAAGIVGLLLAQWERTYHHEDKN"
BLAST_COLUMNS = "staxids sscinames scomnames sblastnames sskingdoms"
ONE_COLUMNS = "staxid ssciname scomname sblastname sskingdom"


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The excerpt of NCBI's taxonomy, with merged and deleted ids."""
    return read_dump(with_changes(tmp_path_factory.mktemp("taxdump")))


def of(tree, stored):
    """Return the taxonomy of the subjects of the two proteins, with stored ids."""
    return TaxonomyOfSubjects(tree, stored.get)


def columns(written, names, taxonomy=None, queries=PROTEIN_QUERIES):
    """Return the cells of all hits in ``tsv``."""
    table = written("tsv", queries=queries, fields=names.split(), taxonomy=taxonomy)
    return [list(row.values()) for row in csv.DictReader(io.StringIO(table), delimiter="\t")]


def test_several_organisms_of_a_subject_are_separated_as_by_blast(written, tree):
    """By hand: ids and names in the order of the ids, BLAST names and superkingdoms by alphabet, each once."""
    taxonomy = of(tree, {0: (562, 4000010, 9606, 10090), 2: (3702,)})
    names = f"{BLAST_COLUMNS} skingdoms sphylums slineages"
    (several, one) = columns(written, names, taxonomy)
    assert several[:5] == [
        "562;9606;10090", "Escherichia coli;Homo sapiens;Mus musculus", "Escherichia coli;human;house mouse",
        "enterobacteria;primates;rodents", "Bacteria;Eukaryota",
    ]  # fmt: skip
    assert several[5:7] == ["Pseudomonadati;Metazoa", "Pseudomonadota;Chordata"]
    lineages = several[7].split("<>")
    assert len(lineages) == 3
    assert lineages[0] == (
        "cellular organisms; Bacteria; Pseudomonadati; Pseudomonadota; Gammaproteobacteria; Enterobacterales; "
        "Enterobacteriaceae; Escherichia; Escherichia coli"
    )
    assert one[:5] == ["3702", "Arabidopsis thaliana", "thale cress", "eudicots", "Eukaryota"]
    first = columns(written, f"{ONE_COLUMNS} slineage", of(tree, {0: (562, 9606)}))[0]
    assert first[:5] == ["562", "Escherichia coli", "Escherichia coli", "enterobacteria", "Bacteria"]
    assert first[5] == lineages[0]


def test_unknown_organisms_are_unknown_values(written, tree):
    """By hand: an id that is not in the tree has no names; without an id, only the header's organism is known."""
    headed = replace(SELF, subject_header="s1 leghemoglobin OS=Vicia faba SV=1")
    queries = (replace(PROTEIN_QUERIES[0], hits=(headed, GAPPED)),)
    taxonomy = TaxonomyOfSubjects(tree, {0: (), 2: (77, 4000000)}.get)
    names = f"{BLAST_COLUMNS} slineage".split()
    assert written("blast6", queries=queries, fields=names, taxonomy=taxonomy).splitlines() == [
        "\t".join(["N/A", "Vicia faba", "N/A", "N/A", "N/A", "N/A"]),
        "\t".join(["77;4000000", "N/A", "N/A", "N/A", "N/A", "N/A"]),
    ]
    assert taxonomy.messages() == [
        "warning: 1 taxonomy id was deleted from the taxonomy: 4000000",
        "warning: 1 taxonomy id is not in the taxonomy: 77; a newer taxdump may have more",
    ]


def test_without_a_taxonomy_headers_are_what_is_known(written):
    """By hand: UniProt's and UniRef's fields."""
    headers = ["s1 one OS=Vicia faba OX=3906 GN=x", "s3 two n=1 Tax=Glycine max TaxID=3847 RepID=y"]
    hits = tuple(replace(hit, subject_header=header) for hit, header in zip((SELF, GAPPED), headers, strict=True))
    queries = (replace(PROTEIN_QUERIES[0], hits=hits),)
    assert columns(written, "staxid staxids ssciname sscinames", queries=queries) == [
        ["3906", "3906", "Vicia faba", "Vicia faba"], ["3847", "3847", "Glycine max", "Glycine max"]
    ]  # fmt: skip
    with pytest.raises(InputError, match="need a taxonomy"):
        written("tsv", queries=queries, fields=["slineage"])


def test_structured_formats_have_the_organisms_of_a_taxonomy(written, tree):
    """By hand; without a taxonomy, these members, elements and columns are those of before."""
    taxonomy = of(tree, {0: (9606, 562), 2: ()})
    first, second = json.loads(written("json", taxonomy=taxonomy))["queries"][0]["hits"]
    assert (first["taxids"], first["organisms"]) == ([562, 9606], ["Escherichia coli", "Homo sapiens"])
    assert (second["taxids"], second["organisms"]) == ([], [])
    rows = [json.loads(line) for line in written("jsonl", taxonomy=taxonomy).splitlines()]
    assert rows[2]["organisms"] == ["Escherichia coli", "Homo sapiens"]
    report = json.loads(written("json2", taxonomy=taxonomy))["BlastOutput2"][0]["report"]
    described = report["results"]["search"]["hits"]
    assert (described[0]["description"][0]["taxid"], described[0]["description"][0]["sciname"]) == (
        562, "Escherichia coli"
    )  # fmt: skip
    assert "taxid" not in described[1]["description"][0]
    page = written("html", taxonomy=taxonomy)
    assert '<button type="button">organism</button>' in page
    assert '<td class="text organism">Escherichia coli; Homo sapiens</td>' in page
    assert "organism<" not in written("html")
    assert "taxids" not in written("json")


def test_formats_say_what_they_take_from_a_taxonomy():
    """By hand."""
    uses = {name: new_report(name).taxonomy_use for name in FORMATS if name != "parquet"}
    known = {name for name, use in uses.items() if use is Use.IF_KNOWN}
    assert known == {"json", "jsonl", "json2", "xml2", "html"}
    for name in ("blast6", "blast7", "tsv", "csv"):
        assert new_report(name, ["qseqid", "staxid"]).taxonomy_use is Use.IF_KNOWN
        assert new_report(name, ["staxid", "sblastname"]).taxonomy_use is Use.NEEDED
    assert new_report("parquet", ["slineage"]).taxonomy_use is Use.NEEDED


# --- BLAST itself ---


def blast_names(folder: Path, tree) -> None:
    """Write BLAST's database of names (``taxdb.bti``, ``taxdb.btd``): an index by id and texts separated by tabs."""
    texts, index = b"", []
    for taxid in sorted(tree.taxids.tolist()):
        taxon = tree.index(taxid)
        names = tree.name(taxon), tree.common_name(taxon), tree.blast_name(taxon) or "", tree.domain(taxon) or ""
        index.append(struct.pack(">II", taxid, len(texts)))
        texts += "\t".join(names).encode()
    (folder / "taxdb.btd").write_bytes(texts)
    (folder / "taxdb.bti").write_bytes(struct.pack(">6I", 0x8739, len(index), 0, 0, 0, 0) + b"".join(index))


@pytest.mark.peer("makeblastdb")
def test_the_columns_are_those_of_blastp(tmp_path, tree, monkeypatch):
    """Source: blastp 2.12 with the same sequences, ids and names; one subject has the joined headers of four."""
    joined = "m1 mouse\x01h1 human\x01e1 coli\x01p1 chimpanzee"
    (tmp_path / "subjects.fa").write_text(f">{joined}\n{LETTERS}\n>h2 human\n{LETTERS[5:]}\n>v1 virus\n{LETTERS[3:]}\n")
    (tmp_path / "map").write_text("m1 10090\nh1 9606\ne1 562\np1 9598\nh2 9606\nv1 10497\n")
    (tmp_path / "query.fa").write_text(f">q\n{LETTERS}\n")
    blast_names(tmp_path, tree)
    monkeypatch.chdir(tmp_path)
    made = ["makeblastdb", "-in", "subjects.fa", "-dbtype", "prot", "-parse_seqids", "-taxid_map", "map", "-out", "b"]
    subprocess.run(made, check=True, capture_output=True)
    fields = f"saccver {BLAST_COLUMNS}"
    found = subprocess.run(
        ["blastp", "-query", "query.fa", "-db", "b", "-seg", "no", "-comp_based_stats", "0", "-outfmt", f"7 {fields}"],
        check=True, capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "BLASTDB": str(tmp_path)},
    ).stdout  # fmt: skip
    swsearch.build_database("subjects.fa", "db", taxonomy=EXCERPT, taxid_map="map")
    results = swsearch.search_database("query.fa", "db")
    swsearch.write_report(results, "ours", "blast7", fields.split())

    def rows(text):
        lines = text.replace("m1\x01h1 ", "m1 ").splitlines()
        return [line for line in lines if line.startswith("# Fields") or not line.startswith("#")]

    ours = (tmp_path / "ours").read_text()
    assert len(rows(found)) == 4
    assert rows(ours) == rows(found)
    titles = [FIELDS[name].title for name in f"{ONE_COLUMNS} {BLAST_COLUMNS}".split()]
    asked = subprocess.run(
        ["blastp", "-query", "query.fa", "-db", "b", "-outfmt", f"7 {ONE_COLUMNS} {BLAST_COLUMNS}"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert f"# Fields: {', '.join(titles)}" in asked.splitlines()


def test_scripts_get_the_organisms(tmp_path):
    """By hand: the same sequence in two organisms."""
    (tmp_path / "s.fa").write_text(f">a OX=9606\n{LETTERS}\n>b OX=562\n{LETTERS}\n")
    swsearch.build_database(tmp_path / "s.fa", tmp_path / "db")
    options = swsearch.SearchOptions(taxonomy=str(EXCERPT))

    def search(**given):
        return swsearch.search_database([LETTERS], tmp_path / "db", swsearch.SearchOptions(**given))

    results = search(taxonomy=str(EXCERPT))
    taxonomy = results.taxonomy()
    tree = taxonomy.tree
    found = [taxonomy.of(hit.subject_index, hit.subject_header) for result in results for hit in result.hits]
    assert [[tree.name(one) for one in taxa.taxa] for taxa in found] == [["Homo sapiens"], ["Escherichia coli"]]
    with pytest.raises(InputError, match="needs a taxonomy"):
        search().taxonomy()
    table = search(taxonomy=str(EXCERPT)).to_arrow(["sseqid", "sskingdom"])
    assert table.to_pylist() == [{"sseqid": "a", "sskingdom": "Eukaryota"}, {"sseqid": "b", "sskingdom": "Bacteria"}]
    with Store(tmp_path / "hits.sqlite", create=True) as store:
        list(swsearch.search_database([LETTERS], tmp_path / "db", options, store=store))
        stored = store.runs.get(1).info, list(store.results.queries(1))
    out = tmp_path / "out"
    swsearch.write_report(stored, out, "blast6", ["sscinames"], taxonomy=EXCERPT)
    assert out.read_text() == "Homo sapiens\nEscherichia coli\n"
    with pytest.raises(InputError, match="needs a taxonomy"):
        swsearch.write_report(stored, out, "blast6", ["slineage"])

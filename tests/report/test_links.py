"""Links by identifiers. Source of the expected addresses: the databases' own pages on how to link to them, by hand."""

import pytest

from swsearch.errors import InputError
from swsearch.report.formats import new_report
from swsearch.report.links import LINKS_VARIABLE, links_of

NCBI = "https://www.ncbi.nlm.nih.gov"
ADDRESSES = {
    "sp|P02232.2|LGB1_VICFA Leghemoglobin": ["https://www.uniprot.org/uniprotkb/P02232",
                                             "https://alphafold.ebi.ac.uk/entry/P02232"],
    "tr|A0A5A9P0L4|A0A5A9P0L4_9TELE": ["https://www.uniprot.org/uniprotkb/A0A5A9P0L4",
                                       "https://alphafold.ebi.ac.uk/entry/A0A5A9P0L4"],
    "UniRef90_A0A5A9P0L4 isomerase n=1": ["https://www.uniprot.org/uniref/UniRef90_A0A5A9P0L4"],
    "NP_000537.3 tumor antigen p53": [f"{NCBI}/protein/NP_000537.3"],
    "ref|WP_000027057.1|": [f"{NCBI}/protein/WP_000027057.1"],
    "NC_001416.1 Escherichia phage Lambda": [f"{NCBI}/nuccore/NC_001416.1"],
    "gb|AAA35387.1|": [f"{NCBI}/protein/AAA35387.1"],
    "gb|U00096.3|": [f"{NCBI}/nuccore/U00096.3"],
    "pdb|1LH1|A": ["https://www.rcsb.org/structure/1LH1"],
    "1lh1_A mol:protein": ["https://www.rcsb.org/structure/1lh1"],
    "PF00042.28": ["https://www.ebi.ac.uk/interpro/entry/pfam/PF00042"],
}  # fmt: skip


@pytest.mark.parametrize("header", ADDRESSES)
def test_public_identifiers_have_links(header):
    assert [address for _, address in links_of(header)] == ADDRESSES[header]


@pytest.mark.parametrize(
    "header",
    ["", "contig_17", "LAB_0001 OS=Homo sapiens", "P02232", "sp|P02232", "sp|secret|LGB1", "mygene_A", "NP_1",
     pytest.param("x" * 10**6, id="long"), "pdb|../..|A", "12345_A_B"],
)  # fmt: skip
def test_other_names_have_none(header):
    """So that the names of a laboratory's own sequences are not sent to anybody."""
    assert links_of(header) == []


def test_a_file_adds_rows_and_keeps_names_private(tmp_path, monkeypatch):
    path = tmp_path / "links.tsv"
    path.write_text(
        "# our own\nLIMS\t(LAB_[0-9]+)\thttps://lims.example.org/?id={1}\n-\tLAB_.*\t-\n-\tsp\\|Q.*\t-\n"
        "UniProt\tsp\\|(P\\w+)\\|.*\thttps://mirror.example.org/{1}\n"
    )
    monkeypatch.setenv(LINKS_VARIABLE, str(path))
    assert links_of("LAB_17 ours") == [("LIMS", "https://lims.example.org/?id=LAB_17")]
    assert links_of("LAB_x") == links_of("sp|Q600K7|ENGB_MYCH2") == []
    assert dict(links_of("sp|P02232|LGB1_VICFA")) == {
        "UniProt": "https://mirror.example.org/P02232",
        "AlphaFold": "https://alphafold.ebi.ac.uk/entry/P02232",
    }


def test_a_character_of_an_identifier_cannot_leave_its_place(tmp_path, monkeypatch):
    path = tmp_path / "any.tsv"
    path.write_text("any\t(.*)\thttps://example.org/{1}/entry\n")
    monkeypatch.setenv(LINKS_VARIABLE, str(path))
    ((_, address),) = links_of('../a?b#c&d"e<f')
    assert address == "https://example.org/..%2Fa%3Fb%23c%26d%22e%3Cf/entry"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a\tb\n", "line 1: give name, regular expression and address"),
        ("#\n\na\t(\thttps://x/\n", "line 3: missing"),
        ("a\t.*\tjavascript:alert(1)\n", "line 1: javascript:alert"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path, monkeypatch, content, problem):
    path = tmp_path / "links.tsv"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv(LINKS_VARIABLE, str(path))
    with pytest.raises(InputError, match=problem.replace("(", "\\(")):
        links_of("x")
    with pytest.raises(InputError, match=problem.replace("(", "\\(")):
        new_report("html")  # before anything is searched

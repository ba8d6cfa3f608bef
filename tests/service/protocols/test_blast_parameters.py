"""Parameters of the BLAST URL API as options of a search. Source: NCBI's description of the API, by hand."""

import pytest

from swsearch.errors import InputError
from swsearch.service.protocols.blast_parameters import (
    GET,
    PUT,
    REFUSED,
    WITHOUT_EFFECT,
    checked_parameters,
    submission_of,
)
from swsearch.service.submit import OPTIONS


def options(**sent):
    """The options of a submission that are not the usual ones."""
    fields = {"CMD": "Put", "PROGRAM": "blastp", "DATABASE": "d.db", "QUERY": "MKV", **sent}
    submission, _ = submission_of(checked_parameters(list(fields.items())))
    assert set(submission.options) <= set(OPTIONS)
    return {
        name: value for name, value in submission.options.items() if value is not None and (name, value) != ("top", 100)
    }


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ({}, {}),
        ({"HITLIST_SIZE": "7", "EXPECT": "1e-3"}, {"top": 7, "evalue": 0.001}),
        ({"GAPCOSTS": "11 1", "MATRIX_NAME": "blosum45"}, {"gap_open": 11, "gap_extend": 1, "matrix": "BLOSUM45"}),
        ({"GAPCOSTS": "11.0 1.0", "MATRIX": "PAM30", "MATRIX_NAME": "PAM30"},
         {"gap_open": 11, "gap_extend": 1, "matrix": "PAM30"}),
        ({"PROGRAM": "blastn", "NUCL_REWARD": "1", "NUCL_PENALTY": "-3"}, {"match": 1, "mismatch": -3}),
        ({"FILTER": "F"}, {}),
        ({"FILTER": "m"}, {}),
        ({"FILTER": "L"}, {"mask": "seg", "mask_mode": "hard"}),
        ({"FILTER": "mT", "PROGRAM": "blastn"}, {"mask": "dust", "mask_mode": "soft"}),
        ({"FILTER": "L;m;", "LCASE_MASK": "yes"}, {"mask": "seg,lower", "mask_mode": "soft"}),
        ({"FILTER": "none", "LCASE_MASK": "on"}, {"mask": "lower", "mask_mode": "hard"}),
        ({"LCASE_MASK": "no"}, {}),
        ({"PROGRAM": "blastx", "GENETIC_CODE": "11"}, {"translate": "query", "genetic_code": 11}),
        ({"PROGRAM": "tblastn", "DB_GENETIC_CODE": "4", "GENETIC_CODE": "1"},
         {"translate": "subject", "genetic_code": 4}),
        ({"PROGRAM": "TBLASTX", "DB_GENETIC_CODE": "2", "GENETIC_CODE": "2"}, {"translate": "both", "genetic_code": 2}),
        ({"ENTREZ_QUERY": "(none)"}, {}),
        ({"ENTREZ_QUERY": "txid9606[ORGN]"}, {"taxid": "9606"}),
        ({"ENTREZ_QUERY": "txid9606 [Organism:exp] OR (txid10090[orgn])"}, {"taxid": "9606,10090"}),
        ({"PERC_IDENT": "90"}, {"min_identity": 90.0}),
        (dict.fromkeys(WITHOUT_EFFECT, "3"), {}),
        (dict.fromkeys(REFUSED, "no"), {}),
        ({"SERVICE": "plain", "COMPOSITION_BASED_STATISTICS": "0", "ALIGNMENTS": "3", "FORMAT_TYPE": "XML"},
         {"composition": "none"}),
        *(({"COMPOSITION_BASED_STATISTICS": value}, {"composition": "adjust"}) for value in ["1", "2", "3", "D", "t"]),
        ({"COMPOSITION_BASED_STATISTICS": "2", "PROGRAM": "blastn"}, {}),
    ],
)  # fmt: skip
def test_parameters_become_options(sent, expected):
    translate = {} if sent.get("PROGRAM", "blastp").lower() in ("blastp", "blastn") else {"genetic_code": 1}
    assert options(**sent) == {**translate, **expected}


@pytest.mark.parametrize(
    ("sent", "message"),
    [
        *(({name: "yes"}, f"{name} is not available: ") for name in sorted(REFUSED)),
        ({"PROGRAM": "psiblast"}, "there is no program 'psiblast'; choose blastp, blastn, blastx, tblastn, tblastx"),
        ({"PROGRAM": ""}, "PROGRAM is missing"),
        ({"DATABASE": ""}, "DATABASE is missing"),
        ({"QUERY": " "}, "QUERY is missing"),
        ({"QUERY": "NP_000198.1"}, "QUERY=NP_000198.1 looks like an accession"),
        ({"SERVICE": "psi"}, "SERVICE=psi is not available"),
        ({"COMPOSITION_BASED_STATISTICS": "9"}, "COMPOSITION_BASED_STATISTICS=9 is not available: choose 0, 1, 2 or 3"),
        ({"expect": "0"}, "EXPECT=0: a number above 0"),
        ({"EXPECT": "nan"}, "EXPECT=nan: a number above 0"),
        ({"HITLIST_SIZE": "2.5"}, "HITLIST_SIZE=2.5: a whole number"),
        ({"HITLIST_SIZE": "0"}, "HITLIST_SIZE=0: at least 1"),
        ({"GAPCOSTS": "11"}, "GAPCOSTS=11: send two numbers"),
        ({"MATRIX": "PAM30", "MATRIX_NAME": "PAM70"}, "their values differ"),
        ({"PROGRAM": "blastn", "MATRIX": "PAM30"}, "MATRIX=PAM30 is for protein"),
        ({"NUCL_REWARD": "1"}, "NUCL_REWARD is for blastn"),
        ({"FILTER": "R"}, "FILTER=R is not available"),
        ({"GENETIC_CODE": "2"}, "GENETIC_CODE=2 has no meaning for blastp"),
        ({"PROGRAM": "tblastx", "GENETIC_CODE": "2"}, "GENETIC_CODE and DB_GENETIC_CODE differ"),
        ({"ENTREZ_QUERY": "txid9606[ORGN] OR txid10090[ORGN:noexp]"}, "include their descendants; leave :noexp out"),
        ({"ENTREZ_QUERY": "human[ORGN]"}, "choose organisms as txid9606[ORGN]"),
        ({"ENTREZ_QUERY": "txid1[ORGN] NOT txid2[ORGN]"}, "choose organisms as txid9606[ORGN]"),
        ({"COLOUR": "red"}, "there is no parameter COLOUR"),
        ({"program": "blastn"}, "PROGRAM is sent twice"),
    ],
)  # fmt: skip
def test_refusals_name_the_parameter(sent, message):
    with pytest.raises(InputError) as raised:
        options(**sent)
    assert message in str(raised.value)


def test_a_parameter_has_one_meaning():
    names = [*PUT, *GET - {"CMD"}, *WITHOUT_EFFECT, *REFUSED]
    assert len(names) == len(set(names))

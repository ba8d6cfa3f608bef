"""A library of families: what is kept of a file of models, and when the file is read again.

Expected values: what is reported by reading all models, whose scores are the same bytes.
"""

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import swsearch as package
from swsearch.domains import model_library
from swsearch.domains.model_library import ModelLibrary, kept_models
from swsearch.errors import InputError
from swsearch.folders import user_cache
from swsearch.query.hmm import read_families
from swsearch.scoring.matrix import named_matrix
from swsearch.service.domain_finder import check_families

DATA = Path(__file__).parents[2] / "data"
PROTEINS = DATA / "proteins.fasta.gz"
TEXT = gzip.decompress((DATA / "families.hmm.gz").read_bytes())
BLOSUM62 = named_matrix("BLOSUM62")


@pytest.fixture
def models(tmp_path, monkeypatch):
    """A file of two models, which is large enough to be kept; the second one has a blank line before it."""
    monkeypatch.setattr(model_library, "LEAST_BYTES", 1000)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "families.hmm"
    path.write_bytes(TEXT.replace(b"//\nHMMER3", b"//\n\nHMMER3"))
    return path


def kept():
    """The files of the cache."""
    return sorted(user_cache("models").glob("*"))


def read(path):
    """The queries of all models, and the complete models, as a library has them."""
    found = ModelLibrary([path], BLOSUM62)
    several = [(query, complete()) for query, complete in found.models()]
    assert (found.n_models, found.n_positions) == (len(several), sum(len(query) for query, _ in several))
    return several


def test_kept_scores_and_places_lead_to_the_same_models(models):
    expected = list(read_families(models, BLOSUM62))
    assert len(expected) == 2
    for state in ("read", "kept"):
        for family, (query, complete) in zip(expected, read(models), strict=True):
            assert query.header == complete.query.header == family.query.header
            for of_query in (query, complete.query):
                assert np.array_equal(of_query.codes, family.query.codes)
                assert np.array_equal(of_query.scores, family.query.scores)
            assert complete.thresholds == family.thresholds
            assert (complete.accession, complete.first_occupancy) == (family.accession, family.first_occupancy)
            assert np.array_equal(complete.model.transitions, family.model.transitions)
            assert complete.place == family.place
        assert len(kept()) == 1, state
        assert kept_models(models, BLOSUM62) is not None


@pytest.mark.parametrize(("identifier", "n_found"), [("OBG_NEIG2", 1), ("A8XL63_CAEBR", 0)])
def test_only_the_families_that_a_protein_may_have_are_read_again(models, tmp_path, monkeypatch, identifier, n_found):
    """The library has each of two related families thirty times; its copies overlap each other."""
    models.write_bytes(b"".join(TEXT.replace(b"NAME  ", b"NAME  %d_" % copy) for copy in range(30)))
    protein = tmp_path / "one.fa"
    with package.open_database(PROTEINS) as database:
        record = next(record for record in database if identifier in record.header)
    protein.write_text(f">{record.header}\n{record.letters}\n")

    def families():
        return [one.family for found in package.find_domains(protein, models, engine="cpu") for one in found.families]

    expected, places, read_family = families(), [], model_library.read_family
    monkeypatch.setattr(model_library, "read_families", None)
    monkeypatch.setattr(model_library, "read_family", lambda *given: places.append(given[1]) or read_family(*given))
    assert families() == expected
    assert (len(expected), len(places)) == (n_found, 60 * n_found)


@pytest.mark.parametrize("change", ["time", "content", "name", "matrix", "damage", "cut", "empty"])
def test_scores_of_another_state_are_not_used(models, change):
    read(models)
    (cache,) = kept()
    path, matrix = models, BLOSUM62
    if change == "time":
        os.utime(models, ns=(0, 1))
    elif change == "content":
        models.write_bytes(TEXT[: TEXT.index(b"//\n") + 3])
    elif change == "name":
        path = models.rename(models.with_name("other.hmm"))
    elif change == "matrix":
        matrix = named_matrix("BLOSUM45")
    else:
        content = cache.read_bytes()
        cache.write_bytes({"damage": b"PK" + content[2:][::-1], "cut": content[:5000], "empty": b""}[change])
    assert kept_models(path, matrix) is None
    n_models = len(list(ModelLibrary([path], matrix).models()))
    assert n_models == (1 if change == "content" else 2)
    assert kept_models(path, matrix) is not None
    assert len(kept()) == (2 if change == "name" else 1)


def test_what_is_not_the_text_of_a_file_is_not_kept(models, tmp_path):
    """An archive, lines with two characters at their end, a pipe, and a small file."""
    others = {"a.hmm.gz": gzip.compress(TEXT), "crlf.hmm": TEXT.replace(b"\n", b"\r\n")}
    for name, content in others.items():
        path = tmp_path / name
        path.write_bytes(content)
        assert [query.header for query, _ in read(path)] == [query.header for query, _ in read(models)]
        of_other = kept_models(path, BLOSUM62)
        assert of_other is None, name
    command = [sys.executable, "-m", "swsearch", "domains", str(PROTEINS), "-", "--format", "none"]
    before = kept()
    ended = subprocess.run([*command[:-1], "tsv", "--quiet"], input=TEXT, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert kept() == before


def test_two_models_of_one_name_are_refused(models, tmp_path):
    """By hand, before and after the scores are kept; hmmpress refuses two models of one name, too."""
    renamed, other, link = tmp_path / "renamed.hmm", tmp_path / "other.hmm", tmp_path / "link.hmm"
    renamed.write_bytes(TEXT.replace(b"NAME  ", b"NAME  x"))
    other.write_bytes(TEXT.replace(b"NAME  Obg", b"NAME  yObg"))
    link.symlink_to(models)
    both = tmp_path / "both.hmm"
    both.write_bytes(renamed.read_bytes() + TEXT + other.read_bytes())
    for _ in range(2):
        for paths, message in (
            ([models, models], f"{models} is named twice; its models would count twice: name each file once"),
            ([models, renamed, link], f"{link} is named twice"),
            ([models, renamed, other], f"{models} and {other} have a model 'EngB'; give one of them another name"),
            ([renamed, both], f"{renamed} and {both} have a model 'xObg'"),
            ([both], f"{both} has two models 'EngB'"),
        ):
            with pytest.raises(InputError, match=re.escape(message)):
                ModelLibrary(paths, BLOSUM62)
        with pytest.raises(InputError, match="is named twice"):
            check_families([str(models), str(models)])
        assert ModelLibrary([models, renamed], BLOSUM62).n_models == 4
        for path in (models, renamed, other):
            read(path)
        assert len(kept()) == 3


def test_a_small_file_is_not_kept(models, monkeypatch):
    monkeypatch.setattr(model_library, "LEAST_BYTES", len(models.read_bytes()) + 1)
    read(models)
    assert kept() == []


def test_a_cache_that_cannot_be_written_changes_nothing(models, monkeypatch, tmp_path):
    (tmp_path / "cache").write_text("a file in place of the folder")
    assert len(read(models)) == len(read(models)) == 2


def test_a_file_that_changes_between_the_readings_is_told(models):
    read(models)
    (first, complete), *_ = ModelLibrary([models], BLOSUM62).models()
    name = first.identifier.encode()
    models.write_bytes(models.read_bytes().replace(b"NAME  " + name, b"NAME  " + b"x" * len(name)))
    with pytest.raises(InputError, match=r"families\.hmm was changed while it was read"):
        complete()
    models.unlink()
    with pytest.raises(InputError, match=r"families\.hmm: No such file"):
        complete()

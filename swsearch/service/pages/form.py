"""The search form: fields made from the options of a search, errors beside fields, its submission, sequences to try.

The fields are rows of :data:`swsearch.options.SEARCH_OPTIONS`. Files of the server cannot be named in a form, and what
concerns the machine is the server's choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from starlette.datastructures import FormData, UploadFile

from swsearch.errors import InputError, SwSearchError
from swsearch.options import SCORING, SEARCH_FILES, SEARCH_OPTIONS, Option
from swsearch.scoring.matrix import matrix_names
from swsearch.search.options import SearchOptions
from swsearch.sequences.alphabet import DNA
from swsearch.sequences.fasta_text import without_layout
from swsearch.service.pages.searches import field_of
from swsearch.service.sent_text import plain_text
from swsearch.service.service import Service
from swsearch.service.submit import Submission

FIRST: Final = ("top", "evalue", "translate")
"""The options that are shown at once; the others are behind one fold."""

_OPTION: Final = re.compile(r"--([a-z]+(?:-[a-z]+)*)")
_AUTOMATIC: Final = "automatic"


@dataclass(frozen=True)
class FormField:
    """One option in a form; the form's parameter has the name of the option."""

    row: Option
    help: str
    group: str
    default: str
    """Value of an untouched field; empty if it is left to the program."""
    choices: tuple[tuple[str, str], ...] = ()
    """Values and their words."""

    def read(self, given: str) -> str | int | float | None:
        """The value of the option, or None if it is the default; raises InputError for any other text."""
        text = given.strip()
        if text in ("", self.default):
            return None
        if self.choices and text not in {value for value, _ in self.choices}:
            raise InputError("Choose one of the values of the list.")
        if self.row.type is bool:
            return text == "True"
        if self.row.type is int:
            if text in self.row.words:
                return text
            if re.fullmatch(r"[-+]?[0-9]{1,18}", text) is None:
                raise InputError("Give a whole number.")
            return int(text)
        if self.row.type is float:
            try:
                return float(text)
            except ValueError:
                raise InputError("Give a number, such as 10 or 1e-5.") from None
        return text


@cache
def form_fields() -> Mapping[str, FormField]:
    """All fields by the names of their options: those of :data:`FIRST`, then the others in the order of the table."""
    rows = [row for row in SEARCH_OPTIONS.values() if row.name not in SEARCH_FILES and row.name != "alphabet"]
    rows.insert([row.panel for row in rows].index(SCORING), SEARCH_OPTIONS["alphabet"])
    fields = {row.name: _field(row) for row in rows}
    return {name: fields[name] for name in (*FIRST, *fields)}


def _field(row: Option) -> FormField:
    choices = tuple(matrix_names()) if row.name == "matrix" else row.choices
    dna = matrix_names(DNA) if row.name == "matrix" else ()
    words = [(value, f"{value} (DNA)" if value in dna else value) for value in choices]
    if choices and row.default is None:
        words.insert(0, ("", _AUTOMATIC if row.name in ("alphabet", "matrix") else "no"))
    if row.type is bool:
        words = [("False", "no"), ("True", "yes")]
    shown = "" if row.default is None else _text(row.default)
    return FormField(row, in_form(_without_files(row)), in_form(row.panel), shown, tuple(words))


def _without_files(row: Option) -> str:
    """The help text of an option without the sentences about files of the machine that searches."""
    of_files = [SEARCH_OPTIONS[name].flags[0] for name in SEARCH_FILES] + ([" a file"] if row.file else [])
    return ". ".join(one for one in row.help.split(". ") if not any(words in one for words in of_files))


def in_form(text: str) -> str:
    """A text about options of the command line, with the labels of the form in place of their names.

    >>> in_form("See --gap-open.")
    'See “Gap opening”.'
    """

    def label(found: re.Match[str]) -> str:
        row = SEARCH_OPTIONS.get(found[1].replace("-", "_"))
        return found[0] if row is None else f"“{row.label}”"

    return _OPTION.sub(label, text)


def option_of(problem: str) -> str | None:
    """The option that a message is about, which begins with its name; None if it is about the queries."""
    found = _OPTION.match(problem)
    name = found[1].replace("-", "_") if found else ""
    return name if name in SEARCH_OPTIONS and name not in SEARCH_FILES else None


@dataclass
class SearchForm:
    """A form with its contents and errors."""

    sequences: str = ""
    databases: tuple[str, ...] = ()
    values: dict[str, str] = field(default_factory=dict)
    """The text of each option's field."""
    errors: dict[str, str] = field(default_factory=dict)
    """Messages by the name of their field, which may also be ``sequences``, ``databases`` or ``subjects``."""
    subjects: str = ""
    """Subjects that are searched, besides the chosen databases."""

    @classmethod
    def of(cls, sequences: str, databases: Sequence[str], options: Mapping[str, object]) -> SearchForm:
        """The form that would submit these options."""
        values = {name: _text(value) for name, value in options.items() if name in form_fields() and value is not None}
        return cls(sequences, tuple(databases), values)

    def value(self, name: str) -> str:
        """The text of a field: what was sent, or the default."""
        return self.values.get(name, form_fields()[name].default)

    @property
    def opens_fold(self) -> bool:
        """Whether an option behind the fold has a value of its own or an error."""
        hidden = ((name, one.default) for name, one in form_fields().items() if name not in FIRST)
        return any(name in self.errors or self.value(name).strip() not in ("", default) for name, default in hidden)

    def options(self) -> dict[str, str | int | float]:
        """The options that differ from their defaults; problems are added to :attr:`errors`."""
        given: dict[str, str | int | float] = {}
        for name, one in form_fields().items():
            try:
                value = one.read(self.values.get(name, ""))
                if value is not None:
                    one.row.check(value)
                    given[name] = value
            except InputError as error:
                self.add_error(name, error.on_command_line())
        if not self.errors:
            try:
                SearchOptions(**{name: value for name, value in given.items() if name != "alphabet"})  # type: ignore[arg-type]
            except SwSearchError as error:
                self.add_error(None, error.on_command_line())
        return given

    def add_error(self, name: str | None, problem: str) -> None:
        """Add a message to the field that it is about: ``name``, or the option that it begins with."""
        place = name or option_of(problem) or "sequences"
        # The field says what the message is about, where it begins with the option and its value alone.
        found = re.match(r"--[a-z-]+(?: (?:'[^']*'|\S+))?: (.*)", problem, re.S)
        if found is not None and option_of(problem) == place:
            problem = found[1][:1].upper() + found[1][1:]
        self.errors.setdefault(place, in_form(problem))


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- a form that was sent ---


async def read_form(sent: FormData) -> tuple[SearchForm, bytes]:
    """The form as it was sent, and the sequences: those of the file if there is one."""
    texts = {name: value for name, value in sent.multi_items() if isinstance(value, str)}
    names = tuple(value for name, value in sent.multi_items() if name == "databases" and isinstance(value, str))
    values = {name: text for name, text in texts.items() if name in form_fields()}
    form = SearchForm(texts.get("sequences", ""), names, values, subjects=texts.get("subjects", ""))
    sequences = form.sequences.encode()
    for _, value in sent.multi_items():
        if isinstance(value, UploadFile) and value.filename:
            sequences = await value.read()
    return form, sequences


def submit_form(
    service: Service, owner: str, form: SearchForm, sequences: bytes, options: dict[str, str | int | float]
) -> list[str]:
    """Search each chosen database; returns the keys of the searches. The first problem is added to the form."""
    keys: list[str] = []
    name, alphabet = "", options.pop("alphabet", None)
    queries_are = None if alphabet is None else str(alphabet)
    pasted = form.subjects
    subjects = [without_layout(pasted, has_headers=True) or pasted] if pasted.strip() else []
    try:
        sent_text = plain_text(sequences, service.settings.limits)
        text = without_layout(sent_text, has_headers=True) or sent_text
        for name, sent in [*((name, None) for name in form.databases), *(("", sent) for sent in subjects)]:
            submission = Submission(text, name, options, queries_are, subjects=sent)
            keys.append(service.submit(submission, owner)[0].key)
    except InputError as error:
        form.add_error(field_of(error, name, queries_are), error.on_command_line())
    return keys


# --- sequences to try ---


@dataclass(frozen=True)
class Example:
    """Sequences to try; the address of the form with them has their name."""

    name: str
    label: str
    alphabet: str
    fasta: str


_ENGB = """>sp|Q600K7|ENGB_MYCH2 Probable GTP-binding protein EngB OS=Mycoplasma hyopneumoniae (strain 232)
MVKCKLFFWLISWFLKVKNGEKVWKFLKSCPENCYSEPQFAFIGRSNVGKSTLINALANK
KIAKTSTKPGRTQLLNFYKNESEKLFVDLPGYGYAAVSKTKKHQIDRIIAGYFQKDQPIS
AVFLILDARVGFTNLDYIMIEYIIQQGFKLHILANKIDKTNQSTRAILLNQCKKLKLNCL
LISAKNKNNLSKLQELLE
"""
_OBG = """>sp|B4RQP4|OBG_NEIG2 GTPase Obg OS=Neisseria gonorrhoeae (strain NCCP11945)
MKFIDEAKIEVAAGKGGNGATSFRREKFVPRGGPDGGDGGKGGSVWAEADENTNTLVEYR
FVKRYQAKNGEKGHGSDRYGAGADDIVLKMPVGTLIRDLDTDEIVADLTYHGQRVCLAKG
GKGGLGNIHFKSSVNRAPKQSTPGEEGETRSLQLELKVLADVGLLGMPNAGKSTLITAVS
AARPKIANYPFTTLHPNLGVVRIDENHSFVMADIPGLIEGAAEGAGLGHRFLKHLSRTGL
LLHVVDLAPFDETVNPAEEALAIINELRKYDEELYGKPRWLVLNKLDMLDEEEARARTAA
FLEAVGWDYPEPDDRFQFDMETPRLFQISALTHQGTQELVHQINQYLAEKKRIEAEKAEAE
KAAANVEIIEQQPKTDTGVFKPE
"""
_LEGHEMOGLOBIN = """>leghemoglobin of the broad bean
MGAFTEKQEALVNSSYEAFKANVPQYSVVFYTSILEKAPAAKDLFSFLANGVDPTNPKLT
GHAEKLFALVRDSAGQLKASGTVVADAALGSVHAQKAVTDPQFVVVKEALLKTIKAAVGD
KWSDELSRAWEVAYDELAAAIKKA
"""
_READ = """>r1 a read of phage lambda with errors
TGAATGCGAACTCCGGGACGCTCAGTAATGTGACGATAGCTGAAAACTGTACGATAAACNGTACGCTGAGGGCAG
AAAAAATCGTCGGGGACATTNTAAAGGCGGCGAGCGCGGCTTTTCCG
"""

EXAMPLES: Final = (
    Example("protein", "a protein", "protein", _ENGB),
    Example("dna", "a DNA read", "dna", _READ),
    Example("several", "several proteins", "protein", _ENGB + _OBG + _LEGHEMOGLOBIN),
)

"""No output of any command replaces a file that the command was given or opens.

Commands, options and examples are those of the command line itself, so a new command is tested without a word here.
Expected by hand: the command fails, and no file of the folder has changed.
"""

import gzip
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from swsearch.cli.app import main
from swsearch.cli.command import all_commands
from swsearch.cli.options import NEW_DATABASE, OUTPUT_FILE, NamedFile

COMMANDS = all_commands()
LETTERS = "MKVLAAGIVGLLLAQWERTYHHEDKNRSTPACFWMKVLAAGIVGLLLAQWERTY"
PROTEINS = "".join(
    f">{name}\n{LETTERS[start:]}{LETTERS[:start]}\n" for start, name in enumerate(("P02232", "NP_000537.3", "Q600K7"))
)
REFUSALS = "read by the same command|is the store|for something else, too|is not a log of swsearch"
OPENED: list[list[str]] = []
"""The files that this process opens, in the last list while there is one."""


def _note(event: str, arguments: tuple[object, ...]) -> None:
    if OPENED and event in ("open", "sqlite3.connect") and isinstance(arguments[0], (str, bytes)):
        OPENED[-1].append(os.fsdecode(arguments[0]))


sys.addaudithook(_note)


def named(command):
    """The parameters of a command that name files, stores and databases."""
    return [one for one in COMMANDS[command].params if isinstance(one.type, NamedFile)]


def outputs(command):
    """The outputs of a command, with its log and its store."""
    return [one for one in named(command) if one.type.is_written]


def results(command):
    """The outputs that a command makes anew."""
    return [one for one in outputs(command) if one.type in (OUTPUT_FILE, NEW_DATABASE) and one.name != "log"]


def option(parameter):
    return max(parameter.opts, key=len)


def snapshot(folder):
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file() and "home" not in path.parts}


def refused(swsearch, folder, words):
    """The error of a command that must change nothing."""
    before = snapshot(folder)
    outcome = swsearch(*words)
    assert outcome.code in (1, 2), words
    assert snapshot(folder) == before, words
    return outcome.error


@pytest.mark.parametrize("command", [name for name in COMMANDS if outputs(name)])
def test_no_output_is_a_file_that_a_command_line_names(swsearch, monkeypatch, tmp_path, command):
    """They are refused when the command line is read, so that their content does not matter."""
    (tmp_path / "config.toml").write_text("threads = 1\n")
    monkeypatch.setenv("SWSEARCH_CONFIG", str(tmp_path / "config.toml"))
    required = [one for one in COMMANDS[command].params if one.param_type_name == "argument" and one.required]
    read = [one for one in named(command) if not one.type.is_written]
    for one in [*required, *read]:
        (tmp_path / f"{one.name}.in").write_text("")
    for output in outputs(command):
        for one in [None, *read]:
            target = "config.toml" if one is None else f"{one.name}.in"
            words = [*command.split(), *(f"{argument.name}.in" for argument in required)]
            if one is not None and one not in required:
                words += [target] if one.param_type_name == "argument" else [option(one), target]
            elsewhere = [
                word
                for other in outputs(command)
                if other.required and other is not output
                for word in (option(other), f"{other.name}.new")
            ]
            error = refused(swsearch, tmp_path, [*words, *elsewhere, option(output), target])
            assert re.search(REFUSALS, error), error


def examples(command):
    """The examples in the help of a command that name files and no server, without their outputs."""
    values = {name: not one.is_flag for one in named(command) if hasattr(one, "is_flag") for name in one.opts}
    written = {name for one in outputs(command) for name in one.opts}
    for line in re.findall(r"Example: swsearch (.+)", COMMANDS[command].help or ""):
        words = []
        left = shlex.split(line)
        while left:
            word = left.pop(0)
            if word in written and values[word]:
                left.pop(0)
            else:
                words.append(word)
        takes_files = any(one.param_type_name == "argument" for one in COMMANDS[command].params)
        if takes_files and "://" not in line and "--blastdb" not in line:
            yield words


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a store of one run."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "queries.fasta").write_text(PROTEINS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for line in (
            "index queries.fasta -o proteins.db",
            f"query {folder}/queries.fasta {folder}/proteins.db --store hits.sqlite -o /dev/null",
        ):
            assert main([*line.split(), "--quiet"]) == 0
    return folder


def make_files(words, made):
    """Make the files that an example names."""
    for name in words:
        if name.endswith(".db") and not Path(name).exists():
            shutil.copytree(made / "proteins.db", name)
            if len(list(Path().glob("*.db"))) > 1:  # databases that are searched together are different ones
                (Path("more.fasta")).write_text(f">{name}\n{LETTERS}\n")
                assert main(["db", "add", name, "more.fasta", "--quiet"]) == 0
        elif name.endswith((".fasta", ".faa", ".fa")):
            Path(name).write_text(PROTEINS.replace(">P02232", f">{name}"))
        elif name.endswith(".gz") and ".fasta" in name:
            Path(name).write_bytes(gzip.compress(PROTEINS.encode()))
        elif name.endswith(".txt"):
            Path(name).write_text("P02232\n")


@pytest.mark.parametrize("command", [name for name in COMMANDS if results(name)])
def test_no_output_is_a_file_that_a_command_opens(swsearch, monkeypatch, tmp_path, made, command):
    """The files are those that the first example of its help opens when it works."""
    shutil.copy(made / "hits.sqlite", tmp_path)
    monkeypatch.setenv("SWSEARCH_STORE", str(tmp_path / "hits.sqlite"))
    monkeypatch.setenv("SWSEARCH_CACHE", str(tmp_path / "home"))
    (tmp_path / "downloads.toml").touch()
    monkeypatch.setenv("SWSEARCH_DOWNLOADS", str(tmp_path / "downloads.toml"))
    elsewhere = [
        word
        for one in outputs(command)
        if one.required and one.type is NEW_DATABASE
        for word in (option(one), "made.db")
    ]
    for words in examples(command):
        make_files(words, made)
        OPENED.append([])
        outcome = swsearch(*words, *elsewhere)
        opened = OPENED.pop()
        if outcome.code == 0:
            break
    else:
        pytest.skip("no example reads files and works without other programs")
    shutil.rmtree(tmp_path / "made.db", ignore_errors=True)
    paths = sorted({Path(path).resolve() for path in opened if tmp_path in Path(path).resolve().parents})
    read = [path for path in paths if path.is_file() and "home" not in path.parts and "made.db" not in path.parts]
    in_databases = [path for path in read if path.name.endswith(".bin")]
    targets = [path for path in read if path not in in_databases[1:]]
    for output in results(command):
        others = [] if output.required else elsewhere
        for target in targets:
            refused(swsearch, tmp_path, [*words, *others, option(output), target])
    assert targets

#!/bin/sh
# Install Snakemake, which the test of its example runs, into a virtual environment of its own (about 140 MB): most of its
# 56 packages are needed by nothing else. Without it, that test fails.
# Usage: install_snakemake.sh PYTHON FOLDER
set -eu
[ -x "$2/bin/snakemake" ] && exit 0
{
    "$1" -m venv "$2" &&
        "$2/bin/pip" install --quiet --disable-pip-version-check --no-compile 'snakemake>=9,<10'
} || printf 'swsearch: the test that needs snakemake will fail\n' >&2

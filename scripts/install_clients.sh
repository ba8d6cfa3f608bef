#!/bin/sh
# Install the clients of other servers that the tests of the service's protocols run unmodified: ColabFold and Boltz, from
# PyPI (less than 1 MB together). Their dependencies (JAX, PyTorch) are left out: the functions that talk to servers need
# none of them, nor the Python versions that the rest of Boltz is limited to.
# Also gffutils and pafpy, which read the formats gff3 and paf, with their dependencies (2 MB).
# Tests whose client is missing fail (tests/peers.py).
# Usage: install_clients.sh PIP
set -eu
for client in 'colabfold>=1.6' 'boltz>=2.2'; do
    "$1" install --quiet --disable-pip-version-check --no-compile --no-deps --only-binary :all: --ignore-requires-python "$client" ||
        printf 'swsearch: tests that need %s will fail\n' "$client" >&2
done
for reader in 'gffutils>=0.13' 'pafpy>=0.2'; do
    "$1" install --quiet --disable-pip-version-check --no-compile "$reader" ||
        printf 'swsearch: tests that need %s will fail\n' "$reader" >&2
done

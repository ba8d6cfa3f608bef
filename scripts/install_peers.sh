#!/bin/sh
# Install the Debian packages of the programs that `make test-all` uses, if this user has the permission: oracles, readers
# of reports, PostgreSQL's server, proxies, Slurm, sshfs, and the headless shell of the browser chromium (100 MB).
# tests/peers.py lists them; a test whose program is missing fails.
# Usage: install_peers.sh PYTHON
set -eu
missing=$("$1" -m tests.peers)
[ -n "$missing" ] || exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    apt-get update -qq
    # shellcheck disable=SC2086  # a list of packages
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null && exit 0
fi
printf 'swsearch: tests will fail without these packages: apt-get install %s\n' "$missing" >&2

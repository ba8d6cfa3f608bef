#!/bin/sh
# Create the virtual environment at the path in the first argument. On Debian, the modules that this requires (venv, the
# Python headers for the native part) are separate packages: the script installs them if this user has the permission,
# and otherwise lists them in one error message.
set -eu
venv=$1
python=${PYTHON:-python3}

fail() {
    printf 'swsearch: error: %s\n' "$1" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || fail "there is no $python; install Python 3.11 or newer"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$python is $("$python" -V 2>&1), but Python 3.11 or newer is needed; name one with make PYTHON=…"

version=$("$python" -c 'import sys; print(f"{sys.version_info[0]}.{sys.version_info[1]}")')
missing=
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="python$version-venv"
"$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))' ||
    missing="$missing python$version-dev"
command -v "${CXX:-g++}" >/dev/null 2>&1 || missing="$missing g++"

if [ -n "$missing" ]; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        apt-get update -qq
        # shellcheck disable=SC2086  # a list of packages
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $missing >/dev/null
    else
        fail "install first: apt-get install $missing"
    fi
fi

rm -rf "$venv"
"$python" -m venv "$venv"

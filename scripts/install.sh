#!/bin/sh
# Makes .venv and installs the project into it; $1: extras, such as "[test]". For demo.sh and test.sh.
set -eu
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3}
"$PYTHON" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || {
    echo "Python 3.11 to 3.13 is needed; this is $("$PYTHON" --version). Set PYTHON to another one." >&2
    exit 1
}
[ -x .venv/bin/python ] || "$PYTHON" -m venv .venv
# The first time takes minutes, in which pip says what it does; later there is nothing to say.
quiet=
[ -e .venv/bin/tf-transformer ] && quiet=--quiet
.venv/bin/python -m pip install $quiet --disable-pip-version-check --editable ".${1:-}"

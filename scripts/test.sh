#!/bin/sh
# Linters and tests. --long adds the long tests: real text, fault injection, load, fuzzing.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
    "") chosen="not long" ;;
    --long) chosen="long or not long" ;;
    *) echo "usage: sh scripts/test.sh [--long]" >&2; exit 2 ;;
esac
sh scripts/install.sh "[test]"
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy

tests() {
    .venv/bin/python -m pytest -q -m "$chosen" --numprocesses 2 --dist worksteal --durations=10 "$@"
}

# In three parts, each in processes of its own: TensorFlow does not give back the memory of SavedModels that were loaded.
tests tests/serving
tests tests/integration tests/training tests/translation
tests tests --ignore=tests/serving --ignore=tests/integration --ignore=tests/training --ignore=tests/translation

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
# LiteRT.js, for the export for browsers. Its tests are skipped where there is no npm, or no registry; no other failure is.
if ! command -v npm > /dev/null; then
    echo "There is no npm: most tests of the export for browsers will be skipped." >&2
elif ! npm ls --prefix web > /dev/null 2>&1 && ! npm ci --prefix web --silent; then
    ! npm ping --silent > /dev/null 2>&1 || exit 1
    echo "npm's registry is out of reach: most tests of the export for browsers will be skipped." >&2
fi
.venv/bin/ruff check .
.venv/bin/ruff format --check .
.venv/bin/mypy

# Many processes import the project and its tests: they compile them once.
unset PYTHONDONTWRITEBYTECODE
# What tests train or export for each other is made once for all three parts.
MADE_ONCE=$(mktemp -d)
trap 'rm -rf "$MADE_ONCE"' EXIT
export MADE_ONCE
failed=0
tests() {
    .venv/bin/python -m pytest -q -m "$chosen" --numprocesses 2 --dist worksteal --durations=10 "$@" || failed=1
}

# In three parts, each in processes of its own: TensorFlow does not give back the memory of SavedModels that were loaded.
tests tests/integration tests/training tests/translation
tests tests/serving
tests tests --ignore=tests/serving --ignore=tests/integration --ignore=tests/training --ignore=tests/translation
exit $failed

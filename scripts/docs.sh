#!/bin/sh
# Builds the site from README.md and docs/ into build/site; warnings are errors. --serve shows it at localhost:8000.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
    "" | --serve) ;;
    *) echo "usage: sh scripts/docs.sh [--serve]" >&2; exit 2 ;;
esac
sh scripts/install.sh "[docs]"
.venv/bin/python scripts/site_source.py build/site_source
.venv/bin/zensical build --clean --strict
if [ "${1:-}" = --serve ]; then
    exec .venv/bin/python -m http.server 8000 --directory build/site --bind 127.0.0.1
fi
echo "built: build/site/index.html"

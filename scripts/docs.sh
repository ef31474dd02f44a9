#!/bin/sh
# Builds the site from README.md and docs/ into build/site; warnings are errors. --serve shows it at localhost:8000.
# The model of the demo translates on it. It is trained first if the demo has not been run: 3 minutes. That needs npm.
set -eu
cd "$(dirname "$0")/.."
case ${1:-} in
    "" | --serve) ;;
    *) echo "usage: sh scripts/docs.sh [--serve]" >&2; exit 2 ;;
esac
sh scripts/install.sh "[docs]"
npm ls --prefix web > /dev/null 2>&1 || npm ci --prefix web
if [ ! -d runs/toy_en_de ]; then
    .venv/bin/tf-transformer train --data toy --config scripts/toy.toml --run-dir runs/toy_en_de
fi
.venv/bin/python scripts/site_source.py build/site_source
.venv/bin/zensical build --clean --strict
.venv/bin/tf-transformer export --format web --run-dir runs/toy_en_de --output build/site/toy_en_de
if [ "${1:-}" = --serve ]; then
    exec .venv/bin/python -m http.server 8000 --directory build/site --bind 127.0.0.1
fi
echo "built: build/site/index.html"

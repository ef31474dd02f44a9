#!/bin/sh
# From a bare clone to an exported English-to-German translator, by the commands that you would type.
set -eu
cd "$(dirname "$0")/.."
echo "Installing into .venv ..."
sh scripts/install.sh
PATH="$PWD/.venv/bin:$PATH"

run() {
    echo
    echo "\$ $*"
    "$@"
}

rm -rf saved_models/toy_en_de # of an earlier demo
run tf-transformer train --data toy --config scripts/toy.toml --run-dir runs/toy_en_de --overwrite
run tf-transformer evaluate --model runs/toy_en_de --split test --examples 5
run tf-transformer export --run-dir runs/toy_en_de --output saved_models/toy_en_de/1
echo
echo "\$ echo 'The old woman gives the small child a red book.' | tf-transformer translate --model saved_models/toy_en_de/1"
echo 'The old woman gives the small child a red book.' | tf-transformer translate --model saved_models/toy_en_de/1
cat << 'END'

Translate sentences of your own:
    .venv/bin/tf-transformer translate --model saved_models/toy_en_de/1
See n-best translations, attention and the tree of the search in a browser, at http://127.0.0.1:8501:
    .venv/bin/pip install -e '.[serve]' && .venv/bin/tf-transformer serve saved_models/toy_en_de
END

#!/bin/sh
# Table 3 of the paper, scaled down to Multi30k on a CPU; table3.py has the rows. From the project's root:
#   sh scripts/recipes/table3.sh [DATA [--output DIR] [--updates N] [--rows ROW ...] [options of `tf-transformer train`]]
# DATA is the folder of lowercased, tokenised text. It writes table.md and table.svg, and goes on where it was stopped.
set -eu
if [ -d .venv/bin ]; then PATH="$PWD/.venv/bin:$PATH"; fi
data=${1:-../shared/data/multi30k/tok}
[ $# = 0 ] || shift
exec python "$(dirname "$0")/table3.py" "$data" "$@"

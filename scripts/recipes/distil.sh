#!/bin/sh
# Sequence-level distillation (Kim and Rush 2016): a teacher translates the training text, and a student with one decoder
# layer, which decodes faster, learns from these translations and the original ones. From the project's root:
#   sh scripts/recipes/distil.sh DATA SOURCE TARGET TEACHER [TEACHER ...]
# DATA is a folder with train, val and their languages; several teachers, which are run directories with the same
# vocabularies, translate as an ensemble. What was stopped goes on. These variables change what it does:
#   STUDENT  the student's run directory (runs/student)
#   LINES    lines that are translated before they are kept (5000)
#   OPTIONS  further options of `tf-transformer train`
set -eu
if [ -d .venv/bin ]; then PATH="$PWD/.venv/bin:$PATH"; fi
data=$1 source=$2 target=$3
shift 3
teachers=$* student=${STUDENT:-runs/student}
translated=$student.text
. "$(dirname "$0")/translated.sh"
# shellcheck disable=SC2086
tf-transformer train --config "$(dirname "$0")/distil.toml" --data "$data" --data "$translated" --source "$source" \
    --target "$target" --run-dir "$student" ${OPTIONS:-}

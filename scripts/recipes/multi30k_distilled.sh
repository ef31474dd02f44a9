#!/bin/sh
# Multi30k by a student of translated text. A teacher is trained on the original text and translates its sources; a student
# of the same size learns from these translations and the original ones. From the project's root:
#   sh scripts/recipes/multi30k_distilled.sh DATA SOURCE TARGET [options of `tf-transformer train` for both models]
# DATA is .../tok or .../raw, as in multi30k_en_de.sh; the settings are in multi30k_distilled.toml. What was stopped goes
# on. These variables change what it does:
#   TEACHER  the teacher's run directory (runs/NAME_teacher); students of other seeds take over a finished one
#   RUN_DIR  the student's run directory (runs/NAME)
set -eu
if [ -d .venv/bin ]; then PATH="$PWD/.venv/bin:$PATH"; fi
data=$1 source=$2 target=$3
shift 3
name=multi30k_$(basename "$data")_${source}_${target}_distilled config=multi30k_distilled.toml
last=10 splits="val test_2016_flickr"

teacher=${TEACHER:-runs/${name}_teacher}
teachers=$teacher/averaged translated=$teacher.text
if [ ! -d "$teachers" ]; then
    tf-transformer train --config "$(dirname "$0")/$config" --data "$data" --source "$source" --target "$target" \
        --run-dir "$teacher" "$@"
    tf-transformer average --run-dir "$teacher" --last "$last" --output "$teachers"
fi
. "$(dirname "$0")/translated.sh"
set -- --data "$translated" "$@"
. "$(dirname "$0")/recipe.sh"

#!/bin/sh
# Draws the pictures of README.md and docs/ again, with the model that scripts/demo.sh has trained.
set -eu
cd "$(dirname "$0")/.."
sh scripts/install.sh "[plots]"
PATH="$PWD/.venv/bin:$PATH"
run=${1:-runs/toy_en_de}

tf-transformer plot attention --model "$run" --text "The old woman gives the small child a red book." --layer 3 \
    --output docs/images/attention.svg
for which in encoder decoder; do
    tf-transformer plot attention --model "$run" --text "The old woman gives the small child a red book." --layer 1 \
        --which "$which" --output "docs/images/attention_$which.svg"
done
for which in cross encoder decoder; do
    tf-transformer plot attention --model "$run" --text "The old woman gives the small child a red book." --layer 2 \
        --which "$which" --output "docs/images/attention_${which}_2.svg"
done
tf-transformer plot beam --model "$run" --text "The old woman sees a dog." --beam-size 3 --output docs/images/beam.svg
tf-transformer plot architecture --preset base --output docs/images/architecture.svg
tf-transformer plot history --run-dir "$run" --output docs/images/history.svg
tf-transformer plot positions --output docs/images/positions.svg
tf-transformer plot masks --output docs/images/masks.svg
tf-transformer plot schedule --output docs/images/schedule.svg
tf-transformer plot label-smoothing --output docs/images/label_smoothing.svg
tf-transformer plot lengths --data "$run" --output docs/images/lengths.svg

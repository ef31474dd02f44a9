# What all recipes do: train, average, evaluate, export, by the commands that you would type. A recipe reads it in, having
# set config, name, data, source, target, last (checkpoints to average) and splits (to evaluate); where it has set
# prepared, the text is prepared into that folder first. What was stopped goes on.
# RUN_DIR names another run directory than runs/NAME, such as one for another --seed.
if [ -d .venv/bin ]; then PATH="$PWD/.venv/bin:$PATH"; fi
run_dir=${RUN_DIR:-runs/$name}
export_dir=saved_models/$(basename "$run_dir")/1
# Tokenised text is scored as it is, other text by sacreBLEU's default.
case $(basename "$data") in tok) tokenize=none ;; *) tokenize=13a ;; esac

run() {
    echo
    echo "\$ $*"
    "$@"
}

if [ -n "${prepared:-}" ]; then
    [ -d "$prepared" ] || run tf-transformer prepare --config "$(dirname "$0")/$config" --data "$data" \
        --source "$source" --target "$target" --output "$prepared"
    run tf-transformer train --config "$(dirname "$0")/$config" --data "$prepared" --run-dir "$run_dir" "$@"
else
    run tf-transformer train --config "$(dirname "$0")/$config" --data "$data" --source "$source" --target "$target" \
        --run-dir "$run_dir" "$@"
fi
rm -rf "$run_dir/averaged" # of an earlier time
run tf-transformer average --run-dir "$run_dir" --last "$last" --output "$run_dir/averaged"
for split in $splits; do
    run tf-transformer evaluate --model "$run_dir/averaged" --data "$data" --split "$split" --tokenize "$tokenize" \
        --output "$run_dir/$split.$target" --json
done
rm -rf "$export_dir"
run tf-transformer export --run-dir "$run_dir/averaged" --output "$export_dir"

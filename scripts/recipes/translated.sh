# The training text as teachers translate it. A recipe reads this in, having set data, source, target, teachers (run
# directories with the same vocabularies, which translate as an ensemble) and translated, the folder for the text. The
# text is translated in parts of LINES lines (5000), and each is kept, so that what was stopped goes on.
models=
for teacher in $teachers; do models="$models --model $teacher"; done
parts=$translated.parts
mkdir -p "$parts" "$translated"
# Parts of other text, or by other teachers, must not be taken for those of these.
made_of=$(for teacher in $teachers; do cat "$teacher/config.json" && ls "$teacher/checkpoints"; done |
    cat - "$data/train.$source" | cksum)
if [ ! -e "$parts/made_of" ]; then
    [ ! -e "$parts/source.aaaa" ] || echo "taking the translations in $parts for those of this text and these teachers" >&2
    echo "$made_of" > "$parts/made_of"
fi
if [ "$(cat "$parts/made_of")" != "$made_of" ]; then
    echo "$parts holds translations of other text or by other teachers: remove it and $translated, or choose others" >&2
    exit 2
fi
[ -e "$parts/source.aaaa" ] || split -l "${LINES:-5000}" -a 4 "$data/train.$source" "$parts/source."
for part in "$parts"/source.*; do
    translation=$parts/target.${part##*.}
    # shellcheck disable=SC2086 # one word for each teacher
    [ -e "$translation" ] || tf-transformer translate $models --input "$part" --output "$translation"
done
cat "$parts"/source.* > "$translated/train.$source"
cat "$parts"/target.* > "$translated/train.$target"

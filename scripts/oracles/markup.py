"""How often `--keep-markup` puts a tag around the right word, where a dictionary knows the word's translation.

    python scripts/oracles/markup.py --model RUN --data FOLDER [--sentences 500]

The data are Multi30k, `test_2016_flickr.en` and `.de`. A tag is put around one word of the dictionary at a time, if it
is there once. What the model translates otherwise than the dictionary says is not counted.
"""

import argparse
import re
import subprocess
from pathlib import Path

TRANSLATIONS = """
dog hund, dogs hund, man mann, woman frau, women frau, girl mädchen, girls mädchen, boy junge, boys jung, child kind,
children kind, baby baby, horse pferd, red rot, blue blau, white weiß, black schwarz, green grün, yellow gelb, two zwei,
three drei, four vier, water wasser, snow schnee, shirt hemd shirt, hat hut mütze, street straße, ball ball, car auto,
bike rad, bicycle rad, beach strand, table tisch, grass gras rasen, young jung, old alt, small klein, large groß,
little klein, group gruppe, people leute mensch person, tree baum, park park, wall wand mauer, guitar gitarre
"""
KNOWN = {word: stems for word, *stems in (entry.split() for entry in TRANSLATIONS.replace("\n", " ").split(","))}


def main() -> None:
    """Translate and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=500, help="(default: %(default)s)")
    options = parser.parse_args()
    sentences = (options.data / "test_2016_flickr.en").read_text().splitlines()[: options.sentences]
    tagged = [
        (word, f"{sentence[: match.start()]}<b>{match[0]}</b>{sentence[match.end() :]}")
        for sentence in sentences
        for match in re.finditer(r"\w+", sentence)
        if (word := match[0].lower()) in KNOWN and len(re.findall(rf"\b{word}\b", sentence, re.IGNORECASE)) == 1
    ]
    command = ["tf-transformer", "translate", "--model", options.model, "--keep-markup"]
    text = "\n".join(text for _, text in tagged)
    found = subprocess.run(command, input=text, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    counts = {"exactly the word": 0, "the word and others": 0, "other words": 0}
    for (word, _), translation in zip(tagged, found, strict=True):
        is_right = re.compile("|".join(KNOWN[word]), re.IGNORECASE)
        words = [text for text in re.sub(r"</?b>", "", translation).split() if is_right.search(text)]
        if len(words) == 1:
            inside = re.findall(r"<b>(.*)</b>", translation)[0].split()
            if words[0] not in inside:
                counts["other words"] += 1
            else:
                counts["exactly the word" if len(inside) == 1 else "the word and others"] += 1
    total = sum(counts.values())
    print(f"{len(tagged)} tags, {total} of them on words that were translated as the dictionary says")
    for name, count in counts.items():
        print(f"{name}: {count} ({count / total:.1%})")


if __name__ == "__main__":
    main()

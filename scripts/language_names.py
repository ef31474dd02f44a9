"""Write tf_transformer/data/corpora/language_names.txt: what the languages of headers are called in all of them.

The names are those of Unicode's CLDR, as langcodes has them (the extra `serve`).
"""

import langcodes

from tf_transformer.data.corpora.languages import NAMES_FILE, names_of_languages

ALSO = ("nn", "pt-PT", "sr-Latn", "zh-Hant")
"""What names are written in besides the languages themselves."""


def main() -> None:
    """Write the names that are there, and those of CLDR after them."""
    there = names_of_languages()
    lines = [line for line in NAMES_FILE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    for code, names in there.items():
        of_cldr = [langcodes.get(code).language_name(language).casefold() for language in (*there, *ALSO)]
        lines.append("\t".join([code, *dict.fromkeys((*names, *of_cldr))]))
    NAMES_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()

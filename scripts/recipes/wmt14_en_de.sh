#!/bin/sh
# WMT14, English to German, as in the paper (5 and 6.1); the settings are in wmt14_en_de.toml. From the project's root:
#   sh scripts/recipes/wmt14_en_de.sh [DATA [options of `tf-transformer train`]]
# DATA may be a folder of train, val and test files instead of the TFDS dataset, which is downloaded at first. The text is
# prepared once, into prepared/wmt14_en_de, or the folder that PREPARED names; other runs train on it as well.
set -eu
data=${1:-tfds:wmt14_translate/de-en}
[ $# = 0 ] || shift
source=en target=de name=wmt14_en_de config=wmt14_en_de.toml last=5 splits=test
prepared=${PREPARED:-prepared/wmt14_en_de}
. "$(dirname "$0")/recipe.sh"

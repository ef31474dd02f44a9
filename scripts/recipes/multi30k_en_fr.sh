#!/bin/sh
# Multi30k, English to French; the settings are in multi30k.toml. From the project's root:
#   sh scripts/recipes/multi30k_en_fr.sh [DATA [options of `tf-transformer train`]]
# DATA is the folder of lowercased, tokenised text that papers report (.../tok), or of the text as it is written (.../raw).
set -eu
data=${1:-../shared/data/multi30k/tok}
[ $# = 0 ] || shift
source=en target=fr name=multi30k_$(basename "$data")_en_fr config=multi30k.toml last=10 splits="val test_2016_flickr"
. "$(dirname "$0")/recipe.sh"

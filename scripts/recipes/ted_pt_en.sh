#!/bin/sh
# TED talks, Portuguese to English, the task of TensorFlow's tutorial; the settings are in ted_pt_en.toml. From the
# project's root:
#   sh scripts/recipes/ted_pt_en.sh [DATA [options of `tf-transformer train`]]
# DATA may be a folder of train, val and test files instead of the TFDS dataset, which is downloaded at first.
set -eu
data=${1:-tfds:ted_hrlr_translate/pt_to_en}
[ $# = 0 ] || shift
source=pt target=en name=ted_pt_en config=ted_pt_en.toml last=5 splits=test
. "$(dirname "$0")/recipe.sh"

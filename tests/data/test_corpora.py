"""Tests of reading pairs: folders, .tsv files, TensorFlow Datasets and the corpora that are built in."""

import dataclasses
import gzip
import math
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tf_transformer.config import DataConfig
from tf_transformer.data import Pairs, read
from tf_transformer.data.chunks import StringPairs
from tf_transformer.data.corpora import open_corpus, validation_split
from tf_transformer.data.corpora.copy_task import LENGTH, SYMBOLS
from tf_transformer.data.corpora.drawn import SPLITS
from tf_transformer.data.corpora.tsv import TsvLines
from tf_transformer.data.pairs import escaped
from tf_transformer.errors import InputError

ODD = "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\rh\x00i \ufeff"
"""Characters that `str.splitlines` or other tools take for ends of lines, and more that must stay."""


def write(path: Path, raw: bytes | str) -> Path:
    raw = raw.encode() if isinstance(raw, str) else raw
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def folder(tmp_path: Path, **files: bytes | str) -> DataConfig:
    """Write files named SPLIT_LANG or SPLIT_LANG_gz, and say that they are the corpus."""
    for name, raw in files.items():
        write(tmp_path / "corpus" / name.replace("_", "."), raw)
    return DataConfig(corpus=str(tmp_path / "corpus"), source="en", target="de")


def message(data: DataConfig, split: str = "train") -> str:
    with pytest.raises(InputError) as error:
        read(data, split)
    return str(error.value)


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\ntwo", ["one", "two"]),
        ("one\r\ntwo\r\n", ["one", "two"]),
        ("\ufeffone\n", ["one"]),
        ("\n\none\n\n", ["", "", "one", ""]),
        (f"{ODD}\ntwo\n", [ODD, "two"]),
        (" one \n\ttwo\n", [" one ", "\ttwo"]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_a_line_feed_ends_a_line_and_nothing_else_does(
    tmp_path: Path, raw: str, lines: list[str], packed: bool
) -> None:
    name = "train_en_gz" if packed else "train_en"
    targets = [str(i) for i in range(len(lines))]
    data = folder(tmp_path, **{name: raw, "train_de": "".join(f"{line}\n" for line in targets)})
    assert read(data, "train") == Pairs(lines, targets)


def test_splits_are_what_both_languages_have(tmp_path: Path) -> None:
    data = folder(tmp_path, train_en="a\n", train_de_gz="b\n", dev_en="c\n", dev_de="d\n", test_en="e\n", x_fr="f\n")
    assert open_corpus(data).splits() == ("dev", "train")
    assert read(data, "dev") == Pairs(["c"], ["d"])
    assert "test.de is missing beside" in message(data, "test")
    assert "unknown split 'trian'" in message(data, "trian") and "did you mean 'train'" in message(data, "trian")


def test_source_and_target_may_be_swapped(tmp_path: Path) -> None:
    folder(tmp_path, train_en="a\n", train_de="b\n")
    data = DataConfig(corpus=str(tmp_path / "corpus"), source="de", target="en")
    assert read(data, "train") == Pairs(["b"], ["a"])


@pytest.mark.parametrize("name", ["val", "valid", "validation", "dev"])
def test_the_validation_split_has_a_usual_name(tmp_path: Path, name: str) -> None:
    data = folder(tmp_path, **{f"{split}_{lang}": "a\n" for split in ("train", "zzz", name) for lang in ("en", "de")})
    assert validation_split(data) == name


def test_the_validation_split_may_be_named(tmp_path: Path) -> None:
    data = folder(tmp_path, train_en="a\n", train_de="b\n")
    with pytest.raises(InputError, match="no split to validate on.*Received: train"):
        validation_split(data)
    assert validation_split(DataConfig(corpus="toy", validation_split="test")) == "test"


@pytest.mark.parametrize(
    ("files", "parts"),
    [
        ({"train_en": "a\nb\n", "train_de": "a\n"}, ["train.en", "train.de", "same number of lines", "2 and 1"]),
        ({"train_en": "a\n", "train_de": "\n\n\n"}, ["1 and 3"]),
        ({"train_en": b"a\nb\n\xff\n", "train_de": "a\nb\nc\n"}, ["train.en, line 3: not UTF-8"]),
        ({"train_en": "a\n", "train_de_gz": b"\xc3"}, ["train.de.gz, line 1: not UTF-8"]),
        ({"train_en": "", "train_de": ""}, ["has no pair in split 'train'"]),
        ({"train_en": "a\n", "val_de": "a\n"}, ["train.de is missing beside", "train.en"]),
        ({"train_de": "a\n", "val_en": "a\n"}, ["train.en is missing beside", "train.de"]),
        ({"train_en": "a\n", "train_fr": "a\n"}, ["unknown language 'de'", "corpus", "en, fr"]),
        ({"val_en": "a\n", "val_de": "a\n"}, ["unknown split 'train'", "Valid: val"]),
    ],
)
def test_wrong_folders(tmp_path: Path, files: dict[str, bytes | str], parts: list[str]) -> None:
    received = message(folder(tmp_path, **files))
    for part in parts:
        assert part in received


@pytest.mark.parametrize("cut", [-1, -9, 15, 5])
def test_a_truncated_gzip_file(tmp_path: Path, cut: int) -> None:
    data = folder(tmp_path, train_de="a\n")
    whole = gzip.compress(b"some text\n" * 50)
    (tmp_path / "corpus" / "train.en.gz").write_bytes(whole[:cut])
    assert "train.en.gz is not a complete gzip file" in message(data)


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({}, ["--data"]),
        ({"corpus": "coppy"}, ["unknown dataset 'coppy'", "did you mean 'copy'", "toy"]),
        ({"corpus": "nowhere/at/all"}, ["nowhere/at/all", "no such folder"]),
        ({"corpus": "missing.tsv"}, ["missing.tsv", "no such"]),
        ({"corpus": __file__}, [__file__, ".tsv"]),
        ({"corpus": "."}, ["--source", "--target"]),
        ({"corpus": ".", "source": "en"}, ["--source", "--target"]),
        ({"corpus": ".", "source": "en", "target": "en"}, ["must differ", "en"]),
        ({"corpus": "toy", "source": "de", "target": "fr"}, ["en to de", "Received: de to fr"]),
    ],
)
def test_wrong_corpora(settings: dict[str, Any], parts: list[str]) -> None:
    received = message(DataConfig(**settings))
    for part in parts:
        assert part in received


LINES = [f"source {i}\ttarget {i}" for i in range(2000)]


@pytest.fixture
def tsv(tmp_path: Path) -> DataConfig:
    return DataConfig(corpus=str(write(tmp_path / "pairs.tsv", "".join(f"{line}\n" for line in LINES))))


def lines_of(data: DataConfig, split: str) -> list[str]:
    return ["\t".join(pair) for pair in zip(*read(data, split), strict=True)]


def test_the_splits_of_a_tsv_are_disjoint_and_leave_nothing_out(tsv: DataConfig) -> None:
    by_split = {split: lines_of(tsv, split) for split in open_corpus(tsv).splits()}
    assert sorted(line for lines in by_split.values() for line in lines) == sorted(LINES)
    assert by_split["train"] == [line for line in LINES if line in set(by_split["train"])]
    expected = len(LINES) * tsv.held_out
    for split in ("val", "test"):
        assert abs(len(by_split[split]) - expected) < 4 * math.sqrt(expected)


def test_the_split_of_a_pair_depends_on_its_text_and_the_seed_alone(tmp_path: Path, tsv: DataConfig) -> None:
    again = write(tmp_path / "again.tsv.gz", "\ufeff" + "\r\n".join([*reversed(LINES), *LINES[:50], "one\tmore"]))
    test = Counter(lines_of(tsv, "test"))
    assert Counter(lines_of(DataConfig(corpus=str(again)), "test")) - Counter(LINES[:50]) <= test
    assert set(test) == set(lines_of(DataConfig(corpus=str(again)), "test"))
    other = set(lines_of(DataConfig(corpus=tsv.corpus, held_out_seed=1), "test"))
    assert other and not set(test) <= other


@pytest.mark.parametrize(
    ("held_out_by", "test", "val"),
    [
        ("pair", (25, 47, 141, 180, 191), (140, 154, 181)),
        ("source", (18, 46, 50, 144, 197), (51,)),
        (None, (18, 46, 50, 144, 197), (51,)),
    ],
)
def test_the_splits_of_a_tsv_are_the_same_for_ever(
    tsv: DataConfig, held_out_by: str | None, test: tuple[int, ...], val: tuple[int, ...]
) -> None:
    """Another hash would put pairs that a model was trained on into its test set.

    `printf '0\\tsource 25\\ttarget 25' | sha256sum` begins with 02e9, which is below 0.02 * 0x10000 = 0x051e.
    """
    data = dataclasses.replace(tsv, held_out_by=held_out_by)
    for split, expected in (("test", test), ("val", val)):
        assert [line for line in lines_of(data, split) if line in LINES[:200]] == [LINES[i] for i in expected]


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("uvw")), min_size=1), st.integers(0, 5))
def test_all_translations_of_a_source_are_in_one_split(pairs: list[tuple[str, str]], seed: int) -> None:
    block = "".join(f"{source}\t{target}\n" for source, target in pairs).encode()
    data = DataConfig(corpus="x.tsv", held_out=0.3, held_out_seed=seed)
    sources = {split: set(TsvLines(data, "x.tsv", 1, block, split).read()[0].sources) for split in SPLITS}
    assert set().union(*sources.values()) == {source for source, _ in pairs}
    assert sum(map(len, sources.values())) == len(set().union(*sources.values()))


def test_more_is_held_out_of_the_same(tsv: DataConfig) -> None:
    more = DataConfig(corpus=tsv.corpus, held_out=0.1)
    assert set(lines_of(tsv, "test")) < set(lines_of(more, "test"))


@pytest.mark.parametrize(
    ("raw", "split", "parts"),
    [
        ("a\tb\nc\td\te\n", "train", ["pairs.tsv, line 2", "2 columns", "Received: 3"]),
        ("a b\n", "train", ["pairs.tsv, line 1", "2 columns", "Received: 1"]),
        ("a\tb\tc\n", "train", ["pairs.tsv: it has 3 columns", "--columns en=1,de=2", "line 1: a | b | c"]),
        ("a\tb\n".encode("utf-16"), "train", ["pairs.tsv is UTF-16", "iconv -f UTF-16 -t UTF-8"]),
        (b"a\tb\n\xe4\tb\n", "train", ["pairs.tsv, line 2: not UTF-8"]),
        ("a\tb\n", "dev", ["unknown split 'dev'", "pairs.tsv", "test, train, val"]),
        ("a\tb\n", "val", ["no pair in split 'val'", "data.held_out=0.02", "--validation-data"]),
        ("a\tb\nc\td\ne\tf\n", "test", ["too few different sources for data.held_out=0.02", "--set data.held_out="]),
        ("", "train", ["no pair in split 'train'", "pairs.tsv is empty"]),
        ("", "val", ["pairs.tsv is empty"]),
        (b"\x1f\x8bX", "train", ["pairs.tsv is a gzip file", "end in .gz"]),
        ("Ja\tYes, sir\n".encode("utf-16-le"), "train", ["pairs.tsv is UTF-16LE without a mark", "iconv -f UTF-16LE"]),
        ("Ja\tYes, sir\n".encode("utf-16-be"), "train", ["pairs.tsv is UTF-16BE without a mark", "iconv -f UTF-16BE"]),
        ("„Größe“\tsize\n".encode("cp1252"), "train", ["line 1: not UTF-8", "iconv -f WINDOWS-1252 -t UTF-8"]),
    ],
)
def test_wrong_tsv_files(tmp_path: Path, raw: bytes | str, split: str, parts: list[str]) -> None:
    received = message(DataConfig(corpus=str(write(tmp_path / "pairs.tsv", raw))), split)
    for part in parts:
        assert part in received


@pytest.mark.parametrize("name", ["pairs.tsv", "corpus/train.en", "pairs.tsv.gz"])
def test_pipes_are_refused_as_such(tmp_path: Path, name: str) -> None:
    """They can be read only once."""
    folder(tmp_path, train_en="a\n", train_de="b\n")
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    corpus = tmp_path / name if "tsv" in name else tmp_path / "corpus"
    received = message(DataConfig(corpus=str(corpus), source="en", target="de"))
    assert f"{tmp_path / name} can be read only once" in received and "prepare --data -" in received


@pytest.mark.parametrize(
    ("name", "raw", "part"),
    [
        ("a.tsv.gz", b"a\tb\n", "is not a gzip file: rename it without .gz"),
        ("a.tsv.zst", b"a\tb\n", "is not a zstd file: rename it without .zst"),
        ("a.tsv.gz", gzip.compress(b"a\tb\n", mtime=0) + b"more", "is not a complete gzip file"),
        ("a.tsv.gz", gzip.compress(b"a\tb\n" * 1000, mtime=0)[:-9], "is not a complete gzip file"),
        ("a.tsv.gz", b"", "a.tsv.gz is empty"),
        ("a.tsv.zst", b"", "a.tsv.zst is empty"),
        ("a.tsv", zstandard.compress(b"a\tb\n"), "is a zstd file: unpack it"),
    ],
)
def test_files_that_are_not_what_their_name_says(tmp_path: Path, name: str, raw: bytes, part: str) -> None:
    (tmp_path / name).write_bytes(raw)
    assert part in message(DataConfig(corpus=str(tmp_path / name)))


def test_a_zst_file_may_begin_with_a_frame_that_is_skipped(tmp_path: Path) -> None:
    """pzstd writes them."""
    skipped = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"
    (tmp_path / "a.tsv.zst").write_bytes(skipped + zstandard.compress(b"a\tb\n"))
    assert lines_of(DataConfig(corpus=str(tmp_path / "a.tsv.zst"), held_out=1e-9), "train") == ["a\tb"]


def test_a_tsv_keeps_empty_sides_and_odd_characters(tmp_path: Path) -> None:
    """A blank line is an empty pair: training counts it with those that it leaves out."""
    lines = [f"{ODD}\tx", "\ty", "", "z\t", ""]
    data = DataConfig(corpus=str(write(tmp_path / "pairs.tsv.gz", "\n".join(lines))), held_out=1e-9)
    assert lines_of(data, "train") == [line or "\t" for line in lines[:-1]]


def test_copy() -> None:
    seen: set[str] = set()
    for split in ("train", "val", "test"):
        sources, targets = read(DataConfig(corpus="copy"), split)
        assert sources == targets
        assert all(len(source.split(" ")) == LENGTH for source in sources)
        assert {symbol for source in sources for symbol in source.split(" ")} == set(SYMBOLS)
        assert len(set(sources)) == len(sources) and not seen & set(sources)
        seen |= set(sources)
    assert (len(SYMBOLS), LENGTH) == (11, 10)


def test_toy() -> None:
    pairs = read(DataConfig(corpus="toy"), "val")
    assert pairs == read(DataConfig(corpus="toy", source="en", target="de"), "val")
    assert len(pairs.sources) == len(pairs.targets) == 500
    assert "unknown split 'dev' of toy" in message(DataConfig(corpus="toy"), "dev")


def test_fingerprints_tell_texts_apart() -> None:
    pairs = [Pairs(["a"], ["b"]), Pairs(["b"], ["a"]), Pairs(["a", "b"], []), Pairs(["a", "c"], ["b", "d"])]
    pairs += [Pairs(["a\nb"], ["c"]), Pairs(["a", "b"], ["c"]), Pairs(["a\0b"], ["c"]), Pairs(["a"], ["b\0c"])]
    assert len({each.fingerprint for each in pairs}) == len(pairs)
    assert len({StringPairs(each).digest() for each in pairs}) == len(pairs)
    assert Pairs(["a"], ["b"]).fingerprint == pairs[0].fingerprint


SIDE = st.text(st.sampled_from("a\0\x01\nn10"), max_size=4)


@given(st.lists(SIDE, max_size=3), st.lists(SIDE, max_size=3))
def test_what_is_escaped_can_be_joined(one: list[str], other: list[str]) -> None:
    for separator in "\0\n":
        joined = [separator.join([*map(escaped, texts), ""]) for texts in (one, other)]
        assert (joined[0] == joined[1]) == (one == other)


def test_hashes_of_ordinary_text_stay() -> None:
    """Runs and prepared corpora hold them."""
    assert Pairs(["Ein Hund\u00a0läuft.", "Ja\t!"], ["x", "👍🏽"]).fingerprint == "8d7d75c8fa423ae1"


BUILDER = """
import sys
import tensorflow_datasets as tfds


class MiniTranslate(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")
    BUILDER_CONFIGS = [tfds.core.BuilderConfig(name="small", version="1.0.0")]
    pkg_dir_path = None

    def _info(self):
        return tfds.core.DatasetInfo(builder=self, features=tfds.features.Translation(languages=("en", "de")))

    def _split_generators(self, dl_manager):
        return {"train": self._generate_examples(5), "validation": self._generate_examples(2)}

    def _generate_examples(self, number):
        for i in range(number):
            yield i, {"en": f"house {i}", "de": f"Häuser {i}"}


MiniTranslate(data_dir=sys.argv[1]).download_and_prepare()
"""


@pytest.fixture(scope="module")
def tfds_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A translation dataset that another process has prepared; this one knows nothing of its class."""
    path = tmp_path_factory.mktemp("tfds")
    script = write(path / "code" / "mini.py", BUILDER)
    subprocess.run([sys.executable, script, path / "data"], check=True, capture_output=True)
    return path / "data"


READER = """
import sys
from tf_transformer.config import DataConfig
from tf_transformer.data import read
from tf_transformer.data.corpora import validation_split
from tf_transformer.errors import InputError

data = DataConfig(corpus=sys.argv[1], source="en", target=sys.argv[2])
try:
    for split in ("train", validation_split(data), *sys.argv[3:]):
        for pair in sorted(zip(*read(data, split))):
            print(split, *pair, sep="|")
except InputError as error:
    print("InputError:", error)
"""


def read_elsewhere(tfds_folder: Path, *arguments: str) -> list[str]:
    """Read in another process, which finds the data by the environment variable of TFDS."""
    environment = os.environ | {"TFDS_DATA_DIR": str(tfds_folder), "PYTHONUTF8": "1"}
    command = [sys.executable, "-c", READER, *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()


@pytest.mark.long
def test_tfds_in_another_process(tfds_folder: Path) -> None:
    expected = [f"train|house {i}|Häuser {i}" for i in range(5)]
    expected += [f"validation|house {i}|Häuser {i}" for i in range(2)]
    *pairs, error = read_elsewhere(tfds_folder, "tfds:mini_translate/small", "de", "tset")
    assert pairs == expected
    assert "unknown split 'tset' of tfds:mini_translate/small" in error and "train, validation" in error


@pytest.mark.parametrize(
    ("corpus", "target", "parts"),
    [
        ("tfds:mini_translate", "fr", ["unknown language 'fr' of tfds:mini_translate", "Valid: de, en"]),
        ("tfds:wmt14_translat/de-en", "de", ["unknown TFDS dataset 'wmt14_translat/de-en'", "did you mean 'wmt1"]),
        ("tfds:wmt14_translate/dee-en", "de", ["tfds:wmt14_translate/dee-en", "dee-en not found"]),
        ("tfds:mnist", "de", ["unknown language 'en' of tfds:mnist"]),
        ("tfds:", "de", ["tfds:"]),
    ],
)
def test_wrong_tfds(
    tfds_folder: Path, monkeypatch: pytest.MonkeyPatch, corpus: str, target: str, parts: list[str]
) -> None:
    import tensorflow_datasets as tfds

    monkeypatch.setattr(tfds.core.constants, "DATA_DIR", str(tfds_folder))
    received = message(DataConfig(corpus=corpus, source="en", target=target))
    for part in parts:
        assert part in received
    assert len(received) < 1000 and "\n" not in received


def test_a_download_that_fails(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    import tensorflow_datasets as tfds

    def download_and_prepare() -> None:
        print("Downloading ...")
        raise ConnectionError("no route to host\nand more")

    info = SimpleNamespace(features=tfds.features.Translation(languages=("en", "de")))
    stub = SimpleNamespace(info=info, download_and_prepare=download_and_prepare)
    monkeypatch.setattr(tfds, "builder", lambda name: stub)
    received = message(DataConfig(corpus="tfds:some", source="en", target="de"))
    assert received == "tfds:some cannot be prepared: ConnectionError: no route to host"
    assert capfd.readouterr().out == ""


def test_tfds_tries_a_download_as_often_as_it_is_told(monkeypatch, caplog):
    """The constant that we set is the one that TFDS reads."""
    from tensorflow_datasets.core.download import downloader

    monkeypatch.setattr(downloader, "MAX_RETRIES", 1)
    with pytest.raises(downloader.requests.ConnectionError), downloader._open_url("http://127.0.0.1:9/x"):
        pass
    assert caplog.text.count("Retrying (") == 1

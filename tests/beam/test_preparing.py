"""A pipeline prepares the bytes that `prepare` prepares, wherever they lie."""

import dataclasses
import gzip
import random
from pathlib import Path

import pytest
import zstandard

pytest.importorskip("apache_beam")

from apache_beam import Pipeline

from tf_transformer.beam import Prepare
from tf_transformer.beam.__main__ import main
from tf_transformer.config import Config, DataConfig, TokenizerConfig
from tf_transformer.data.corpora import folder, toy, tsv
from tf_transformer.data.preparing import Plan, plan_of, prepare
from tf_transformer.errors import InputError
from tf_transformer.tokenizers.vocabulary import train_tokenizer

CHUNK = 211


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sentences = [sentence for pair in toy.pairs("val") for sentence in pair]
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    path.write_bytes(train_tokenizer(sentences, TokenizerConfig(vocab_size=400)))
    return path


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataConfig:
    """A folder, and a TSV beside it: several chunks, with equal, empty and long pairs."""
    monkeypatch.setattr(tsv, "LINES", CHUNK)
    monkeypatch.setattr(folder, "LINES", CHUNK)
    chosen = random.Random(11)
    pairs = toy.pairs("val") + toy.pairs("test")[:307]
    pairs += chosen.choices(pairs, k=199) + [("", "x"), ("same", "same"), ("b " * 90, "c " * 90)] * 3
    chosen.shuffle(pairs)
    text = tmp_path / "text"
    text.mkdir()
    for split, some in (("train", pairs[:601]), ("val", pairs[601:640])):
        for i, language in enumerate(("en", "de")):
            content = "".join(f"{pair[i]}\n" for pair in some).encode()
            (text / f"{split}.{language}.gz").write_bytes(gzip.compress(content))
    lines = "".join(f"{source}\t{target}\n" for source, target in pairs[640:])
    (tmp_path / "more.tsv.zst").write_bytes(zstandard.compress(lines.encode()))
    return DataConfig(
        corpus=str(text),
        extra_corpora=(str(tmp_path / "more.tsv.zst"),),
        source="en",
        target="de",
        max_length=64,
        drop_duplicates=True,
        drop_copies=True,
        held_out=0.05,
    )


def plan(data: DataConfig, tokenizer: Path) -> Plan:
    return plan_of(Config(data=data, tokenizer=TokenizerConfig(file=str(tokenizer))))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def run(wanted: Plan, output: str | Path) -> None:
    with Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | Prepare(wanted, str(output))


@pytest.mark.parametrize("settings", [{}, {"drop_duplicates": False, "bpe_dropout": 0.1}])
def test_it_writes_the_bytes_that_prepare_writes(
    corpus: DataConfig, tokenizer: Path, tmp_path: Path, settings: dict[str, object]
) -> None:
    wanted = plan(dataclasses.replace(corpus, **settings), tokenizer)
    prepare(wanted, tmp_path / "one")
    run(wanted, tmp_path / "other")
    one = files(tmp_path / "one")
    assert sum(name.endswith(".shard") for name in one) > 4
    assert files(tmp_path / "other") == one
    assert not list(tmp_path.glob("*.preparing"))


def test_several_directions(corpus: DataConfig, tmp_path: Path) -> None:
    names = {"corpus": f"{corpus.corpus}:en-de", "extra_corpora": (f"{corpus.corpus}:de-en",)}
    sentences = [sentence for pair in toy.pairs("val") for sentence in pair]
    tokenizer = tmp_path / "several.model"
    tokenizer.write_bytes(train_tokenizer(sentences, TokenizerConfig(vocab_size=400), ("de", "en")))
    wanted = plan(dataclasses.replace(corpus, source=None, target=None, **names), tokenizer)  # type: ignore[arg-type]
    prepare(wanted, tmp_path / "one")
    run(wanted, tmp_path / "other")
    assert files(tmp_path / "other") == files(tmp_path / "one")


def test_text_and_output_may_be_elsewhere(corpus: DataConfig, tokenizer: Path, tmp_path: Path, elsewhere: Path) -> None:
    wanted = plan(corpus, tokenizer)
    prepare(wanted, tmp_path / "here")
    (tmp_path / "text").rename(elsewhere / "text")
    (tmp_path / "more.tsv.zst").rename(elsewhere / "more.tsv.zst")
    there = {"corpus": "elsewhere://text", "extra_corpora": ("elsewhere://more.tsv.zst",)}
    run(plan(dataclasses.replace(corpus, **there), tokenizer), "elsewhere://some/prepared")  # type: ignore[arg-type]
    here, there_files = files(tmp_path / "here"), files(elsewhere / "some" / "prepared")
    assert here.pop("manifest.json") != there_files.pop("manifest.json")  # it names the corpora
    assert there_files == here
    assert not [path for path in elsewhere.rglob("*.preparing/*") if path.is_file()]


def test_errors_name_a_corpus_elsewhere(tokenizer: Path, tmp_path: Path, elsewhere: Path) -> None:
    (elsewhere / "good.tsv").write_text("".join(f"a {i}\tb {i}\n" for i in range(307)))
    (elsewhere / "bad.tsv").write_text("a\tb\nc\n")
    data = DataConfig(corpus="elsewhere://good.tsv", extra_corpora=("elsewhere://bad.tsv",))
    with pytest.raises(InputError, match="^elsewhere://bad.tsv, line 2"):
        run(plan(data, tokenizer), tmp_path / "prepared")
    with pytest.raises(InputError, match="^--data elsewhere://missing: there is no such folder"):
        run(plan(DataConfig(corpus="elsewhere://missing", source="en", target="de"), tokenizer), tmp_path / "prepared")


def test_a_pipeline_that_failed_is_gone_on_with(corpus: DataConfig, tokenizer: Path, tmp_path: Path) -> None:
    data = dataclasses.replace(corpus, drop_duplicates=False)
    path = tmp_path / "text" / "train.de.gz"
    whole = gzip.decompress(path.read_bytes())
    lines = whole.split(b"\n")
    lines[500] = b"\xff"
    path.write_bytes(gzip.compress(b"\n".join(lines)))
    with pytest.raises(Exception, match=r"train\.de\.gz, line 501: not UTF-8"):
        run(plan(data, tokenizer), tmp_path / "prepared")
    assert not (tmp_path / "prepared" / "manifest.json").exists()
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "prepared").glob("*.shard")}
    assert before
    (tmp_path / "prepared" / "00099.shard").write_bytes(b"of a pipeline with more text")
    path.write_bytes(gzip.compress(whole))
    run(plan(data, tokenizer), tmp_path / "prepared")
    assert {path: path.stat().st_mtime_ns for path in before} == before
    prepare(plan(data, tokenizer), tmp_path / "other")
    assert files(tmp_path / "prepared") == files(tmp_path / "other")


def test_the_command(corpus: DataConfig, tokenizer: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ["--data", str(corpus.corpus), "--source", "en", "--target", "de"]
    command = ["prepare", *text, "--output", str(tmp_path / "prepared")]
    given = ["--tokenizer", str(tokenizer)]
    assert main([*command, "--", "--runner", "FnApiRunner"]) == 2
    assert "a pipeline cannot train a tokenizer: give --tokenizer FILE" in capsys.readouterr().err
    assert main([*command, *given, "--", "--runner", "FnApiRunner"]) == 0
    assert (tmp_path / "prepared" / "manifest.json").is_file()
    assert main([*command, *given, "--", "--runner", "FnApiRunner"]) == 2
    assert "already exists" in capsys.readouterr().err
    (tmp_path / "text" / "train.de.gz").write_bytes(b"no gzip")
    command[-1] = str(tmp_path / "damaged")
    assert main([*command, *given, "--", "--runner", "FnApiRunner"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "train.de.gz" in line


def test_standard_input_is_refused(tokenizer: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="have no standard input"):
        Prepare(plan(DataConfig(corpus="-"), tokenizer), str(tmp_path / "prepared"))

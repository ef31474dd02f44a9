"""Laws of prepared corpora: whoever prepares the text, the bytes are the same, and they say what the text says."""

import dataclasses
import gzip
import io
import json
import os
import random
import re
import resource
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import zstandard

from tf_transformer.commands.main import main
from tf_transformer.config import Config, DataConfig, TokenizerConfig
from tf_transformer.data import encode, read
from tf_transformer.data.corpora import check_scores, folder, toy, tsv
from tf_transformer.data.pairs import Pairs
from tf_transformer.data.prepared import Prepared
from tf_transformer.data.prepared.manifest import written
from tf_transformer.data.preparing import Plan, duplicates, plan_of, preparation, prepare, sample, shard
from tf_transformer.data.preparing.prepare import work_folder
from tf_transformer.data.preparing.workers import Workers
from tf_transformer.errors import InputError
from tf_transformer.tokenizers import Tokenizer

CHUNK = 211


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several chunks of a small corpus, whose pairs are sampled and compared in several goes."""
    monkeypatch.setattr(tsv, "LINES", CHUNK)
    monkeypatch.setattr(folder, "LINES", CHUNK)
    monkeypatch.setattr(sample, "SAMPLE", 503)
    monkeypatch.setattr(duplicates, "AT_ONCE", 307)


def rows() -> list[tuple[str, str]]:
    """Pairs of which some are equal, empty, copies, long, or of unlike lengths."""
    chosen = random.Random(7)
    pairs = toy.pairs("val") + toy.pairs("test")[:300]
    odd = [
        ("", "x"),
        ("  ", ""),
        ("same", "same"),
        ("a", "eins zwei drei vier fünf sechs sieben"),
        ("b " * 90, "c " * 90),
    ]
    pairs += chosen.choices(pairs, k=200) + odd * 3
    chosen.shuffle(pairs)
    return pairs


@pytest.fixture
def corpus(tmp_path: Path) -> DataConfig:
    """A folder, and a TSV with scores beside it."""
    pairs = rows()
    text = tmp_path / "text"
    text.mkdir()
    for split, some in (("train", pairs[:601]), ("val", pairs[601:640])):
        for i, language in enumerate(("en", "de")):
            content = "".join(f"{pair[i]}\n" for pair in some).encode()
            (text / f"{split}.{language}.gz").write_bytes(gzip.compress(content))
    lines = "".join(f"{source}\t{target}\n" for source, target in pairs[640:])
    (tmp_path / "more.tsv.zst").write_bytes(zstandard.compress(lines.encode()))
    filters = {"max_length": 64, "max_length_ratio": 4.0, "drop_duplicates": True, "drop_copies": True}
    names = {"corpus": str(text), "extra_corpora": (str(tmp_path / "more.tsv.zst"),)}
    return DataConfig(**names, source="en", target="de", held_out=0.05, **filters)  # type: ignore[arg-type]


def plan(data: DataConfig, **tokenizer: object) -> Plan:
    settings = TokenizerConfig(**({"vocab_size": 400} | tokenizer))  # type: ignore[arg-type]
    return plan_of(Config(data=data, tokenizer=settings))


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.long_but_first
@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("settings", [{}, {"bpe_dropout": 0.1, "drop_duplicates": False}, {"drop_copies": False}])
def test_one_process_three_and_parts_write_the_same_bytes(
    corpus: DataConfig, tmp_path: Path, settings: dict[str, object]
) -> None:
    wanted = plan(dataclasses.replace(corpus, **settings), shared=not settings)
    prepare(wanted, tmp_path / "one", workers=1)
    prepare(wanted, tmp_path / "three", workers=3)
    for part in (2, 1, 3, 3, 1, 2):
        prepare(wanted, tmp_path / "parts", part=(part, 3))
    one = files(tmp_path / "one")
    assert sum(name.endswith(".shard") for name in one) > 4
    assert files(tmp_path / "three") == one
    assert files(tmp_path / "parts") == one
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("small_chunks")
def test_what_is_here_and_what_was_left_out_is_what_the_text_says(corpus: DataConfig, tmp_path: Path) -> None:
    """The oracle reads the whole text and filters it pair by pair."""
    prepared = prepare(plan(corpus), tmp_path / "prepared", workers=2)
    assert prepared is not None
    tokenizer = Tokenizer(prepared.vocabularies[0].model)
    seen: set[tuple[str, str]] = set()
    kept: list[tuple[str, str]] = []
    dropped = [Counter[str](), Counter[str]()]
    for number, name in enumerate((corpus.corpus, *corpus.extra_corpora)):
        given = read(dataclasses.replace(corpus, corpus=name, extra_corpora=()), "train")
        lengths = [np.diff(tokenizer.tokenize(side).row_splits.numpy()) for side in given]
        for pair, *sides in zip(zip(*given, strict=True), *lengths, strict=True):
            if pair in seen:
                why = "equal"
            elif pair[0] == pair[1] and pair[0].strip():
                why = "copy"
            elif min(sides) == 0:
                why = "empty"
            elif max(sides) + 1 > 64:
                why = "long"
            elif max(sides) > 4 * min(sides):
                why = "ratio"
            else:
                why = ""
                kept.append(pair)
            seen.add(pair)
            if why:
                dropped[number][why] += 1
    assert [{k: v for k, v in one["dropped"].items() if v} for one in prepared.corpora] == [dict(d) for d in dropped]
    assert {why for counts in dropped for why in counts} == {"equal", "copy", "empty", "long", "ratio"}
    sources, targets = prepared.pairs().sequences()
    assert [row[:-1] for row in sources] == tokenizer.tokenize([pair[0] for pair in kept]).to_list()
    assert [row[:-1] for row in targets] == tokenizer.tokenize([pair[1] for pair in kept]).to_list()
    assert {row[-1] for row in sources + targets} == {3}
    assert prepared.validation()[0] == read(dataclasses.replace(corpus, extra_corpora=()), "val")


def test_pairs_of_a_low_score_are_left_out_of_training(tmp_path: Path) -> None:
    lines = [f"a {i}\tb {i}\t{i / 100}\n" for i in range(100)]
    (tmp_path / "scored.tsv").write_text("".join(lines))
    data = DataConfig(corpus=str(tmp_path / "scored.tsv"), min_score=0.4, held_out=0.1)
    prepared = prepare(plan(data, vocab_size=290), tmp_path / "prepared")
    assert prepared is not None
    (described,) = prepared.corpora
    held_out = len(read(data, "val").sources) + len(read(data, "test").sources)
    assert described["given"] == 100 - held_out
    decode = prepared.vocabularies[0].processor.decode
    kept = [int(decode(row).split()[1]) for row in prepared.pairs().sequences()[0]]
    assert min(kept) >= 40
    assert described["dropped"]["score"] + len(kept) == described["given"]
    assert described["dropped"]["score"] > 20


@pytest.mark.usefixtures("small_chunks")
def test_a_stopped_preparation_goes_on_and_does_not_begin_again(
    corpus: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted, output = plan(corpus), tmp_path / "prepared"
    encoded, done = shard.encode_packed, []

    def stops(*arguments: object) -> object:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(arguments)
        return encoded(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(shard, "encode_packed", stops)
        with pytest.raises(KeyboardInterrupt):
            prepare(wanted, output)
    assert not output.exists()
    shards = sorted(work_folder(output).glob("result/*.shard"))
    before = {path: path.stat().st_mtime_ns for path in shards}
    assert len(before) == 2
    caplog.clear()
    with caplog.at_level("INFO"), monkeypatch.context() as patch:
        patch.setattr(shard, "encode_packed", lambda *arguments: done.append(arguments) or encoded(*arguments))
        prepare(wanted, output)
    assert "continuing the preparation" in caplog.text
    assert "training the tokenizer" not in caplog.text
    assert len(done) == len(list(output.glob("*.shard")))
    assert {output / path.name: time for path, time in before.items()}.items() <= {
        path: path.stat().st_mtime_ns for path in output.iterdir()
    }.items()
    prepare(wanted, tmp_path / "other")
    assert files(tmp_path / "other") == files(output)


@pytest.mark.usefixtures("small_chunks")
def test_text_that_changed_while_preparation_was_stopped_is_read_anew(
    corpus: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted, output = plan(corpus), tmp_path / "prepared"
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "assemble", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare(wanted, output)
    path = tmp_path / "text" / "train.de.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    lines[300] = "etwas ganz anderes"
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    prepare(wanted, output)
    prepare(wanted, tmp_path / "other")
    assert files(tmp_path / "other") == files(output)


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("workers", [1, 3])
def test_a_line_that_cannot_be_read_is_named_and_nothing_is_left(tmp_path: Path, workers: int) -> None:
    lines = [f"a\t{i}\n".encode() for i in range(1000)]
    lines[501] = b"a\t\xff\n"
    lines[777] = b"one column\n"
    (tmp_path / "text.tsv").write_bytes(b"".join(lines))
    with pytest.raises(InputError, match=r"text\.tsv, line 502: not UTF-8"):
        prepare(plan(DataConfig(corpus=str(tmp_path / "text.tsv"))), tmp_path / "prepared", workers=workers)
    assert [path.name for path in tmp_path.iterdir()] == ["text.tsv"]


def test_standard_input_is_a_tsv(corpus: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"{source}\t{target}\n" for source, target in rows())
    (tmp_path / "text.tsv").write_text(text)
    command = ["prepare", "--vocab-size", "400", "--output"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    assert main([*command, str(tmp_path / "in"), "--data", "-"]) == 0
    assert main([*command, str(tmp_path / "file"), "--data", str(tmp_path / "text.tsv")]) == 0
    one, other = files(tmp_path / "in"), files(tmp_path / "file")
    assert one.pop("manifest.json") != other.pop("manifest.json")
    assert one == other


@pytest.mark.long
def test_a_function_is_mapped_in_the_order_of_tasks() -> None:
    with Workers(3) as workers:
        assert list(workers.map(_slow, range(17))) == [i * i for i in range(17)]
        with pytest.raises(InputError, match="no 5"):
            list(workers.map(_refuse_five, range(9)))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("tasks", [2, 17])
def test_a_worker_that_ends_is_an_error_however_many_tasks_follow(count: int, tasks: int) -> None:
    """A dead process may get further tasks, which nobody reads."""
    with pytest.raises(InputError, match=r"a worker process ended \(exit code 7\)"), Workers(count) as workers:
        list(workers.map(os._exit, [7] * tasks))


@pytest.mark.long
def test_workers_take_no_module_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("copy", "csv", "numpy", "queue", "random", "tf_transformer", "tokenize"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(5)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])  # as in a notebook
    with Workers(2) as workers:
        assert list(workers.map(_slow, range(3))) == [0, 1, 4]


def _slow(number: int) -> int:
    subprocess.run(["sleep", str(0.02 * (number % 3))], check=True)
    return number * number


def _interrupted(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_processes_that_prepare_import_no_tensorflow() -> None:
    modules = "worker, shard, sample, duplicates"
    code = f"import sys; from tf_transformer.data.preparing import {modules}; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "sentencepiece" in modules
    assert not {"tensorflow", "keras", "tensorflow_text"} & set(modules)


def _refuse_five(number: int) -> None:
    if number == 5:
        raise InputError("no 5")


def test_equal_pairs_are_found_as_a_dictionary_finds_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "AT_ONCE", 97)
    chosen = random.Random(3)
    chunks = [[(chosen.choice("abcdefgh") * 3, chosen.choice("xyz")) for _ in range(n)] for n in (53, 29, 131, 17, 0)]
    for number, chunk in enumerate(chunks):
        hashing = duplicates.Hashing(tmp_path, ("en-de", "de-en"))
        text = SimpleNamespace(digest=lambda: "", read=lambda c=chunk: (Pairs.of(c), 0))
        task = SimpleNamespace(number=number, corpus=number % 2, chunk=text)
        hashing(task)  # type: ignore[arg-type]
    found = duplicates.duplicates_in([hashing.place(number) for number in range(len(chunks))])
    seen: set[tuple[int, str, str]] = set()
    for number, (chunk, bits) in enumerate(zip(chunks, found, strict=True)):
        expected = []
        for pair in chunk:
            expected.append((number % 2, *pair) in seen)
            seen.add((number % 2, *pair))
        assert np.unpackbits(bits, count=len(chunk)).astype(bool).tolist() == expected


def test_equal_pairs_are_found_with_few_open_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A corpus of a billion pairs has more chunks than a process may open files."""
    monkeypatch.setattr(duplicates, "AT_ONCE", 11)
    rows = np.zeros(3, duplicates.HASHED)
    rows["high"], rows["row"] = [5, 5, 2**63 + 7], range(3)
    files = [tmp_path / f"{number}.npy" for number in range(61)]
    for file in files:
        np.save(file, rows)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 13, limits[1]))
    try:
        found = duplicates.duplicates_in(files)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert [np.unpackbits(bits, count=3).tolist() for bits in found] == [[0, 1, 0], *[[1, 1, 1]] * 60]


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    place = tmp_path / "prepared"
    data = DataConfig(corpus="toy", train_split="val", bpe_dropout=0.1)
    prepare(plan(data), place)
    return place


def opened(place: Path) -> None:
    """Read all that a prepared corpus has."""
    found = Prepared(place)
    pairs = found.pairs()
    pairs.sequences()
    pairs.text(0)
    found.validation()


def _is_same_json(one: bytes, other: bytes) -> bool:
    """Say whether they differ in white space alone."""
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def test_a_flipped_byte_is_named_with_its_file(prepared: Path) -> None:
    chosen = random.Random(5)
    opened(prepared)
    for path in sorted(prepared.iterdir()):
        whole = path.read_bytes()
        for place in (*chosen.sample(range(len(whole)), 20), len(whole)):
            flipped = bytearray(whole)
            if place == len(whole):
                flipped = flipped[:-1]  # cut off
            else:
                flipped[place] ^= 1 << chosen.randrange(8)
            path.write_bytes(flipped)
            if path.name == "manifest.json" and _is_same_json(bytes(flipped), whole):
                continue
            with pytest.raises(InputError, match="prepared"):
                opened(prepared)
        path.write_bytes(whole)
        path.rename(path.with_suffix(".gone"))
        with pytest.raises(InputError, match=path.name.replace(".", r"\.")):
            opened(prepared)
        path.with_suffix(".gone").rename(path)
    opened(prepared)


def test_another_version_of_the_format_is_refused(prepared: Path) -> None:
    manifest = json.loads((prepared / "manifest.json").read_text())
    (prepared / "manifest.json").write_text(json.dumps(manifest | {"format_version": 0}))
    with pytest.raises(InputError, match=r"format version 0, but this version .* reads 1: prepare the corpus again"):
        Prepared(prepared)


def test_an_output_that_is_there_is_left_alone(
    prepared: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    before = files(prepared)
    data = DataConfig(corpus="toy", train_split="val", bpe_dropout=0.1)
    with caplog.at_level("INFO"):
        prepare(plan(data), prepared)
    assert "is already prepared" in caplog.text
    assert [path.name for path in tmp_path.iterdir()] == ["prepared"]
    with pytest.raises(InputError, match="was prepared with other settings: give --overwrite"):
        prepare(plan(data, vocab_size=300), prepared)
    (tmp_path / "mine").mkdir()
    for overwrite in (False, True):
        with pytest.raises(InputError, match="mine exists and is no prepared corpus"):
            prepare(plan(data), tmp_path / "mine", overwrite=overwrite)
    assert files(prepared) == before


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("split", ["train", "val"])
def test_other_text_is_not_taken_for_the_prepared_one(corpus: DataConfig, tmp_path: Path, split: str) -> None:
    output = tmp_path / "prepared"
    prepare(plan(corpus), output)
    before = files(output)
    path = tmp_path / "text" / f"{split}.de.gz"
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in [*lines[:-1], "anders"]).encode()))
    with pytest.raises(InputError, match="was prepared from other text: give --overwrite"):
        prepare(plan(corpus), output)
    assert files(output) == before
    prepare(plan(corpus), output, overwrite=True)
    prepare(plan(corpus), tmp_path / "other")
    assert files(output) == files(tmp_path / "other") != before
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_another_pipe_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["prepare", "--vocab-size", "300", "--data", "-", "--output", str(tmp_path / "prepared")]
    texts = ["".join(f"{word} {i}\t{word} {i}\n" for i in range(211)) for word in ("one", "other")]
    codes = []
    for text, *more in ((texts[0],), (texts[0],), (texts[1],), (texts[1], "--overwrite"), (texts[1],)):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        codes.append(main([*command, *more]))
    assert codes == [0, 0, 2, 0, 0]
    assert "was prepared from other text" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["prepared"]


def test_another_tokenizer_of_the_same_name_is_seen(tmp_path: Path) -> None:
    data = DataConfig(corpus="toy", train_split="val")
    for size in (400, 500):
        made = prepare(plan(data, vocab_size=size), tmp_path / str(size))
        assert made is not None
        (tmp_path / "my.model").write_bytes(made.vocabularies[0].model)
        if size == 400:
            prepare(plan(data, file=str(tmp_path / "my.model")), tmp_path / "prepared")
    with pytest.raises(InputError, match="was prepared with other tokenizers: give --overwrite"):
        prepare(plan(data, file=str(tmp_path / "my.model")), tmp_path / "prepared")


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("killed_at", ["assemble", "rename"])
def test_overwriting_goes_on_where_it_was_stopped(
    corpus: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    output, wanted = tmp_path / "prepared", plan(corpus, vocab_size=350)
    prepare(plan(corpus), output)
    before = files(output)
    with monkeypatch.context() as patch:
        if killed_at == "assemble":
            patch.setattr(preparation, "assemble", _interrupted)
        else:
            rename = Path.rename
            patch.setattr(
                Path,
                "rename",
                lambda path, to: _interrupted() if path.name == "result" else rename(path, to),  # type: ignore[func-returns-value]
            )
        with pytest.raises(KeyboardInterrupt):
            prepare(wanted, output, overwrite=True)
    if killed_at == "assemble":
        assert files(output) == before
    prepare(wanted, output, overwrite=True)
    prepare(wanted, tmp_path / "other")
    assert files(output) == files(tmp_path / "other")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.usefixtures("small_chunks")
def test_a_part_with_another_setting_takes_nothing_from_the_others(corpus: DataConfig, tmp_path: Path) -> None:
    output, work = tmp_path / "prepared", work_folder(tmp_path / "prepared")
    prepare(plan(corpus), output, part=(1, 3))
    before = {path: path.read_bytes() for path in work.rglob("*") if path.is_file()}
    assert len(before) > 3
    changed = dataclasses.replace(corpus, max_length=63)
    with pytest.raises(InputError, match=r"begun with other settings.*Received: data.max_length=63"):
        prepare(plan(changed), output, part=(2, 3))
    assert {path: path.read_bytes() for path in work.rglob("*") if path.is_file()} == before
    for part in (2, 3, 1, 2, 3):
        prepare(plan(corpus), output, part=(part, 3))
    assert Prepared(output).corpora


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("part", [(1, 1), (1, 2)])
def test_text_without_a_pair_leaves_nothing(tmp_path: Path, part: tuple[int, int]) -> None:
    (tmp_path / "text").mkdir()
    for language in ("en", "de"):
        (tmp_path / "text" / f"train.{language}").write_text("a b c d e f g h\n" * 500)
        (tmp_path / "text" / f"val.{language}").write_text("a\n")
    data = DataConfig(corpus=str(tmp_path / "text"), source="en", target="de", max_length=2)
    for number in range(1, part[1]):
        assert prepare(plan(data, vocab_size=290), tmp_path / "prepared", part=(number, part[1])) is None
    with pytest.raises(InputError, match="no pair to train on"):
        prepare(plan(data, vocab_size=290), tmp_path / "prepared", part=(part[1], part[1]))
    if part == (1, 1):
        assert [path.name for path in tmp_path.iterdir()] == ["text"]


@pytest.mark.parametrize(("normalization", "changed"), [("nfc", 0), ("nmt_nfkc", 7)])
@pytest.mark.parametrize("workers", [1, 3])
def test_target_lines_that_the_normalisation_changes_are_counted(
    normalization: str, changed: int, workers: int, tmp_path: Path, caplog: pytest.LogCaptureFixture, small_chunks: None
) -> None:
    pairs = toy.pairs("train")[:997]
    lines = [f"{source}\t{target}" for source, target in pairs]
    for number in range(changed or 7):
        lines[100 * number] = f"10² m² is right\t10² m² sind richtig {number}"
    (tmp_path / "pairs.tsv").write_text("\n".join(lines) + "\n")
    data = DataConfig(corpus=str(tmp_path / "pairs.tsv"), held_out=0.05)
    prepare(plan(data, vocab_size=400, normalization=normalization), tmp_path / "prepared", workers=workers)
    said = [record.message for record in caplog.records if "normalisation" in record.message]
    assert len(said) == bool(changed)
    if changed:
        found = re.search(r"changes (\d) of \d+ target lines \(0\.\d%\).*of '10²' it makes '102'", said[0])
        assert found and int(found[1]) >= changed - 3  # some may be held out


def test_rules_of_ones_own_belong_to_what_is_prepared(corpus: DataConfig, tmp_path: Path) -> None:
    rules = tmp_path / "rules.tsv"
    rules.write_text("2019\t27\n")
    made = plan(corpus, vocab_size=400, normalization=str(rules))
    prepare(made, tmp_path / "prepared")
    there = Prepared(tmp_path / "prepared")
    there.refuse_differences(made.data, made.tokenizer)
    assert prepare(made, tmp_path / "prepared") is not None  # it is already there
    rules.write_text("2019\t60\n")
    with pytest.raises(InputError, match=r"was prepared with other settings"):
        prepare(made, tmp_path / "prepared")
    with pytest.raises(InputError, match=r"tokenizer.normalization was 'rules.tsv \(\w+\)', is"):
        there.refuse_differences(made.data, made.tokenizer)
    rules.unlink()
    there.refuse_differences(made.data, TokenizerConfig(**there.settings()["tokenizer"]))


def test_scores_that_are_not_there_are_refused(tmp_path: Path) -> None:
    for corpus in ("toy", "copy", str(tmp_path)):
        data = DataConfig(corpus=corpus, min_score=0.5, source="en", target="de")
        with pytest.raises(InputError, match=r"data.min_score reads scores from a column of a table"):
            prepare(plan(data), tmp_path / "prepared")
    assert [*tmp_path.iterdir()] == []
    for name in ("gs://b/x.tsv", "gone.tsv.zst:en-de", "-"):  # whether they can be read is another question
        check_scores(DataConfig(corpus=name, min_score=0.5))
    check_scores(DataConfig(corpus="toy", validation_corpus="x.tsv", min_score=0.5))


def test_nothing_left_of_a_pipe_is_said_as_such(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"\n\n")))
    command = ["prepare", "--data", "-", "--validation-data", "copy", "--output", str(tmp_path / "prepared")]
    assert main(command) == 2
    assert "no pair to train on in -, split 'train'" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == []


def test_an_older_corpus_of_a_tsv_keeps_its_split(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Manifests of earlier versions say nothing of how a .tsv was split, which was by pairs, and read, as it stood."""
    (tmp_path / "text.tsv").write_text("".join(f"{i % 7} {i % 11}\t{i}\n" for i in range(300)))
    data = DataConfig(corpus=str(tmp_path / "text.tsv"), held_out=0.1, held_out_by="pair", tsv="plain")
    prepare(plan(data, vocab_size=290), tmp_path / "prepared")
    manifest = json.loads((tmp_path / "prepared/manifest.json").read_text())
    then = {"held_out_by": "pair", "tsv": "plain", "columns": None, "inline_tags": False}
    assert {name: manifest["config"]["data"].pop(name) for name in then} == then
    (tmp_path / "prepared/manifest.json").write_bytes(written({k: v for k, v in manifest.items() if k != "digest"}))
    assert then.items() <= Prepared(tmp_path / "prepared").settings()["data"].items()
    with caplog.at_level("INFO"):
        for held_out_by in (None, "pair"):
            again = dataclasses.replace(data, held_out_by=held_out_by, tsv=None)
            assert prepare(plan(again, vocab_size=290), tmp_path / "prepared")
    assert caplog.text.count("is already prepared") == 2
    with pytest.raises(InputError, match="was prepared with other settings"):
        prepare(plan(dataclasses.replace(data, held_out_by="source"), vocab_size=290), tmp_path / "prepared")


def test_a_pipe_is_kept_where_another_preparation_was_stopped(
    corpus: DataConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [b"".join(f"{word} {i}\t{word} {i}\n".encode() for i in range(211)) for word in ("one", "other")]
    piped, output = DataConfig(corpus="-"), tmp_path / "prepared"

    def given(number: int) -> None:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(texts[number])))

    given(0)
    prepare(plan(piped, vocab_size=300), output)
    given(1)
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "assemble", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            prepare(plan(dataclasses.replace(piped, max_length=64), vocab_size=300), output, overwrite=True)
    given(1)
    made = prepare(plan(piped, vocab_size=300), output, overwrite=True)
    assert made is not None and made.vocabularies[0].processor.decode(made.pairs().sequences()[0][0]).startswith(
        "other"
    )


NUL = [("x\0y", "z"), ("x", "y\0z"), ("x", "y\0z"), ("x\0", "yz"), ("x", "\0yz")]


def test_pairs_with_nul_are_equal_only_to_themselves(tmp_path: Path) -> None:
    (tmp_path / "text.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in NUL), newline="\n")
    data = DataConfig(corpus=str(tmp_path / "text.tsv"), held_out=1e-9, drop_duplicates=True, validation_corpus="toy")
    made = prepare(plan(data, vocab_size=300), tmp_path / "prepared")
    assert made is not None
    assert made.corpora[0]["dropped"]["equal"] == 1


SPACES = ["\u0085", "\u2028", "\x1c", "\u3000", " ", "\t", "\xa0"]


def test_blank_pairs_are_empty_and_no_copies(tmp_path: Path) -> None:
    """Whatever Unicode counts as white space: one of both is the reason, and the pair is left out."""
    (tmp_path / "text").mkdir()
    for split, lines in (("train", [*SPACES, "ein Wort", "same"]), ("val", ["a"])):
        for language in ("en", "de"):
            other = "a word" if language == "de" else "ein Wort"
            text = "".join(f"{other if line == 'ein Wort' else line}\n" for line in lines)
            (tmp_path / "text" / f"{split}.{language}").write_text(text, newline="\n")
    data = DataConfig(corpus=str(tmp_path / "text"), source="en", target="de", drop_copies=True)
    made = prepare(plan(data, vocab_size=290), tmp_path / "prepared")
    assert made is not None
    assert {why: count for why, count in made.corpora[0]["dropped"].items() if count} == {
        "copy": 1,
        "empty": len(SPACES),
    }


def test_a_full_disk_is_called_so(tmp_path: Path) -> None:
    """NumPy's writer would say neither the reason nor the file."""
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "none", str(tmp_path)], capture_output=True
    ).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        pairs = Pairs([str(i) for i in range(9000)], ["x"] * 9000)
        task = SimpleNamespace(number=0, corpus=0, chunk=SimpleNamespace(digest=lambda: "", read=lambda: (pairs, 0)))
        with pytest.raises(OSError, match=r"No space left on device: .*00000\.hashes\.npy"):
            duplicates.Hashing(tmp_path, ("",))(task)  # type: ignore[arg-type]
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_large_vocabularies_have_wider_ids() -> None:
    encoder = SimpleNamespace(vocab_size=2**16 + 1, encode=lambda text: [[2**16] * len(line) for line in text])
    pairs = encode(Pairs(["ab", "c"], ["d", "efg"]), encoder, encoder, 9)  # type: ignore[arg-type]
    assert pairs.ids(0).dtype == np.uint32
    assert pairs.sequences() == ([[2**16, 2**16, 3], [2**16, 3]], [[2**16, 3], [2**16] * 3 + [3]])


@pytest.mark.parametrize(
    ("command", "error"),
    [
        (["--data", "toy", "--part", "3/2"], "--part must be K/N, such as 1/4"),
        (["--data", "-", "--part", "1/2"], "would read a standard input of its own"),
        ([], "no data: give --data"),
        (["--data", "nowhere.tsv"], "there is no such folder"),
        (["--data", "copy", "--tokenizer", "nowhere.model"], "nowhere.model"),
        (["--data", "copy", "--part", "1/2", "--overwrite"], "--overwrite is not for one of several parts"),
    ],
)
def test_wrong_options_are_refused(
    command: list[str], error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["prepare", *command, "--output", str(tmp_path / "prepared")]) == 2
    assert error in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []

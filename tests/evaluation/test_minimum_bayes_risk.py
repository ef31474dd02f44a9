"""Minimum Bayes risk: against all pairs by hand, and by the command, from n-best lists and from draws."""

import dataclasses

import pytest
from sacrebleu import sentence_bleu, sentence_chrf

from tf_transformer import Translator
from tf_transformer.commands.main import main
from tf_transformer.data.corpora import copy_task
from tf_transformer.evaluation.minimum_bayes_risk import METRICS, most_like_all

LINES = [source for source, _ in copy_task.pairs("test")[:5]]
CANDIDATES = [
    "ein Mann schläft .",
    "der Mann schläft auf einer Bank .",
    "ein Mann schläft auf der Bank .",
    "ein Mann schläft auf einer Bank .",
    "zwei Hunde",
    "zwei Hunde",
]


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("chrf", lambda one, other: sentence_chrf(one, [other]).score),
        ("bleu", lambda one, other: sentence_bleu(one, [other], use_effective_order=True).score),
    ],
)
def test_it_is_the_best_of_all_pairs(name, oracle):
    means = {one: sum(oracle(one, other) for other in CANDIDATES) for one in CANDIDATES}
    assert most_like_all(CANDIDATES, METRICS[name]()) == max(means, key=means.get)
    assert most_like_all(CANDIDATES[:4], METRICS[name]()) == CANDIDATES[3]
    assert most_like_all(["b", "a"], METRICS[name]()) == "b"  # equals: the first
    assert most_like_all([""], METRICS[name]()) == ""


@pytest.mark.long
def test_draws_are_as_many_as_asked_for_and_the_first_is_the_only_one(copy_run):
    loaded = Translator.load(copy_run)
    decoding = dataclasses.replace(loaded.decoding, temperature=3.0, seed=3)
    translator = Translator(loaded.model, loaded.source_tokenizer, loaded.target_tokenizer, decoding)
    drawn = translator.n_best_strings(LINES, 7)
    alone = translator.n_best_strings(LINES, 1)
    assert [len(row) for row in drawn] == [7] * len(LINES)
    assert max(len({other for other, _ in row}) for row in drawn) > 1
    for row, [(text, _)] in zip(drawn, alone, strict=True):
        scores = [score for _, score in row]
        assert text in [other for other, _ in row]
        assert scores == sorted(scores, reverse=True)
    assert translator.n_best_strings(LINES[2:3], 7)[0] == [
        (text, pytest.approx(score, abs=1e-4)) for text, score in drawn[2]
    ]


@pytest.mark.long_but_first
@pytest.mark.parametrize("search", [[], ["--sampling-temperature", "0.3", "--samples", "5"], ["--samples", "2"]])
def test_the_command_writes_one_of_the_candidates(copy_run, tmp_path, capsys, search):
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in [*LINES, ""]))
    command = ["translate", "--model", str(copy_run), "--input", str(tmp_path / "in.txt")]
    assert main([*command, "--mbr", "chrf", *search]) == 0
    found = capsys.readouterr().out.splitlines()
    is_drawn = "--sampling-temperature" in search
    listed = [*search[:2], "--n-best", "5"] if is_drawn else ["--n-best", search[1] if search else "4"]
    assert main([*command, *listed]) == 0
    rows = capsys.readouterr().out.splitlines()
    n = len(rows) // len(found)
    for number, text in enumerate(found):
        assert text == most_like_all(
            [row for row in rows[n * number : n * number + n] if row] or [""], METRICS["chrf"]()
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--samples", "3"], "--samples is for --mbr"),
        (["--mbr", "chrf", "--n-best", "2"], "--mbr writes one translation"),
        (["--mbr", "chrf", "--samples", "9"], "n_best must be 1 to 4, the beam_size. Received: 9"),
    ],
)
def test_options_that_make_no_sense_are_refused(copy_run, capsys, options, said):
    assert main(["translate", "--model", str(copy_run), *options]) == 2
    assert said in capsys.readouterr().err

"""Terms reach the translator."""

from tf_transformer.text.glossary import terms_of_line
from tf_transformer.text.with_terms import WithTerms


def test_a_translator_is_given_the_terms_of_each_line() -> None:
    class Recorder:
        def __getattr__(self, name: str) -> object:
            return lambda *arguments, **terms: (name, arguments, terms)

    with_terms = WithTerms(Recorder(), terms_of_line)  # type: ignore[arg-type]
    lines, terms = ["a\tb", "c"], {"terms": [["b"], []]}
    assert with_terms.translate_strings(lines, [1, 2]) == ("translate_strings", (["a", "c"], [1, 2]), terms)
    assert with_terms.n_best_strings(lines, 3, [1, 2]) == ("n_best_strings", (["a", "c"], 3, [1, 2]), terms)
    assert with_terms.aligned_strings(lines) == ("aligned_strings", (["a", "c"], None), terms)

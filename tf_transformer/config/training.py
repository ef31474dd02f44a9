"""The settings of training."""

from dataclasses import dataclass

from tf_transformer.config.fields import Section, setting
from tf_transformer.errors import InputError

STRATEGIES = ("auto", "mirrored", "one-device", "multiworker")
"""The ways to distribute training, as `make_strategy` takes them. This is not a setting, because a run may continue
with another one."""


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Section):
    """How the model is trained, and for how long."""

    max_steps: int = setting(100_000, "total number of updates", option="--max-steps", at_least=1)
    warmup_steps: int = setting(4_000, "updates until the learning rate peaks (paper 5.3)", at_least=1)
    learning_rate_factor: float = setting(1.0, "factor that the paper's learning rate is multiplied by", above=0)
    learning_rate: float | None = setting(
        None, "peak learning rate, instead of the paper's rate times the factor", above=0
    )
    optimizer: str = setting(
        "adam", "adam (the paper), or muon, which learns more from an update", choices=("adam", "muon")
    )
    schedule: str = setting(
        "inverse_sqrt",
        "learning rate after the warm-up: inverse_sqrt (the paper), constant, cosine (down to 0 at max_steps), or "
        "plateau (lowered when validations bring nothing better)",
        choices=("inverse_sqrt", "constant", "cosine", "plateau"),
    )
    plateau_patience: int = setting(
        3, "with schedule=plateau, validations without a better one until the rate is lowered", at_least=1
    )
    plateau_factor: float = setting(
        0.5, "with schedule=plateau, what the rate is multiplied by when it is lowered", above=0, below=1
    )
    weight_decay: float = setting(
        0.0, "weight decay of AdamW, multiplied by the learning rate in each update; 0 uses Adam", at_least=0
    )
    clip_norm: float = setting(0.0, "highest global norm of the gradient; 0 disables clipping", at_least=0)
    accumulate: int = setting(
        1, "number of batches of data.batch_tokens in an update, which are computed one after the other", at_least=1
    )
    label_smoothing: float = setting(
        0.1, "share of the probability spread over the vocabulary (paper 5.4)", at_least=0, below=1
    )
    ema_decay: float = setting(
        0.0,
        "decay of a moving average of the weights, lower at first; the average becomes the model; 0 averages nothing",
        at_least=0,
        below=1,
    )
    mixed_precision: str = setting(
        "float32",
        "type that layers compute in: float32, bfloat16 or float16; weights, logits and loss stay float32",
        option="--mixed-precision",
        choices=("float32", "bfloat16", "float16"),
    )
    seed: int = setting(
        0, "seed of initial weights, dropout and the order of the data", option="--seed", at_least=0, below=2**32
    )
    deterministic: bool = setting(
        False, "get the same bits in every run, at some cost of speed", option="--deterministic"
    )
    init_from: str | None = setting(None, "run to start from with its weights and tokenizer", option="--init-from")
    lora_rank: int = setting(
        0,
        "train only low-rank factors of this rank, beside the frozen weights of init_from (LoRA), and the tokens that "
        "extend has added; 0 trains all weights",
        at_least=0,
    )
    best_by: str = setting("loss", "metric of the best checkpoints: validation loss or bleu", choices=("loss", "bleu"))
    early_stopping: int = setting(
        0, "stop after this many validations without improvement; 0 never stops early", at_least=0
    )
    validate_every: int = setting(
        0, "updates between validations within an epoch; 0 validates at the ends of epochs only", at_least=0
    )
    bleu_every: int = setting(0, "validations between BLEU scores; 0 computes none", at_least=0)
    bleu_sentences: int = setting(500, "number of validation sentences, the first ones, for BLEU", at_least=1)
    bleu_tokenize: str = setting(
        "auto", "sacreBLEU's tokenizer; auto chooses by the target language; none for tokenised text"
    )
    samples: int = setting(3, "sentences whose translations are shown after every validation", at_least=0)
    checkpoint_every: int = setting(1_000, "updates between checkpoints, besides one at every validation", at_least=1)
    keep_last: int = setting(5, "number of latest checkpoints to keep", at_least=1)
    keep_best: int = setting(1, "number of best checkpoints to keep as well", at_least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.best_by == "bleu" and not self.bleu_every:
            raise InputError("best_by=bleu needs bleu_every, such as 1. Received: bleu_every=0")

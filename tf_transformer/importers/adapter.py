"""Adapters of PEFT beside a model, which are added to its weights (LoRA, Hu et al. 2021)."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from tf_transformer.errors import InputError
from tf_transformer.importers.folder import Settings, read_object, shown

CONFIG = "adapter_config.json"
WEIGHTS = "adapter_model.safetensors"
PREFIX = "base_model.model."
FACTOR = re.compile(r"(.+)\.lora_([AB])\.weight")
TAKEN = frozenset({"peft_type", "r", "lora_alpha", "use_rslora", "init_lora_weights", "base_model_name_or_path"})
"""The settings that are read here."""
WITHOUT_EFFECT = frozenset(
    {
        # Which weights have factors, as the names of the factors say; and what matters in training alone.
        *("exclude_modules", "layers_pattern", "layers_to_transform", "lora_dropout", "target_modules"),
        *("auto_mapping", "ensure_weight_tying", "inference_mode", "loftq_config", "megatron_core", "peft_version"),
        *("qalora_group_size", "revision", "runtime_config", "task_type"),
    }
)
INITIAL = (None, True, False, "gaussian", "eva", "orthogonal")
"""The ways to begin the factors that leave the weights of the model as they were."""


def check_has_base(folder: Path) -> None:
    """Raise InputError, which names the base, if a folder holds an adapter without its model."""
    if (folder / CONFIG).exists() and not (folder / "config.json").exists():
        base = read_object(folder / CONFIG).get("base_model_name_or_path")
        raise InputError(
            f"{folder} is an adapter of {shown(base)}, and no model: copy its {CONFIG} and {WEIGHTS} beside the files "
            "of that model, and import that folder"
        )


def merged(
    folder: Path, read: Mapping[str, Callable[[], np.ndarray]], adapter: Mapping[str, Callable[[], np.ndarray]]
) -> dict[str, Callable[[], np.ndarray]]:
    """Return functions that read those weights of a model that an adapter changes, with its factors added.

    Args:
        folder: the folder of both.
        read: reads the arrays of the model by their names.
        adapter: reads those of the adapter.

    Raises:
        InputError: the adapter is of another kind, or belongs to another model.
    """
    scale = _scale(Settings(folder / CONFIG, read_object(folder / CONFIG)))
    factors: dict[str, dict[str, Callable[[], np.ndarray]]] = {}
    for name, reader in adapter.items():
        found = FACTOR.fullmatch(name.removeprefix(PREFIX))
        if found is None or not name.startswith(PREFIX) or f"{found[1]}.weight" not in read:
            raise InputError(f"{folder / WEIGHTS}: {name} is no pair of factors of a weight of the model beside it")
        factors.setdefault(f"{found[1]}.weight", {})[found[2]] = reader
    result: dict[str, Callable[[], np.ndarray]] = {}
    for name, pair in factors.items():
        if pair.keys() != {"A", "B"}:
            raise InputError(f"{folder / WEIGHTS} has one factor of {name} without the other")
        result[name] = _adder(read[name], pair["A"], pair["B"], scale)
    return result


def _scale(settings: Settings) -> float:
    kind = settings.values.get("peft_type")
    if kind != "LORA":
        raise settings.error("peft_type", "LORA, because others cannot be added to the weights", kind)
    initial = settings.values.get("init_lora_weights")
    if initial not in INITIAL:
        raise settings.error("init_lora_weights", "one that leaves the weights of the model as they were", initial)
    for name, value in settings.values.items():
        if name not in TAKEN | WITHOUT_EFFECT and value not in (None, False, "none", [], {}):
            raise settings.error(name, "unset, because an import cannot do it", value)
    rank = settings.integer("r", at_least=1)
    alpha = settings.number("lora_alpha", 8.0)
    return alpha / rank**0.5 if settings.flag("use_rslora", False) else alpha / rank


def _adder(
    weight: Callable[[], np.ndarray], a: Callable[[], np.ndarray], b: Callable[[], np.ndarray], scale: float
) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        base, down, up = (each().astype(np.float32) for each in (weight, a, b))
        if down.ndim != 2 or up.ndim != 2 or (up.shape[0], down.shape[1]) != base.shape or up.shape[1] != len(down):
            raise ValueError(f"factors of shapes {[*up.shape]} and {[*down.shape]} do not fit {[*base.shape]}")
        return base + np.float32(scale) * (up @ down)

    return read

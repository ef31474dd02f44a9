"""How a user overrides a preset: by TOML files, SECTION.KEY=VALUE or nested dictionaries."""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tf_transformer.config.presets import PRESETS
from tf_transformer.config.sections import Config
from tf_transformer.errors import InputError, unknown

SECTIONS = typing.get_type_hints(Config)
"""The classes of the sections."""
HINTS = {section: typing.get_type_hints(kind) for section, kind in SECTIONS.items()}
"""The types of the settings of each section."""
TYPE_NAMES = {int: "an integer", float: "a number", str: "a string", bool: "true or false", types.NoneType: "none"}
"""The names of the types of settings in errors."""


def override(config: Config, *layers: Mapping[str, Any]) -> Config:
    """Return `config` with its settings replaced by layers, nested dictionaries such as `{"model": {"d_model": 64}}`.

    A later layer overrides an earlier one. Only the outcome must be valid, so settings that depend on each other, such
    as `d_model` and `num_heads`, may come in different layers.

    Raises:
        InputError: a key is unknown, or a value has the wrong type or is out of range.
    """
    sections = {f.name: getattr(config, f.name) for f in dataclasses.fields(config)}
    changes: dict[str, dict[str, Any]] = {}
    for layer in layers:
        for section, settings in layer.items():
            if section not in sections:
                raise unknown("section", section, sections)
            if not isinstance(settings, Mapping):
                raise InputError(f"{section} must be a table of settings. Received: {settings!r}")
            for key, value in settings.items():
                if key not in HINTS[section]:
                    raise unknown("key", f"{section}.{key}", (f"{section}.{name}" for name in HINTS[section]))
                changes.setdefault(section, {})[key] = _typed(f"{section}.{key}", value, HINTS[section][key])
    for section, settings in changes.items():
        try:
            sections[section] = dataclasses.replace(sections[section], **settings)
        except InputError as error:
            raise InputError(f"{section}.{error}") from None
    return Config(**sections)


def _typed(key: str, value: Any, hint: Any) -> Any:
    if typing.get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise InputError(f"{key} must be a list, such as [1, 2]. Received: {value!r}")
        return tuple(_typed(key, item, typing.get_args(hint)[0]) for item in value)
    kinds = typing.get_args(hint) or (hint,)
    if value is None and kinds == (str,):
        return "none"  # the word, as in model.share_embeddings=none: a string setting cannot be None
    if type(value) in kinds:
        return value
    if type(value) is int and float in kinds:
        return float(value)
    raise InputError(f"{key} must be {' or '.join(map(TYPE_NAMES.__getitem__, kinds))}. Received: {value!r}")


def read_toml(path: str | Path) -> dict[str, Any]:
    """Return the settings of a TOML file, as `override` takes them. They may include a `preset`."""
    try:
        return tomllib.loads(Path(path).read_text("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a TOML file: {error}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def parse_setting(text: str) -> dict[str, Any]:
    """Return the setting that `section.key=value` gives, as `override` takes it.

    The value is written as in TOML, but none is None, and a bare word is a string. If the setting is a string, so is
    any other value: `data.train_split=2014` needs no quotes.
    """
    name, equals, value = text.partition("=")
    section, dot, key = name.strip().partition(".")
    if not (equals and dot):
        raise InputError(f"a setting is written SECTION.KEY=VALUE, such as model.dropout_rate=0.3. Received: {text!r}")
    section, key, value = section.strip(), key.strip(), value.strip()
    try:
        parsed = None if value == "none" else tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value
    if not isinstance(parsed, str | None) and _is_text(section, key):
        parsed = value
    return {section: {key: parsed}}


def hint_of(section: str, key: str) -> Any:
    """Return the type of a setting, or None if there is no such setting."""
    return HINTS.get(section, {}).get(key)


def field_of(section: str, key: str) -> dataclasses.Field[Any]:
    """Return the field of a setting that exists."""
    return SECTIONS[section].__dataclass_fields__[key]


def _is_text(section: str, key: str) -> bool:
    """Say whether a setting exists and is a string."""
    hint = hint_of(section, key)
    return hint is str or (typing.get_origin(hint) is types.UnionType and str in typing.get_args(hint))


def as_typed(value: Any) -> str:
    """Return a value as `parse_setting` reads it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return str(list(value))
    return "none" if value is None else str(value)


def settings_help() -> str:
    """Return a line for every setting with its default, as you type it, its meaning, and the option that sets it.

    If presets have other values, the line ends with the value of each preset.
    """
    lines = []
    for section in dataclasses.fields(Config):
        for field in dataclasses.fields(SECTIONS[section.name]):
            option = f" ({field.metadata['option']})" if field.metadata["option"] else ""
            values = {name: getattr(getattr(preset, section.name), field.name) for name, preset in PRESETS.items()}
            own = ", ".join(f"{name} {as_typed(value)}" for name, value in values.items())
            shown = "" if set(values.values()) == {field.default} else f" [{own}]"
            default = as_typed(field.default)
            lines.append(f"  {section.name}.{field.name}={default}  {field.metadata['help']}{option}{shown}")
    return "\n".join(lines)

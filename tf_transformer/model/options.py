"""Options of the layers: constructors take the fields of a dataclass as keywords, and document them."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Options = TypeVar("Options")
Class = TypeVar("Class", bound=type)


def taken(options: type[Options], keywords: dict[str, Any]) -> tuple[Options, dict[str, Any]]:
    """Return an instance of `options`, made from those keywords that are its fields, and the others, for Keras."""
    ours = {field.name for field in dataclasses.fields(options)}  # type: ignore[arg-type]
    return (
        options(**{name: value for name, value in keywords.items() if name in ours}),
        {name: value for name, value in keywords.items() if name not in ours},
    )


def passed_on(options: Any, to: type) -> dict[str, Any]:
    """Return as keywords the fields of `options` that the dataclass `to` has as well."""
    return {field.name: getattr(options, field.name) for field in dataclasses.fields(to)}


def with_options(options: type) -> Callable[[Class], Class]:
    """Show the fields of a dataclass, which the constructor takes by `taken`, in the signature of a class.

    In its docstring, they replace the line `{options}`.
    """

    def shown(cls: Class) -> Class:
        signature = inspect.signature(cls)
        *before, others = signature.parameters.values()
        fields = dataclasses.fields(options)
        added = [
            inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=field.type)
            for field in fields
        ]
        cls.__signature__ = signature.replace(parameters=[*before, *added, others])  # type: ignore[attr-defined]
        lines = [f"{field.name}: {field.metadata['help']}. Default: {field.default!r}." for field in fields]
        cls.__doc__ = (cls.__doc__ or "").replace("{options}", "\n        ".join(lines))
        return cls

    return shown

"""Sentences in the JSON of TensorFlow Serving's REST API."""

import base64
import binascii
import collections
import json
from typing import Any

import numpy as np

from tf_transformer.serving.limits import Refused
from tf_transformer.serving.tensors import Columns, check_names


def parse(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request.

    Raises:
        Refused: the body is not JSON, or not an object, or an object in it has two values for a key.
    """
    try:
        request = json.loads(body, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"JSON Parse error: {error}") from None
    if not isinstance(request, dict):
        raise Refused(400, f"the body must be a JSON object. Received: {type(request).__name__}")
    return request


def columns_of(request: dict[str, Any], inputs: tuple[str, ...]) -> Columns:
    """Return the sentences of a request, which has the form of rows (`instances`) or of columns (`inputs`).

    Args:
        request: the object in the body.
        inputs: the names of the inputs of the signature. The request may leave out the name of a single input.

    Raises:
        Refused: the request has neither form or both, has other names, or has values that are not strings.
    """
    forms = [form for form in ("instances", "inputs") if form in request]
    if len(forms) != 1:
        raise Refused(400, f"give either 'instances' or 'inputs'. Received: {' and '.join(forms) or 'neither'}")
    given = request[forms[0]]
    if forms[0] == "inputs":
        named = isinstance(given, dict)
        columns = given if named else _unnamed(given, inputs)
    else:
        named = isinstance(given, list) and bool(given) and _is_named(given[0])
        rows = _list(given, "instances")
        for row in rows:
            if _is_named(row) != named:
                raise Refused(400, "'instances' must all be objects of named inputs, or all be strings")
            if named:
                check_names(row, inputs)
        columns = (
            {name: [row[name] for row in rows] for name in inputs} if named or not rows else _unnamed(rows, inputs)
        )
    check_names(columns, inputs)
    return {name: [_text(value, name) for value in _list(columns[name], name)] for name in inputs}


def answer(outputs: dict[str, np.ndarray], by_rows: bool) -> dict[str, Any]:
    """Return outputs [B, ...] in the form of the request; the name of a single output is left out."""
    columns = {name: _values(array) for name, array in outputs.items()}
    if by_rows:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        return {"predictions": [next(iter(row.values())) for row in rows] if len(columns) == 1 else rows}
    return {"outputs": next(iter(columns.values())) if len(columns) == 1 else columns}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        [(twice, _)] = collections.Counter(key for key, _ in pairs).most_common(1)
        raise Refused(400, f"an object has the key {twice[:100]!r} twice")
    return made


def _is_named(row: Any) -> bool:
    return isinstance(row, dict) and row.keys() != {"b64"}


def _unnamed(values: Any, inputs: tuple[str, ...]) -> dict[str, Any]:
    if len(inputs) != 1:
        raise Refused(400, f"name the inputs of this signature: {', '.join(inputs)}")
    return {inputs[0]: values}


def _list(values: Any, name: str) -> list[Any]:
    if not isinstance(values, list):
        raise Refused(400, f"{name!r} must be a list. Received: {type(values).__name__}")
    return values


def _text(value: Any, name: str) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")  # a lone surrogate is treated like any invalid UTF-8
    if isinstance(value, dict) and value.keys() == {"b64"} and isinstance(value["b64"], str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            raise Refused(400, f"{name!r} has a b64 value that is not base64") from None
    raise Refused(400, f"{name!r} must be a list of strings. Received: {type(value).__name__} in the list")


def _values(array: np.ndarray) -> Any:
    """Return an array as lists, with numbers of no more digits than float32 has."""
    if array.ndim > 1:
        return [_values(row) for row in array]
    if array.dtype == object:
        return [value.decode("utf-8", "replace") for value in array]
    if array.dtype == np.float32:
        return array.astype(str).astype(np.float64).tolist()
    return array.tolist()

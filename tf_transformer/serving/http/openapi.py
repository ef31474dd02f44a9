"""The OpenAPI description of the REST API."""

from typing import Any

from tf_transformer.runs.descriptions import LANGUAGES
from tf_transformer.runs.signatures import DEFAULT, WITH_TERMS
from tf_transformer.serving.model import ServedModel
from tf_transformer.version import __version__


def description(model: ServedModel) -> dict[str, Any]:
    """Return the OpenAPI description of the server of a model."""
    most = model.limits.max_sentences
    text = {
        "oneOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {"b64": {"type": "string", "format": "byte"}},
                "required": ["b64"],
                "additionalProperties": False,
            },
        ]
    }
    texts = {"type": "array", "items": text, "maxItems": most}
    words = {"type": "string", "pattern": r"^\w+( \w+)*$"}
    of_kind: dict[str, Any] = {"prefix_ids": {"type": "string", "pattern": "^([0-9]{1,2}( [0-9]{1,2}){0,3})?$"}}
    forms: list[Any] = []
    for name, inputs in sorted(model.version.signatures.inputs.items()):
        # The empty name stands for the default signature, as in TensorFlow Serving.
        named = {"signature_name": {"enum": [name, ""] if name == DEFAULT else [name]}}
        required = [] if name == DEFAULT else ["signature_name"]
        rows = {"type": "array", "items": _object({name: of_kind.get(name, text) for name in inputs}), "maxItems": most}
        allowed = [("instances", rows)]
        # Several inputs may be columns too, but a schema cannot say that these must have the same length.
        if len(inputs) == 1:
            allowed += [("instances", texts), ("inputs", texts), ("inputs", _object(dict.fromkeys(inputs, texts)))]
        forms += [_object(named | {form: values}, [form, *required]) for form, values in allowed]
    predict = {
        "post": {
            "summary": "Call a signature",
            "requestBody": {"required": True, "content": {"application/json": {"schema": {"anyOf": forms}}}},
            "responses": _responses(
                {
                    "type": "object",
                    "properties": {"predictions": {"type": "array"}, "outputs": {}},
                    "minProperties": 1,
                    "maxProperties": 1,
                },
                *("400", "403", "404", "408", "413", "429", "504"),
            ),
        }
    }
    string = {"type": "string"}
    found = _object({"text": string, "translation": string})
    given: dict[str, Any] = {"text": {"type": "string", "pattern": r"\S"}}
    if model.version.admission.languages:
        given |= dict.fromkeys(LANGUAGES, string)
    if WITH_TERMS in model.version.signatures.inputs:
        given["glossary"] = {"type": "object", "propertyNames": words, "additionalProperties": words}
    translate = {
        "post": {
            "summary": "Translate a text as it is written, sentence by sentence",
            "requestBody": {"required": True, "content": {"application/json": {"schema": _object(given, ["text"])}}},
            "responses": _responses(
                _object({"translation": string, "sentences": {"type": "array", "items": found}}),
                *("400", "403", "404", "408", "413", "429", "504"),
            ),
        }
    }
    status = {"get": {"summary": "Which version is served", "responses": _responses({"type": "object"}, "400", "404")}}
    metadata = {"get": {"summary": "The signatures", "responses": _responses({"type": "object"}, "400", "404")}}
    plain = {"200": {"description": "Text", "content": {"text/plain": {"schema": {"type": "string"}}}}}
    one = f"/v1/models/{model.name}"
    number = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer", "minimum": 0}}
    paths: dict[str, Any] = {}
    for path, parameters in ((one, []), (f"{one}/versions/{{number}}", [number])):
        for end, operation in ((":predict", predict), (":translate", translate), ("", status), ("/metadata", metadata)):
            paths[path + end] = operation | {"parameters": parameters}
    return {
        "openapi": "3.1.0",
        "info": {"title": f"tf-transformer serve: {model.name}", "version": __version__},
        "paths": paths
        | {
            "/healthz": {"get": {"summary": "Whether the server is up", "responses": plain}},
            "/readyz": {
                "get": {"summary": "Which signatures are warm", "responses": _responses({"type": "object"}, "503")}
            },
            "/metrics": {"get": {"summary": "Metrics for Prometheus", "responses": plain}},
        },
    }


def _object(properties: dict[str, Any], required: list[str] | None = None) -> dict[str, Any]:
    shown = {"type": "object", "properties": properties, "required": required or list(properties)}
    return shown if required else shown | {"additionalProperties": False}


def _responses(answer: dict[str, Any], *errors: str) -> dict[str, Any]:
    error = {"type": "object", "properties": {"error": {"type": "string"}}, "required": ["error"]}
    described = {"200": answer} | dict.fromkeys(errors, error)
    return {
        status: {
            "description": "The answer" if status == "200" else "Refused",
            "content": {"application/json": {"schema": schema}},
        }
        for status, schema in described.items()
    }

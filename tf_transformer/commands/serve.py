"""`tf-transformer serve`."""

import argparse
import dataclasses
from pathlib import Path

from tf_transformer.commands.common.options import port, seconds
from tf_transformer.commands.common.quiet_tensorflow import import_tensorflow
from tf_transformer.config import DataConfig
from tf_transformer.data.corpora.translated_file import ENDINGS, PLAIN, TranslatedFile, TranslatedPage
from tf_transformer.errors import InputError, missing_extra
from tf_transformer.runs.descriptions import is_run, refuse_web
from tf_transformer.serving.http.origin import origins
from tf_transformer.serving.keys import Keys
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.ports import Ports

SUMMARY = "Serve an export with TensorFlow Serving's REST and gRPC APIs, and a page to try it (needs the extra serve)."
EXAMPLE = "tf-transformer serve saved_models/toy"


def _opened(name: str, raw: bytes, source: str | None, target: str) -> TranslatedFile:
    return TranslatedFile(Path(name), False, DataConfig(source=source, target=target), raw)


KINDS = (*ENDINGS, PLAIN), _opened, TranslatedPage
"""The files that clients may send, what opens them, and what opens a page that is sent as text."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    parser.add_argument(
        "path",
        metavar="DIR",
        help="an exported SavedModel or an export for LiteRT, or a folder of versions, such as 1 and 2",
    )
    parser.add_argument("--name", metavar="NAME", help="the model's name in the API (default: the name of the folder)")
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="where to listen (default: %(default)s)")
    for name, number, what in (("--port", 8501, "REST and the page"), ("--grpc-port", 8500, "gRPC")):
        parser.add_argument(
            name,
            type=port,
            default=number,
            metavar="N",
            help=f"port of {what}; 0 takes a free one (default: %(default)s)",
        )
    parser.add_argument(
        "--poll-seconds",
        type=seconds,
        default=2.0,
        metavar="S",
        help="seconds between checks for a newer version, which then takes over (default: %(default)g)",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="origin of pages that may use the API from a browser, such as https://app.example, or * for all; may be "
        "repeated (default: only the server's own page)",
    )
    parser.add_argument(
        "--access-log",
        action="store_true",
        help="write a line for each request to standard error: API, what is called, status, milliseconds",
    )
    parser.add_argument(
        "--api-key",
        metavar="FILE",
        help="a file of the keys of those who may translate, one a line, each followed by the most requests per minute "
        "if it has a limit; a client gives its key as LibreTranslate's clients do, or in the header Authorization: "
        "Bearer KEY (default: no key is needed)",
    )
    limits = parser.add_argument_group("limits")
    for field in dataclasses.fields(Limits):
        kind: type = float if isinstance(field.default, float) else int
        option, what = f"--{field.name.replace('_', '-')}", field.metadata["help"]
        limits.add_argument(
            option, type=kind, default=field.default, metavar="N", help=f"{what} (default: {field.default})"
        )


def run(options: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    limits = Limits(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Limits)})
    _check_folder(Path(options.path))
    allowed = origins(options.allow_origin)
    keys = Keys(options.api_key)
    ports = Ports(options.host, options.port, options.grpc_port)
    import_tensorflow(onednn=False)
    try:
        from tf_transformer.serving import server
        from tf_transformer.serving.http.files import FileKinds
    except ModuleNotFoundError as error:
        raise missing_extra("serve", "serve", error) from None
    server.serve(
        options.path,
        ports,
        name=options.name,
        poll_seconds=options.poll_seconds,
        limits=limits,
        origins=allowed,
        access_log=options.access_log,
        keys=keys,
        kinds=FileKinds(*KINDS),
    )


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder")
    refuse_web(path)
    if is_run(path):
        raise InputError(
            f"{path} is a run directory, and exports are served: first "
            f"tf-transformer export --run-dir {path} --output saved_models/{path.resolve().name}/1"
        )

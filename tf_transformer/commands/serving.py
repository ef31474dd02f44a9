"""The command that serves an export."""

import argparse
import dataclasses
from pathlib import Path

from tf_transformer.errors import InputError
from tf_transformer.quiet import import_tensorflow
from tf_transformer.serving.limits import Limits


def serve(options: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    limits = Limits(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Limits)})
    if not Path(options.path).is_dir():
        raise InputError(f"{options.path}: there is no such folder")
    import_tensorflow(onednn=False)
    try:
        from tf_transformer.serving import server
    except ModuleNotFoundError as error:
        raise InputError(f"serve needs the extra serve: pip install 'tf-transformer[serve]' ({error})") from None
    server.serve(
        options.path,
        name=options.name,
        host=options.host,
        port=options.port,
        grpc_port=options.grpc_port,
        poll_seconds=options.poll_seconds,
        limits=limits,
    )

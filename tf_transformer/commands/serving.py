"""The command that serves an export."""

import argparse
import dataclasses
from pathlib import Path

from tf_transformer.descriptions import OF_RUN, is_export
from tf_transformer.errors import InputError
from tf_transformer.quiet import import_tensorflow
from tf_transformer.serving.limits import Limits
from tf_transformer.serving.origin import origins
from tf_transformer.serving.ports import Ports


def serve(options: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    limits = Limits(**{field.name: getattr(options, field.name) for field in dataclasses.fields(Limits)})
    _check_folder(Path(options.path))
    allowed = origins(options.allow_origin)
    ports = Ports(options.host, options.port, options.grpc_port)
    import_tensorflow(onednn=False)
    try:
        from tf_transformer.serving import server
    except ModuleNotFoundError as error:
        raise InputError(f"serve needs the extra serve: pip install 'tf-transformer[serve]' ({error})") from None
    server.serve(
        options.path,
        ports,
        name=options.name,
        poll_seconds=options.poll_seconds,
        limits=limits,
        origins=allowed,
        access_log=options.access_log,
    )


def _check_folder(path: Path) -> None:
    if not path.is_dir():
        raise InputError(f"{path}: there is no such folder")
    if (path / OF_RUN).exists() and not is_export(path):
        raise InputError(
            f"{path} is a run directory, and exports are served: first "
            f"tf-transformer export --run-dir {path} --output saved_models/{path.resolve().name}/1"
        )

"""The languages of a corpus that has several."""

from tf_transformer.config import DataConfig
from tf_transformer.errors import InputError


def languages_of(data: DataConfig) -> tuple[str, str]:
    """Return the languages of source and target.

    Raises:
        InputError: they are not given, or the same.
    """
    if not (data.source and data.target):
        raise InputError(f"--data {data.corpus} needs the languages: give --source and --target, such as en and de")
    if data.source == data.target:
        raise InputError(f"--source and --target must differ. Received: {data.source} twice")
    return data.source, data.target

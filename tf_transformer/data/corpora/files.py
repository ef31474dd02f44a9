"""The kinds of corpora that are one file."""

from tf_transformer.data.corpora.drawn import PACKED, Drawn
from tf_transformer.data.corpora.localization import Ts, Xliff
from tf_transformer.data.corpora.po import Po
from tf_transformer.data.corpora.separated import Csv
from tf_transformer.data.corpora.table import Table
from tf_transformer.data.corpora.tmx import Tmx
from tf_transformer.data.corpora.tsv import Tsv
from tf_transformer.data.corpora.xlsx import Xlsx

FILES: tuple[type[Drawn], ...] = (Tsv, Csv, Xlsx, Tmx, Xliff, Po, Ts)
ENDINGS = tuple(ending for kind in FILES for ending in kind.endings)
TABLES = tuple(ending for kind in FILES if issubclass(kind, Table) for ending in kind.endings)
"""The endings of those with columns."""


def listed() -> str:
    """Return the endings of all kinds, for errors."""
    *rest, last = (kind.endings[0] for kind in FILES)
    packed = " or ".join(ending for ending in PACKED if ending)
    return f"{', '.join(rest)} or {last}, all but .xlsx also as {packed}"

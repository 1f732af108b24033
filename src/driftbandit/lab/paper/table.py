"""Items' data that are no regret curves, as Parquet with where they come from in the file's metadata."""

import json
from pathlib import Path
from typing import Any

from driftbandit.lab.experiments.result import source_digest, versions
from driftbandit.lab.support.files import replacing, writable

_KEY = b"driftbandit"


def save_columns(columns: dict[str, Any], path: Path, note: dict[str, Any]) -> None:
    """Write columns of equal length, with `note`, versions and a digest of the sources beside them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    story = {"versions": versions(), "source": source_digest(), **note}
    table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(story).encode()})
    with replacing(writable(path)) as draft:
        pq.write_table(table, draft, compression="zstd", write_page_checksum=True)


def note_in(path: Path) -> dict[str, Any]:
    """What is noted in a Parquet file of ours; nothing if it is absent, damaged or not ours."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = json.loads((pq.read_schema(path).metadata or {})[_KEY])
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return {}
    return found if isinstance(found, dict) else {}

from __future__ import annotations

import re

#: How the names of files end that a parser reads, as the command line knows them.
ENDINGS = {
    "csv": ("csv", "tsv", "txt"),
    "json": ("json",),
    "ndjson": ("ndjson", "jsonl"),
    "parquet": ("parquet", "pq"),
    "npy": ("npy",),
    "xlsx": ("xlsx", "xlsm"),
    "hdf5": ("h5", "hdf5", "he5"),
    "netcdf": ("nc", "nc4"),
    "zip": ("zip", "npz"),
}


def parser_of(name: str) -> str:
    """The parser of files with this name, such as day.csv or day.csv.gz; `blob` keeps those of other names."""
    found = re.search(r"\.([^./]+)(?:\.(?:gz|zst))?$", name, re.IGNORECASE)
    ending = found.group(1).lower() if found else ""
    return next((parser for parser, endings in ENDINGS.items() if ending in endings), "blob")

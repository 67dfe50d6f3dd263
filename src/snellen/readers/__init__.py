"""Benchmark readers: rows of folders, files and public data sets become items and probes."""

from snellen.readers.catalog import KNOWN, Known, known
from snellen.readers.loading import load_benchmark
from snellen.readers.selection import LoadOptions

__all__ = ["KNOWN", "Known", "LoadOptions", "known", "load_benchmark"]

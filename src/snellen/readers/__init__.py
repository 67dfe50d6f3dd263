"""Benchmark readers: rows of folders, files and public data sets become items and probes."""

from snellen.readers.catalog import KNOWN, Known, known, taxonomy
from snellen.readers.checks import check_benchmark
from snellen.readers.findings import Problem
from snellen.readers.info import BenchmarkInfo, info
from snellen.readers.loading import load_benchmark
from snellen.readers.replies import ReplyFile, load_replies, read_replies
from snellen.readers.selection import LoadOptions

__all__ = [
    "KNOWN",
    "BenchmarkInfo",
    "Known",
    "LoadOptions",
    "Problem",
    "ReplyFile",
    "check_benchmark",
    "info",
    "known",
    "load_benchmark",
    "load_replies",
    "read_replies",
    "taxonomy",
]

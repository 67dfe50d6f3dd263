"""Benchmark readers: rows of folders, files and public data sets become items and probes."""

from snellen.readers.catalog import KNOWN, Known, known, taxonomy
from snellen.readers.checks import check_benchmark
from snellen.readers.findings import Problem
from snellen.readers.load import load_benchmark
from snellen.readers.replies import ReplyFile, load_replies, read_replies
from snellen.readers.selection import LoadOptions
from snellen.readers.statistics import BenchmarkInfo, info

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

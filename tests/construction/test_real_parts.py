"""Stages with real parts: a small language model behind llama.cpp, and real segmentation classes.

The words of so small a model are poor. Its letters are forced by a grammar, so that the form holds.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.worlds.capprobe_world import PICTURES, PLAYERS, config, construct, paint
from tests.worlds.real_server import MODEL, RealServer, missing_parts

from snellen.builders.options import SegmentOptions, VerifyOptions
from snellen.construction.config import BuildConfig, RoleTable
from snellen.construction.files import read_funnel
from snellen.pictures.masks import decode_mask, encode_mask
from snellen.segment.regions import box_of
from snellen.settings import ModelSettings

pytestmark = pytest.mark.slow


@pytest.mark.skipif(bool(missing_parts()), reason=f"not installed: {', '.join(missing_parts())}")
def test_a_small_language_model_guesses_blind(tmp_path: Path) -> None:
    """The checker is a real server with a grammar of four letters: each draw is one letter."""
    checks = VerifyOptions(enabled=True, blind="flag", blind_draws=2, blind_hits=2, agreement="off")
    source, out = paint(tmp_path / "in", 1), tmp_path / "out"
    base = config(most=3, verify=checks)
    scripted = {role: given for role, given in PLAYERS.items() if role != "checker"}
    with RealServer() as server:
        params = {"grammar": "root ::= [A-D]", "max_tokens": 2, "temperature": 1.0}
        table = RoleTable(MODEL, ModelSettings(server.url, MODEL, params=params), MODEL)
        wired = BuildConfig(0, {"checker": (table,)}, base.options)
        built = construct(source, out, until="verify", config=wired, players=scripted)
    record = read_funnel(out)[-1]
    assert built.exit_code == 0
    assert record.calls == 2 * record.entered > 0
    assert record.tokens > 0
    assert "blind_unreadable" not in record.counts


def bundled_pixels(*names: str) -> list[np.ndarray[Any, Any]]:
    found = []
    for name in names:
        with Image.open(PICTURES / name) as opened:
            found.append(np.asarray(opened.convert("RGB")))
    return found


def test_a_real_yolo_class_with_random_weights_gives_masks_of_the_pictures_shape() -> None:
    """Built from its yaml: what it finds has the picture's shape, and packs into run lengths."""
    pytest.importorskip("torch")
    pytest.importorskip("ultralytics")
    from snellen.segment.models import TwoModels, load_things

    pictures = bundled_pixels("cat.jpg", "coins.jpg")
    # Random weights are sure of nothing: every guess is taken.
    options = SegmentOptions(source="yolo+sam3", min_score=0.0, concepts=(), device="cpu")
    models = TwoModels(options, things=load_things("yolo11n-seg.yaml"), stuff=(None, None))
    found = models.regions(pictures)
    assert any(found)
    for pixels, regions in zip(pictures, found, strict=True):
        for one in regions:
            assert one.mask.shape == pixels.shape[:2]
            if one.mask.any():
                assert (decode_mask(encode_mask(one.mask)) == one.mask).all()
                ymin, xmin, ymax, xmax = box_of(one.mask)
                assert 0 <= ymin < ymax <= 1000
                assert 0 <= xmin < xmax <= 1000

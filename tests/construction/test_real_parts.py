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
from snellen.segment.models import TwoModels, load_things
from snellen.segment.regions import Found, box_of, choose
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


def check(pictures: list[np.ndarray[Any, Any]], found: list[list[Found]]) -> None:
    """Masks have their picture's shape, pack into run lengths, and boxes are in thousandths."""
    assert any(found)
    for pixels, regions in zip(pictures, found, strict=True):
        for one in regions:
            assert one.mask.shape == pixels.shape[:2]
            if one.mask.any():
                assert (decode_mask(encode_mask(one.mask)) == one.mask).all()
                ymin, xmin, ymax, xmax = box_of(one.mask)
                assert 0 <= ymin < ymax <= 1000
                assert 0 <= xmin < xmax <= 1000
                assert 0 <= (one.score or 0.0) <= 1


@pytest.mark.filterwarnings("ignore")
def test_a_real_yolo_class_with_random_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Built from its yaml and asked for all guesses: things in masks of the pictures' shapes."""
    monkeypatch.setenv("YOLO_OFFLINE", "true")
    monkeypatch.setenv("YOLO_CONFIG_DIR", str(tmp_path))
    pytest.importorskip("ultralytics")
    pictures = bundled_pixels("cat.jpg", "coins.jpg")
    options = SegmentOptions(source="yolo+sam3", min_score=0.0, concepts=(), device="cpu")
    models = TwoModels(options, things=load_things("yolo11n-seg.yaml"), stuff=(None, None))
    found = models.regions(pictures)
    check(pictures, found)
    assert {one.nature for regions in found for one in regions} == {"thing"}


class NoThings:
    """A class of things that finds none."""

    masks = None

    def predict(self, pictures: list[Any], **_: Any) -> list[NoThings]:
        return [self for _ in pictures]


@pytest.mark.filterwarnings("ignore")
def test_a_real_sam_class_with_random_weights() -> None:
    """The SAM 3 class, two layers deep, with a tokenizer of two words: stuff by concept."""
    transformers = pytest.importorskip("transformers", minversion="5.0")
    pytest.importorskip("torch")
    tokenizers = pytest.importorskip("tokenizers")
    words = {"<unk>": 0, "<s>": 1, "</s>": 2, "<pad>": 3, "sky": 4, "ground": 5}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>",
        pad_token="<pad>", model_max_length=32,
    )  # fmt: skip
    settings = transformers.Sam3Config()
    settings.vision_config.backbone_config.num_hidden_layers = 2
    settings.vision_config.backbone_config.global_attn_indexes = [1]
    settings.text_config.num_hidden_layers = 2
    settings.detr_encoder_config.num_layers = settings.detr_decoder_config.num_layers = 1
    model = transformers.Sam3Model(settings).eval()
    processor = transformers.Sam3Processor(transformers.Sam3ImageProcessor(), fast)
    options = SegmentOptions(source="yolo+sam3", min_score=0.0, concepts=("sky",), device="cpu")
    pictures = bundled_pixels("cat.jpg")
    found = TwoModels(options, things=NoThings(), stuff=(model, processor)).regions(pictures)
    check(pictures, found)
    assert {(one.guess, one.nature) for one in found[0]} == {("sky", "stuff")}
    kept, left = choose(found[0], SegmentOptions(max_regions=5))
    assert len(kept) <= 5
    assert len(kept) + len(left) == len(found[0])

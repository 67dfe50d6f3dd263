"""Regions from segmentation classes: things from a YOLO class, stuff and the rest from SAM 3.

Neither is a dependency of Snellen: they are loaded late, by path or hub id, where installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from snellen.builders.options import SegmentOptions
from snellen.errors import MissingExtraError, SettingsError
from snellen.segment.regions import Found

Pixels = NDArray[np.uint8]
Loaded: TypeAlias = Any
"""An object of a library without types, which may be absent."""


class TwoModels:
    """Segments pictures in batches, on the GPU where there is one.

    `things` and `stuff` are the two classes once loaded; given, they are used as they are.
    """

    def __init__(
        self, options: SegmentOptions, *, things: Loaded = None, stuff: Loaded = None
    ) -> None:
        self._options = options
        self._device = options.device
        if not self._device:
            try:
                import torch
            except ImportError as error:
                raise MissingExtraError("torch", "segment") from error
            self._device = "cuda" if torch.cuda.is_available() else "cpu"
        self._things = things if things is not None else load_things(options.things)
        self._stuff = stuff if stuff is not None else load_stuff(options.stuff, self._device)

    def regions(self, pictures: Sequence[Pixels]) -> list[list[Found]]:
        """The regions of each picture (height, width, 3): things first."""
        things = self._find_things(pictures)
        return [
            [*found, *self._find_stuff(pixels)]
            for pixels, found in zip(pictures, things, strict=True)
        ]

    def _find_things(self, pictures: Sequence[Pixels]) -> list[list[Found]]:
        results = self._things.predict(
            # This class takes pictures with blue first, as OpenCV does.
            [np.ascontiguousarray(one[..., ::-1]) for one in pictures],
            conf=self._options.min_score,
            device=self._device,
            retina_masks=True,
            verbose=False,
        )
        return [
            list(self._things_of(result, pixels.shape[:2]))
            for result, pixels in zip(results, pictures, strict=True)
        ]

    def _things_of(self, result: Loaded, shape: tuple[int, int]) -> Iterator[Found]:
        if result.masks is None:
            return
        masks = result.masks.data.cpu().numpy()
        boxes = result.boxes
        for mask, kind, score in zip(masks, boxes.cls.tolist(), boxes.conf.tolist(), strict=True):
            if mask.shape != shape:
                raise SettingsError(
                    f"the segmentation class gives masks of {mask.shape}, expected {shape}",
                    hint="install a version of ultralytics that knows retina_masks",
                )
            yield Found(mask > 0.5, result.names[int(kind)], "thing", float(score))

    def _find_stuff(self, pixels: Pixels) -> Iterator[Found]:
        model, processor = self._stuff
        import torch

        # The class warns of arrays that it may not write to.
        pixels = np.array(pixels)
        for concept in self._options.concepts:
            inputs = processor(images=pixels, text=concept, return_tensors="pt").to(self._device)
            with torch.inference_mode():
                outputs = model(**inputs)
            [found] = processor.post_process_instance_segmentation(
                outputs,
                threshold=self._options.min_score,
                mask_threshold=0.5,
                target_sizes=[pixels.shape[:2]],
            )
            for mask, score in zip(found["masks"], found["scores"], strict=True):
                yield Found(np.asarray(mask.cpu(), dtype=bool), concept, "stuff", float(score))


def load_things(weights: str) -> Loaded:
    """The YOLO segmentation class with weights, or without any from its `.yaml`.

    It is under the AGPL: Snellen uses it where the user has installed it. On import it writes its
    settings (YOLO_CONFIG_DIR), and looks for a network unless YOLO_OFFLINE is true.

    Raises:
        MissingExtraError: ultralytics is not installed.
    """
    try:
        from ultralytics import YOLO
    except ImportError as error:
        message = MissingExtraError("ultralytics", "segment")
        message.hint = "install it with: pip install ultralytics (its licence is the AGPL-3.0)"
        raise message from error
    if not weights.endswith(".yaml") and "/" in weights and not Path(weights).exists():
        raise SettingsError(f"[segment]: there are no weights {weights}", hint="set things = PATH")
    return YOLO(weights)


def load_stuff(weights: str, device: str) -> tuple[Loaded, Loaded]:
    """The SAM 3 class and its processor, by path or hub id.

    Raises:
        MissingExtraError: transformers is not installed.
        SettingsError: there are no such weights.
    """
    try:
        from transformers import Sam3Model, Sam3Processor
    except ImportError as error:
        raise MissingExtraError("transformers with SAM 3", "segment") from error
    try:
        model = Sam3Model.from_pretrained(weights).to(device).eval()
        return model, Sam3Processor.from_pretrained(weights)
    except (OSError, ValueError) as error:
        raise SettingsError(
            f"[segment]: SAM 3 cannot be loaded from {weights}: {str(error).splitlines()[0]}",
            hint="set stuff to a folder of weights, or log in to the hub",
        ) from error

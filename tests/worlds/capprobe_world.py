"""Scripted models that really look at pictures, and builds of small benchmarks with them.

The matcher, the describer and two question writers measure colours, brightness and texture of what
they are shown. Their words are few, and true.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from snellen.builders.options import DedupOptions, SegmentOptions, SelectOptions
from snellen.construction.build import BuildRequest, Built, build
from snellen.construction.capprobe import CAPPROBE
from snellen.construction.config import BuildConfig

ROOT = Path(__file__).parents[2]
PICTURES = ROOT / "src" / "snellen" / "data" / "mini" / "images"
Messages = Sequence[Mapping[str, Any]]

COLOURS = {
    "black": (15, 15, 15), "white": (240, 240, 240), "grey": (128, 128, 128),
    "red": (200, 30, 30), "orange": (230, 130, 30), "yellow": (235, 215, 60),
    "green": (50, 140, 60), "blue": (40, 80, 190), "purple": (120, 60, 150),
    "pink": (235, 150, 180), "brown": (120, 75, 40),
}  # fmt: skip


def text_of(messages: Messages) -> str:
    parts = [p for m in messages for p in ([{"text": m["content"]}]
             if isinstance(m["content"], str) else m["content"])]  # fmt: skip
    return "\n".join(part["text"] for part in parts if "text" in part)


def pictures_of(messages: Messages) -> list[np.ndarray[Any, Any]]:
    uris = [p["image_url"]["url"] for m in messages if isinstance(m["content"], list)
            for p in m["content"] if p.get("type") == "image_url"]  # fmt: skip
    found = []
    for uri in uris:
        with Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))) as opened:
            small = opened.convert("RGB")
            small.thumbnail((96, 96))
            found.append(np.asarray(small, dtype=float))
    return found


def number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def colour_of(pixels: np.ndarray[Any, Any]) -> str:
    """The name of the colour that most pixels are nearest to."""
    flat = pixels.reshape(-1, 3)
    far = np.stack([np.linalg.norm(flat - np.array(rgb), axis=1) for rgb in COLOURS.values()], 1)
    return list(COLOURS)[int(np.bincount(far.argmin(axis=1), minlength=len(COLOURS)).argmax())]


def matcher(messages: Messages) -> str:
    """Two of the listed labels, chosen by the picture's mean colour."""
    labels = re.findall(r"^- (.+)$", text_of(messages), re.MULTILINE)
    [pixels] = pictures_of(messages)
    pick = int(pixels.mean()) % len(labels)
    chosen = [{"label": labels[pick], "confidence": 0.93}]
    if len(labels) > 1:
        chosen.append({"label": labels[(pick + 1) % len(labels)], "confidence": 0.4})
    return json.dumps({"labels": chosen})


def describer(messages: Messages) -> str:
    """Metadata with the region's colour, brightness and texture."""
    _, view = pictures_of(messages)
    # What is outside the region is faded towards grey.
    inside = view[np.abs(view - 128).max(axis=2) > 28]
    colour = colour_of(inside if len(inside) > 20 else view)
    is_busy = float(inside.std()) > 40 if len(inside) else False
    lighting = "bright" if inside.mean() > 150 else "dim"
    return json.dumps(metadata(colour, is_busy=is_busy, lighting=lighting))


def metadata(colour: str, *, is_busy: bool = False, lighting: str = "dim") -> dict[str, Any]:
    """A whole object of the describer's form."""
    texture = "with many changes of tone" if is_busy else "of one even tone"
    return {
        "spatial_and_localization": {
            "bounding_box": None, "global_position": "inside its box", "spatial_layer": None,
            "visibility_state": {
                "is_occluded": False, "occluded_by": None, "visible_range": "fully visible"},
        },
        "identity_and_taxonomy": {
            "segment_nature": "stuff", "broad_category": "Area",
            "specific_type": f"{colour} area", "primary_function_or_role": None},
        "detailed_appearance": {
            "key_identifying_feature": f"A {colour} area {texture}.",
            "overall_color_palette": [colour], "materials_and_textures": [texture],
            "sub_components_or_elements": [], "text_and_markings": []},
        "dynamics_and_interactions": {
            "motion_or_physical_state": "still", "interaction_details": None},
        "global_scene_context": {
            "lighting_and_weather": lighting, "time_of_day": None, "overall_atmosphere": None},
    }  # fmt: skip


def place_of(box: Sequence[float]) -> tuple[str, str]:
    """Where a box is: the third of the height, and of the width, in which its middle lies."""
    down, across = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    rows, columns = ("top", "middle", "bottom"), ("left", "centre", "right")
    return rows[min(2, int(down // 333.4))], columns[min(2, int(across // 333.4))]


def shown_metadata(messages: Messages) -> tuple[str, dict[str, Any]]:
    """The id and the metadata that a question writer is shown."""
    text = text_of(messages)
    start = text.index("\n{") + 1
    found, _ = json.JSONDecoder().raw_decode(text[start:])
    [name] = re.findall(r'"object_id": "([^"]+)"', text)
    return name, found


def questions(messages: Messages, style: int) -> list[dict[str, Any]]:
    """Questions about colour, place, texture, light and framing; the right answer is always A."""
    _, found = shown_metadata(messages)
    box = found["spatial_and_localization"]["bounding_box"]
    row, column = place_of(box)
    look = found["detailed_appearance"]
    colour = look["overall_color_palette"][0]
    texture = look["materials_and_textures"][0]
    light = found["global_scene_context"]["lighting_and_weather"]
    others = [name for name in COLOURS if name != colour]
    start = number(colour + row + column) % len(others)
    wrong = [others[(start + 3 * k) % len(others)] for k in range(3)]
    size = f"{round(box[3] - box[1])} by {round(box[2] - box[0])}"
    where = f"in the {row} {column} of the picture"
    is_cut = min(box) <= 1 or max(box) >= 999
    wide = ("Which colour fills most of the {} area?", "What is the main colour of the {} area?")
    ask = [
        ("B. Attributes", wide[style].format(f"{size} {where}"), [colour, *wrong]),
        ("Spatial Relationship & Position",
         f"In which third of the height does the {colour} area {size} {column} lie?",
         [f"the {row} third", *[f"the {r} third" for r in ("top", "middle", "bottom") if r != row],
          "outside the frame"]),
        ("Recognition", f"What kind of surface is the {colour} area {size} {where}?",
         [texture, "a checked pattern", "a printed page", "a row of bars"]),
        ("Scene Perception", f"How is the light on the {colour} area {size} {where}?",
         [light, "coloured by a lamp", "flickering", "striped by blinds"]),
        ("Camera Features", f"How does the frame treat the {colour} area {size} {where}?",
         ["cuts it off at an edge" if is_cut else "shows it whole",
          "shows it whole" if is_cut else "cuts it off at an edge", "mirrors it", "tilts it"]),
    ]  # fmt: skip
    return [
        {"category": category, "question": question,
         "options": [f"{letter}. {o}" for letter, o in zip("ABCD", options, strict=True)],
         "correct_answer": "A"}
        for category, question, options in ask
    ]  # fmt: skip


def alpha(messages: Messages) -> str:
    name, _ = shown_metadata(messages)
    return json.dumps({"object_id": name, "qas": questions(messages, 0)})


def beta(messages: Messages) -> str:
    name, _ = shown_metadata(messages)
    return "```json\n" + json.dumps({"object_id": name, "qas": questions(messages, 1)}) + "\n```"


def checker(messages: Messages) -> str:
    """Always the same letter, so that it is right a quarter of the time."""
    return "A"


PLAYERS: Mapping[str, Any] = {
    "matcher": matcher, "describer": describer, "questioner": (alpha, beta), "checker": checker,
}  # fmt: skip
MODELS: Mapping[str, Callable[[Messages], str]] = {
    "matcher": matcher, "describer": describer, "alpha": alpha, "beta": beta, "checker": checker,
}  # fmt: skip


def answer(body: Mapping[str, Any]) -> str:
    """What the model that a request names says."""
    return MODELS[body["model"]](body["messages"])


def config(*, seed: int = 0, most: int = 3, **sections: Any) -> BuildConfig:
    """A small configuration; sections by name win."""
    options: dict[type[Any], Any] = {
        SegmentOptions: SegmentOptions(max_regions=most),
        SelectOptions: SelectOptions(),
        DedupOptions: DedupOptions(),
    }
    options |= {type(value): value for value in sections.values()}
    return BuildConfig(seed, options=options)


def construct(source: Path | str, out: Path, **words: Any) -> Built:
    """One build in this process, with the scripted models unless told otherwise."""
    request = {"config": config(), "players": PLAYERS, **words}
    return asyncio.run(build(BuildRequest(CAPPROBE, str(source), out, **request)))


def some_pictures(folder: Path, *names: str) -> Path:
    """A folder with some of the bundled pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes((PICTURES / name).read_bytes())
    return folder


def paint(folder: Path, *seeds: int, size: tuple[int, int] = (320, 240)) -> Path:
    """A folder with painted pictures: patches of plain colours, one file a seed."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        width, height = size
        pixels = np.zeros((height, width, 3), np.uint8)
        pixels[:] = rng.integers(60, 200, 3)
        for _ in range(6):
            y, x = rng.integers(0, height - 60), rng.integers(0, width - 60)
            pixels[y : y + rng.integers(50, 150), x : x + rng.integers(50, 200)] = rng.integers(
                0, 255, 3
            )
        pixels = np.clip(pixels + rng.normal(0, 6, pixels.shape), 0, 255).astype(np.uint8)
        Image.fromarray(pixels).save(folder / f"{seed:03d}.png")
    return folder


class Counted:
    """The scripted models, with how often each was asked."""

    def __init__(self, players: Mapping[str, Any] = PLAYERS) -> None:
        self.calls: dict[str, int] = {}
        self.players = {
            role: tuple(map(self._counting, given))
            if isinstance(given, tuple)
            else self._counting(given)
            for role, given in players.items()
        }

    def _counting(self, player: Callable[[Messages], str]) -> Callable[[Messages], str]:
        def counting(messages: Messages) -> str:
            self.calls[player.__name__] = self.calls.get(player.__name__, 0) + 1
            return player(messages)

        counting.__name__ = player.__name__
        return counting

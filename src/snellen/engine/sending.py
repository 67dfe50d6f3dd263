"""A request's pictures on their way out: found, weighed, and read at the last moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from snellen.pictures import prepare
from snellen.records import Image, Request

ASSUMED_FILE_BYTES = 2**19


def images_of(request: Request) -> Sequence[Image]:
    """The pictures of a request, in the order of its messages."""
    if len(request.messages) == 1 and len(request.messages[0].parts) == 1:
        part = request.messages[0].parts[0]
        return (part,) if isinstance(part, Image) else ()
    return [p for m in request.messages for p in m.parts if isinstance(p, Image)]


def weight(images: Sequence[Image]) -> int:
    """About how many bytes the pictures take while they are being sent; 0 only for none."""
    return sum(ASSUMED_FILE_BYTES if i.end is None else max(1, i.end - i.start) for i in images)


async def read_pictures(request: Request, rules: prepare.PictureRules) -> list[prepare.Picture]:
    """The request's pictures, ready to be sent; mending goes to a thread.

    Raises:
        ImageError: one of them cannot be sent.
    """
    pictures: list[prepare.Picture] = []
    for image in images_of(request):
        picture = prepare.prepare_fast(image, rules)
        if picture is None:
            picture = await asyncio.to_thread(prepare.prepare, image, rules)
        pictures.append(picture)
    return pictures

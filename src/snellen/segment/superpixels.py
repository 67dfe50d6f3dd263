"""Regions without a model: areas of like colour that tile the picture, 3 to 12 of them.

They are regions, not objects: the offline default, and a stand-in where no model can run.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from snellen.errors import MissingExtraError
from snellen.segment.regions import Found

FEWEST = 3
LARGEST_SHARE = 0.55
# The longer side at which colours are compared: details below it make no region.
SIDE = 160

Labels = NDArray[np.int64]
Colours = NDArray[np.float64]


def superpixels(pixels: NDArray[np.uint8], most: int = 12) -> tuple[Found, ...]:
    """Areas that cover a whole picture (height, width, 3), the largest first.

    There are at least 3, at most `most` where that is more, and none is above 55% of the picture,
    unless the picture has fewer than 3 pixels.

    Raises:
        MissingExtraError: scikit-image is not installed.
    """
    try:
        from skimage.color import rgb2lab
        from skimage.segmentation import felzenszwalb
    except ImportError as error:
        raise MissingExtraError("scikit-image, which finds regions", "build") from error
    from PIL import Image

    most = max(most, FEWEST)
    height, width = pixels.shape[:2]
    scale = min(1.0, SIDE / max(height, width))
    shape = (max(1, round(height * scale)), max(1, round(width * scale)))
    picture = Image.fromarray(pixels).resize(shape[::-1], Image.Resampling.BOX)
    small = np.asarray(picture, dtype=np.float64)
    lab = rgb2lab(small / 255.0)
    labels = felzenszwalb(small / 255.0, scale=200, sigma=0.8, min_size=max(1, small.size // 600))
    labels = _merged(labels.astype(np.int64), lab, most)
    labels = _split(labels, lab, most)
    rows = (np.arange(height) * shape[0] // height).clip(max=shape[0] - 1)
    columns = (np.arange(width) * shape[1] // width).clip(max=shape[1] - 1)
    full = labels[rows[:, None], columns[None, :]]
    names, counts = np.unique(full, return_counts=True)
    order = sorted(zip(-counts, names, strict=True))
    return tuple(Found(full == name) for _, name in order)


def _merged(labels: Labels, lab: Colours, most: int) -> Labels:
    """The same areas, the smallest ones joined to their likest neighbours until few are left.

    A pair costs the difference of its colours, times the size of the smaller one.
    """
    labels = np.unique(labels, return_inverse=True)[1].reshape(lab.shape[:2]).astype(np.int64)
    n = int(labels.max()) + 1
    sizes = np.bincount(labels.ravel(), minlength=n).astype(float)
    sums = np.stack([np.bincount(labels.ravel(), lab[..., k].ravel(), n) for k in range(3)], 1)
    touching = np.zeros((n, n), bool)
    for a, b in ((labels[:, 1:], labels[:, :-1]), (labels[1:], labels[:-1])):
        touching[a.ravel(), b.ravel()] = True
    touching |= touching.T
    np.fill_diagonal(touching, val=False)
    alive = np.ones(n, bool)
    while alive.sum() > most:
        means = sums / np.maximum(sizes, 1)[:, None]
        far = np.linalg.norm(means[:, None] - means[None], axis=2)
        cost = np.where(touching, (far + 1) * np.minimum(sizes[:, None], sizes[None]), np.inf)
        keep, gone = sorted(divmod(int(np.argmin(cost)), n))
        labels[labels == gone] = keep
        sizes[keep] += sizes[gone]
        sums[keep] += sums[gone]
        touching[keep] |= touching[gone]
        touching[:, keep] |= touching[:, gone]
        touching[gone] = touching[:, gone] = False
        touching[keep, keep] = alive[gone] = False
        sizes[gone] = 0
    return labels


def _split(labels: Labels, lab: Colours, most: int) -> Labels:
    """The same areas, the largest one halved while it is too large or there are too few."""
    labels = labels.copy()
    while True:
        names, counts = np.unique(labels, return_counts=True)
        largest = names[int(np.argmax(counts))]
        is_too_large = counts.max() > LARGEST_SHARE * labels.size
        if counts.max() < 2 or not (is_too_large or len(names) < FEWEST):
            return labels
        if len(names) >= most:
            labels = _merged(labels, lab, most - 1)
            continue
        # The area is cut across its longer side.
        inside = labels == largest
        places = np.argwhere(inside)
        axis = int(np.argmax(np.ptp(places, axis=0)))
        middle = np.median(places[:, axis])
        grid = np.indices(inside.shape)[axis]
        far = inside & (grid > middle)
        labels[far if far.any() else inside & (grid >= middle)] = names.max() + 1

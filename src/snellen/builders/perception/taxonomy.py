"""Our taxonomy of errors: ten perceptual capabilities, and six causes beyond perception.

The ten labels and what they stand for are PerceptionBench's; the definitions are ours, since none
were published. Source of the labels: PerceptionBench, the data set.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from snellen.builders.perception.rows import ErrorType
from snellen.schemas import ERROR_CATEGORIES

_PERCEPTUAL = {
    "visual_relation_error": "How things lie or act towards each other in the picture plane is "
    "seen wrongly: left of, above, inside, touching, crossing, connected to, facing, holding. "
    "Both things are found, and each alone is seen rightly.",
    "visual_counting_error": "The number of things, parts, marks or crossings is wrong: some are "
    "left out, counted twice, or counted although they do not belong. What has to be counted "
    "is understood and recognised.",
    "visual_attribute_error": "A property of one thing that was found is seen wrongly: colour, "
    "shape, size class, material, texture, pattern, orientation, pose, state or number on a "
    "scale that needs no reading.",
    "depth_3d_perception_error": "The third dimension is seen wrongly: which is nearer, what hides "
    "what, height or distance in the scene, slope, volume, the same object from another "
    "viewpoint, a folded or turned solid.",
    "visual_localization_error": "The right place is not found: a box, point, cell, row, region or "
    "end of a line is given wrongly, or another thing than the one referred to is looked at.",
    "visual_comparison_error": "Two or more things or pictures are compared wrongly: which is "
    "longer, darker or larger, whether they are the same, what differs between them. Each "
    "alone can be seen.",
    "fine_grained_recognition_error": "A thing is found but taken for another of a similar kind: "
    "species, model, part, symbol, gesture, person, landmark or expression, where small "
    "visible details decide.",
    "context_integration_error": "What is spread over several places or pictures is not put "
    "together: a legend and its curve, a label and its arrow, a rule shown in examples, the "
    "same object in two frames, a part and the scene that says what it is.",
    "ocr_error": "Written characters are read wrongly, left out or made up: letters, digits, signs "
    "of a formula, handwriting, text that is turned, small or partly hidden.",
    "hallucination": "Something is said to be there that is not, or a thing is given a part, an "
    "action or a text that no pixel supports, where usual scenes would have it.",
}
_BEYOND = {
    "reasoning": "All that had to be seen was seen; a conclusion, calculation or plan made of it "
    "is wrong.",
    "knowledge": "All that had to be seen was seen; a fact about the world that the picture does "
    "not show is wrong or unknown.",
    "instruction": "The question was misread, or another one was answered.",
    "format": "The content is right; the form of the answer, its unit, its rounding or its "
    "length made it count as wrong.",
    "reference_error": "The reply is right and the reference is wrong, or the scoring is.",
    "ambiguous": "The question or the picture allows several answers, or cannot be answered.",
}
CAPABILITIES = ERROR_CATEGORIES

DEFAULT: tuple[ErrorType, ...] = (
    *(ErrorType(id=k, definition=_PERCEPTUAL[k], is_perceptual=True) for k in ERROR_CATEGORIES),
    *(ErrorType(id=k, definition=text, is_perceptual=False) for k, text in _BEYOND.items()),
)


def beyond(types: Iterable[ErrorType]) -> tuple[ErrorType, ...]:
    """The types that looking would not have avoided."""
    return tuple(one for one in types if not one.is_perceptual)


def listing(types: Sequence[ErrorType]) -> str:
    """The types as a prompt lists them.

    >>> listing(DEFAULT[-6:-5])
    '- `reasoning`: All that had to be seen was seen; a conclusion, calculation or plan made of it \
is wrong.'
    """
    return "\n".join(f"- `{one.id}`: {one.definition}" for one in types)

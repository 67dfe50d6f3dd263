"""Replies that are bare XML: one element, and in it each wanted element exactly once.

The texts in it are prose, in which `<` and `&` are letters, hence no XML parser reads them.
"""

from __future__ import annotations

import re

from snellen.records import Reply
from snellen.replies.text import blank_reason, drop_thinking
from snellen.replies.typed import UnreadableError

_FENCE = re.compile(r"```[A-Za-z]*")


def bare(reply: Reply, tag: str) -> str:
    """What is in the one element that a reply consists of.

    >>> bare(Reply("<vote><best>2</best></vote>"), "vote")
    '<best>2</best>'

    Raises:
        UnreadableError: the reply is blank, or anything stands around the element.
    """
    reason = blank_reason(reply.text, reasoning=reply.reasoning, finish_reason=reply.finish_reason)
    if reason is not None:
        raise UnreadableError(reason, f"the reply is blank ({reason})")
    # Thoughts are looked for ahead alone: elements of their names may stand inside.
    head, opening, rest = reply.text.rpartition(f"<{tag}>")
    body = opening + rest.strip()
    if _FENCE.fullmatch(ahead := drop_thinking(head).strip()):
        ahead, body = "", body.removesuffix("```").rstrip()
    if ahead or not body.endswith(f"</{tag}>"):
        raise UnreadableError("not_as_asked", f"expected <{tag}>...</{tag}> and nothing around it")
    return inside(body, tag)


def inside(text: str, tag: str) -> str:
    """The text of the one element of a name.

    >>> inside("<score> 7 </score>", "score")
    '7'

    Raises:
        UnreadableError: there is none or more than one, or nothing is in it.
    """
    opened, closed = text.count(f"<{tag}>"), text.count(f"</{tag}>")
    if (opened, closed) != (1, 1):
        raise UnreadableError(
            "not_as_asked",
            f"expected <{tag}>...</{tag}> once, found {opened} openings and {closed} closings",
        )
    _, _, rest = text.partition(f"<{tag}>")
    found, closing, _ = rest.partition(f"</{tag}>")
    if not closing or not found.strip():
        raise UnreadableError("not_as_asked", f"expected a text in <{tag}>...</{tag}>")
    return found.strip()


def whole_number(text: str, tag: str, *, most: int) -> int:
    """The whole number, from 1 to `most`, in the one element of a name.

    Raises:
        UnreadableError: there is something else.
    """
    found = inside(text, tag)
    if not re.fullmatch(r"[0-9]{1,3}", found) or not 1 <= int(found) <= most:
        raise UnreadableError(
            "not_as_asked", f"expected a whole number from 1 to {most} in <{tag}>, found {found!r}"
        )
    return int(found)

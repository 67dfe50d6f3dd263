"""An embeddings endpoint as something that answers requests, so that its calls are kept too."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from snellen.endpoints.http import ChatClient
from snellen.flows import Flow
from snellen.records import Answer, CallFailure, Message, Reply, Request

TEXTS_A_CALL = 64

Vectors = NDArray[np.float32]


class EmbeddingsCaller:
    """Answers a request for texts with their embeddings, packed into the reply's text."""

    def __init__(self, client: ChatClient) -> None:
        self._client = client

    async def call(self, request: Request, _pictures: Sequence[object] = ()) -> Answer:
        """The embeddings of the request's texts."""
        texts = [part for part in request.messages[0].parts if isinstance(part, str)]
        found = await self._client.embeddings(texts)
        return found if isinstance(found, CallFailure) else Reply(packed(found))

    async def close(self) -> None:
        """Closes the connections."""
        await self._client.close()


def ask_embeddings(texts: Sequence[str], *, role: str) -> Flow[list[Vectors] | CallFailure]:
    """Embeddings of texts from an endpoint, a part (n, d) for each call of 64 texts."""
    starts = range(0, len(texts), TEXTS_A_CALL)
    replies = yield [
        Request(role, (Message("user", tuple(texts[k : k + TEXTS_A_CALL])),), "embed", str(k))
        for k in starts
    ]
    parts = []
    for reply in replies:
        if isinstance(reply, CallFailure):
            return reply
        parts.append(unpacked(reply.text))
    return parts


def packed(vectors: Vectors) -> str:
    """Embeddings (n, d) as a text.

    >>> unpacked(packed(np.ones((1, 2), np.float32))).tolist()
    [[1.0, 1.0]]
    """
    rows = base64.b64encode(vectors.astype("<f4").tobytes()).decode()
    return msgspec.json.encode([*vectors.shape, rows]).decode()


def unpacked(text: str) -> Vectors:
    """Embeddings (n, d) from their text."""
    n, d, rows = msgspec.json.decode(text, type=tuple[int, int, str])
    return np.frombuffer(base64.b64decode(rows), "<f4").reshape(n, d)

"""A provider of batches as a process: takes a file of calls, gives a file of replies.

    python -m tests.fakes.batch_provider FORMAT CALLS REPLIES [--trouble SEED]

With trouble, lines come back in another order, some twice, some with an error or expired, and some
not at all; the one at the end is cut.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.fakes.server import Body, completion
from tests.worlds.engine_world import answer

Line = dict[str, Any]


def openai_call(line: Line) -> tuple[str, Body]:
    assert (line["method"], line["url"]) == ("POST", "/v1/chat/completions")
    return line["custom_id"], line["body"]


def openai_reply(name: str, text: str, kind: str) -> Line:
    if kind == "flat":  # as vLLM's page shows it
        return {"custom_id": name, "response": completion({"content": text}), "error": None}
    if kind == "expired":
        said = {"code": "batch_expired", "message": "This request could not be executed in time."}
        return {"custom_id": name, "response": None, "error": said}
    body = completion({"content": text}, usage={"prompt_tokens": 7, "completion_tokens": 3})
    status = 200
    if kind == "error":
        body, status = {"error": {"message": "The server had an error"}}, 500
    return {"custom_id": name, "response": {"status_code": status, "body": body}, "error": None}


def anthropic_call(line: Line) -> tuple[str, Body]:
    params = line["params"]
    assert params["max_tokens"] >= 1
    messages = [{"role": "system", "content": params["system"]}] if "system" in params else []
    for message in params["messages"]:
        parts = [
            {"type": "text", "text": part["text"]}
            if part["type"] == "text"
            else _picture(part["source"]["media_type"], part["source"]["data"])
            for part in message["content"]
        ]
        messages.append(_message(message["role"], parts))
    return line["custom_id"], {"model": params["model"], "messages": messages}


def anthropic_reply(name: str, text: str, kind: str) -> Line:
    if kind == "expired":
        return {"custom_id": name, "result": {"type": "expired"}}
    if kind == "error":
        error = {"type": "error", "error": {"type": "api_error", "message": "Internal"}}
        return {"custom_id": name, "result": {"type": "errored", "error": error}}
    message = {
        "model": "claude", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
        "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 3},
    }  # fmt: skip
    return {"custom_id": name, "result": {"type": "succeeded", "message": message}}


def gemini_call(line: Line) -> tuple[str, Body]:
    request = line["request"]
    messages = []
    if "system_instruction" in request:
        said = "".join(part["text"] for part in request["system_instruction"]["parts"])
        messages.append({"role": "system", "content": said})
    for turn in request["contents"]:
        parts = [
            {"type": "text", "text": part["text"]}
            if "text" in part
            else _picture(part["inline_data"]["mime_type"], part["inline_data"]["data"])
            for part in turn["parts"]
        ]
        messages.append(_message(turn["role"], parts))
    return line["key"], {"messages": messages}


def gemini_reply(name: str, text: str, kind: str) -> Line:
    if kind == "expired":
        return {"key": name, "error": {"code": 4, "message": "expired", "status": "EXPIRED"}}
    if kind == "error":
        return {"key": name, "error": {"code": 13, "message": "Internal", "status": "INTERNAL"}}
    candidate = {"content": {"parts": [{"text": text}], "role": "model"}, "finishReason": "STOP"}
    counts = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    return {"key": name, "response": {"candidates": [candidate], "usageMetadata": counts}}


def _picture(mime: str, data: str) -> Line:
    return {"type": "image_url", "image_url": {"url": f"data:{mime};base64,{data}"}}


def _message(role: str, parts: list[Line]) -> Line:
    """A message as the online format has it: texts alone are one text."""
    if all(part["type"] == "text" for part in parts):
        return {"role": role, "content": "".join(part["text"] for part in parts)}
    return {"role": role, "content": parts}


FORMATS: dict[str, tuple[Callable[[Line], tuple[str, Body]], Callable[[str, str, str], Line]]] = {
    "openai": (openai_call, openai_reply),
    "anthropic": (anthropic_call, anthropic_reply),
    "gemini": (gemini_call, gemini_reply),
}
KINDS = ("error", "expired", "lost", "twice", "late", "flat")


def serve_file(
    form: str, calls: Path, replies: Path, *, trouble: int | None = None,
    say: Callable[[Body], str] = answer,
) -> None:  # fmt: skip
    """Answers each call of a file; with a seed for trouble, every third badly."""
    read, write = FORMATS[form]
    rng = random.Random(trouble)
    lines: list[str] = []
    for number, line in enumerate(calls.read_text(encoding="utf-8").splitlines()):
        name, body = read(json.loads(line))
        is_bad = trouble is not None and not (number + trouble) % 3
        kind = KINDS[(number // 3 + trouble) % len(KINDS)] if is_bad and trouble is not None else ""
        if kind == "lost":
            continue
        if kind == "late":  # the error of a first try, then the reply
            lines.append(json.dumps(write(name, "", "error")))
        said = "" if kind in ("error", "expired") else say(body)
        lines.append(json.dumps(write(name, said, kind)))
        lines += lines[-1:] * (kind == "twice")
    if trouble is not None:
        rng.shuffle(lines)
        lines.append('{"custom_id": "cut')
    replies.write_text("\n".join(lines), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("form", choices=FORMATS)
    parser.add_argument("calls", type=Path)
    parser.add_argument("replies", type=Path)
    parser.add_argument("--trouble", type=int)
    words = parser.parse_args()
    serve_file(words.form, words.calls, words.replies, trouble=words.trouble)


if __name__ == "__main__":
    main()

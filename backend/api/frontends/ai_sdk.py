"""The UI message stream for each major version of the AI SDK, whose first releases reject what they do not know."""

from typing import Annotated, Any

from fastapi import Header

OLDEST, NEWEST = 5, 7
Version = Annotated[
    int,
    Header(
        alias="X-AI-SDK-Version",
        ge=OLDEST,
        le=NEWEST,
        description="The major version of the AI SDK that reads the stream.",
    ),
]
_REJECTED = "This call was rejected, so it was not made."
_UNKNOWN = {
    5: {"abort": ("reason",), "finish": ("finishReason",)},
    6: {"abort": ("reason",), "tool-approval-request": ("reason",)},
}


def adapt_chunk(chunk: dict[str, Any], version: int) -> dict[str, Any]:
    """Returns a chunk with what this version of the AI SDK knows."""
    if version == OLDEST:
        chunk = _replace_approval(chunk)
    unknown = _UNKNOWN.get(version, {}).get(chunk["type"], ())
    return {name: value for name, value in chunk.items() if name not in unknown}


def _replace_approval(chunk: dict[str, Any]) -> dict[str, Any]:
    """Converts what version 5 does not have: the question about a call is a data part."""
    match chunk:
        case {"type": "tool-approval-request", "approvalId": approval_id, "toolCallId": call_id}:
            data = {"approvalId": approval_id, "toolCallId": call_id, "text": chunk["reason"]}
            return {"type": "data-approval", "id": approval_id, "data": data}
        case {"type": "tool-output-denied", "toolCallId": call_id}:
            return {"type": "tool-output-error", "toolCallId": call_id, "errorText": _REJECTED, "dynamic": True}
        case _:
            return chunk

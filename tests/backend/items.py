"""Items of every kind, and where to store them."""

from datetime import datetime
from typing import Any

from chatkit.types import ThreadItem
from sqlalchemy.ext.asyncio import AsyncEngine

from backend.conversation.acting import Acting
from backend.conversation.models import Conversation
from backend.conversation.rows import THREAD_ITEM
from service.database import new_id, transaction

ALICE = Acting("alice")
BOB = Acting("bob")
EXAMPLES: dict[str, dict[str, Any]] = {
    "user_message": {
        "content": [
            {"type": "input_text", "text": "hello"},
            {"type": "input_tag", "id": "t", "text": "tag", "data": {"a": 1}},
        ],
        "attachments": [],
        "quoted_text": "earlier",
        "inference_options": {"model": "m", "tool_choice": {"id": "x"}},
    },
    "assistant_message": {
        "content": [
            {
                "text": "see",
                "annotations": [{"source": {"type": "url", "title": "t", "url": "https://example.org"}, "index": 1}],
            }
        ]
    },
    "client_tool_call": {"status": "pending", "call_id": "c", "name": "n", "arguments": {"a": [1]}},
    "widget": {"widget": {"type": "Card", "children": [{"type": "Text", "value": "hello"}]}, "copy_text": "hello"},
    "generated_image": {"image": {"id": "i", "url": "https://example.org/i.png"}},
    "structured_input": {
        "status": "pending",
        "inputs": [
            {"type": "multiple_choice", "id": "q", "question": "which?", "options": [{"value": "a"}]},
            {"type": "freeform", "id": "r", "question": "why?", "answer": {"values": ["so"]}},
        ],
    },
    "workflow": {
        "workflow": {
            "type": "custom",
            "tasks": [
                {"type": "custom", "title": "t", "status_indicator": "loading"},
                {"type": "thought", "content": "hm"},
                {"type": "web_search", "queries": ["q"]},
            ],
            "summary": {"duration": 3},
        }
    },
    "task": {"task": {"type": "file", "sources": [{"type": "file", "title": "t", "filename": "f"}]}},
    "hidden_context_item": {"content": {"kind": "note", "text": "remember"}},
    "sdk_hidden_context": {"content": "cancelled"},
    "end_of_turn": {},
}


async def new_thread(engine: AsyncEngine, user_id: str) -> str:
    thread_id = new_id("thr")
    async with transaction(engine, user_id) as session:
        session.add(Conversation(id=thread_id, user_id=user_id, status={"type": "active"}))
    return thread_id


def make(kind: str, thread: str, **more: Any) -> ThreadItem:
    values = {"type": kind, "id": new_id("it"), "thread_id": thread, "created_at": datetime.now(), **EXAMPLES[kind]}
    return THREAD_ITEM.validate_python(values | more)

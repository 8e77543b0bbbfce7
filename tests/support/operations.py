"""The operations of ChatKit, with parameters that are valid apart from the ids of threads and items."""

from typing import Any

from todo_client.chatkit import user_input

ACTION = {"type": "complete", "payload": {"task_id": 1}}
UNKNOWN_THREAD: dict[str, dict[str, Any]] = {
    "threads.get_by_id": {},
    "threads.update": {"title": "x"},
    "threads.delete": {},
    "items.list": {},
    "items.feedback": {"item_ids": ["msg_0"], "kind": "positive"},
    "threads.add_user_message": {"input": user_input("hello")},
    "threads.add_client_tool_output": {"result": 1},
    "threads.add_structured_input": {"item_id": "si_0", "input": {"answers": {}}},
    "threads.retry_after_item": {"item_id": "msg_0"},
    "threads.custom_action": {"item_id": "wid_0", "action": ACTION},
    "threads.sync_custom_action": {"item_id": "wid_0", "action": ACTION},
}
UNKNOWN_ITEM: dict[str, dict[str, Any]] = {
    "items.list": {"after": "msg_0"},
    "items.feedback": {"item_ids": ["msg_0"], "kind": "positive"},
    "threads.add_structured_input": {"item_id": "si_0", "input": {"answers": {}}},
    "threads.retry_after_item": {"item_id": "msg_0"},
    "threads.custom_action": {"item_id": "wid_0", "action": ACTION},
    "threads.sync_custom_action": {"item_id": "wid_0", "action": ACTION},
}
UNSUPPORTED: dict[str, dict[str, Any]] = {
    "attachments.create": {"name": "a.pdf", "size": 3, "mime_type": "application/pdf"},
    "attachments.delete": {"attachment_id": "atc_0"},
    "input.transcribe": {"audio_base64": "AAAA", "mime_type": "audio/webm"},
}

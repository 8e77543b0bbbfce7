"""A run that waits, as rows: what two who act at once are set against."""

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from backend.conversation.errors import Busy
from backend.tools.consent.card import APPROVE, REFUSE, card
from backend.turn import versions
from tests.chatkit_client import ChatKit

WAITING = """
INSERT INTO conversations (user_id, id, status, leaf_run_id)
    VALUES ('local', %(thread)s, '{"type": "active"}', %(run)s);
INSERT INTO runs (user_id, id, conversation_id, status, usage, message_id, heartbeat_at)
    VALUES ('local', %(run)s, %(thread)s, 'waiting', %(usage)s, %(message)s, now() - interval '1 day');
INSERT INTO messages (user_id, conversation_id, id, run_id, role, kind, item) VALUES
    ('local', %(thread)s, %(message)s, %(run)s, 'user', 'user_message', %(said)s),
    ('local', %(thread)s, %(step)s, %(run)s, 'app', 'tool_calls', %(calls)s),
    ('local', %(thread)s, %(card)s, %(run)s, 'app', 'widget', %(widget)s);
INSERT INTO approvals (user_id, id, conversation_id, run_id, step_id, position, call, key, text, item_id)
    VALUES ('local', %(approval)s, %(thread)s, %(run)s, %(step)s, 0, %(call)s, %(approval)s, 'Add it', %(card)s);
"""


@dataclass(frozen=True)
class Case:
    """A run that waits for consent to add a task with a title of its own."""

    number: int

    @property
    def thread(self) -> str:
        return f"thr_{self.number}"

    def rows(self) -> dict[str, Any]:
        call = {
            "type": "function_call",
            "call_id": f"call_{self.number}",
            "name": "add_task",
            "arguments": json.dumps({"title": f"race {self.number}"}),
        }
        own = {name: f"{name}_{self.number}" for name in ("run", "message", "step", "card", "approval")}
        head = {"thread_id": self.thread, "created_at": "2026-11-23T07:00:00+00:00"}
        content = {"kind": "tool_calls", "calls": [call], "reasoning": []}
        items = {
            "said": {
                "type": "user_message",
                "content": [{"type": "input_text", "text": "add it"}],
                "attachments": [],
                "inference_options": {},
                "id": own["message"],
            },
            "calls": {"type": "hidden_context_item", "content": content, "id": own["step"]},
            "widget": {"type": "widget", "widget": card(own["approval"], "Add it"), "id": own["card"]},
            "call": call,
            "usage": {"model": "offline-rules", "requests": 1, "input_tokens": 5, "output_tokens": 5},
        }
        as_json = {name: json.dumps({**item, **(head if "id" in item else {})}) for name, item in items.items()}
        return {"thread": self.thread, **own, **as_json}

    async def act(self, chat: ChatKit, what: str) -> None:
        match what:
            case "cancel":
                turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
                await turns.stop_conversation(self.thread, user_id="local")
            case "say":
                await chat.say("hello", self.thread)
            case "show":
                turns = chat.app.state.parts.turns  # pyright: ignore[reportAttributeAccessIssue]
                with suppress(Busy):  # what was said is being answered
                    await versions.show(turns._engine, self.thread, None, user_id="local")
            case "delete":
                await chat.ask("threads.delete", thread_id=self.thread)
            case _:
                action = APPROVE if what == "approve" else REFUSE
                clicked = {"type": action, "payload": {"approval_id": f"approval_{self.number}"}}
                await chat.stream(
                    "threads.custom_action", thread_id=self.thread, item_id=f"card_{self.number}", action=clicked
                )

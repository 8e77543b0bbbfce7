"""What the model writes for a conversation between its runs: titles and summaries."""

from collections import Counter

from backend.conversations import runs
from backend.conversations.records import Run
from backend.model.chat_model import ChatModel
from common.database import Database


async def complete_after_run(
    database: Database, model: ChatModel, run: Run, prompt: str, *, max_tokens: int
) -> tuple[str, int]:
    """Returns what the model writes, and the tokens that the user has used today. What that used is added to the run,
    also if it fails. Raises `ModelError`.
    """
    usage, tokens_today = Counter[str](), 0
    try:
        text = await model.complete(prompt, max_tokens=max_tokens, on_usage=usage.update)
    finally:
        if usage:
            tokens_today = await runs.add_usage(database, run.user_id, run.id, +usage)
    return text, tokens_today

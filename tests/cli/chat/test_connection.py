"""The server gone in the middle of an answer, and back: whoever reads it has all of it then, and nothing twice."""

import re
from pathlib import Path

import pytest

from tests.cli.chat.terminal import Terminal
from tests.scripted_model import ScriptedModel
from tests.support.http_relay import HttpRelay
from tests.support.script import add_task
from tests.support.stack import Stack
from tests.support.users import User
from tests.waiting import until

pytestmark = pytest.mark.long

WORDS = [f"word{number}" for number in range(160)]
# Paragraphs of ten words.
TEXT = "\n\n".join(" ".join(WORDS[begin : begin + 10]) for begin in range(0, len(WORDS), 10))
ADDING = {**add_task("milk"), "text": "I add it."}


def check_once(text: str) -> None:
    assert re.findall(r"word\d+", text) == WORDS
    assert all(paragraph in text for paragraph in TEXT.split("\n\n"))
    assert text.count("I add it.") == 1


async def wait_for_end(user: User) -> None:
    async def has_ended() -> bool:
        return not (await user.runs.get_chats())["chats"][0]["answering"]

    await until(has_ended)


@pytest.mark.parametrize("while_away", ["it is written", "it ends"])
async def test_answer_goes_on_in_another_process(
    relay: HttpRelay, stack: Stack, user: User, model: ScriptedModel, tmp_path: Path, while_away: str
) -> None:
    await model.script(ADDING, {"text": TEXT, "chunk_chars": 12, "hold_after": 40})
    place = ("--url", relay.url, "--data-dir", str(tmp_path))
    with Terminal(*place, environment={"TODO_TOKEN": user.token}) as terminal:
        await terminal.wait_for(">")
        terminal.say("add milk and go on")
        await terminal.wait_for("word15")
        relay.cut()
        await terminal.wait_for("Connection lost")
        if while_away == "it ends":
            await model.release()
            await wait_for_end(user)
        await relay.restore(stack.backends[1].url)
        await terminal.wait_for("Connected again")
        await model.release()
        text = await terminal.wait_for("Connected again", "total")
    check_once(text)
    assert text.count("✓ add task 1 milk") == 1

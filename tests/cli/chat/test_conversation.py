"""`./todo chat` as a user sees it: the keys, the commands, and what is on the screen then."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.chatkit_client import ChatKit
from tests.cli.chat.conftest import Start
from tests.cli.chat.terminal import ALT_ENTER, CTRL_A, CTRL_C, CTRL_D, CTRL_J, CTRL_R, ENTER, TAB, UP
from tests.scripted_model import ScriptedModel
from tests.support.approvals import talk_with_tasks
from tests.support.script import PAUSING, SLOW_TEXT, add_task, call, calls, delete_tasks, says, summarises
from tests.support.users import User

pytestmark = pytest.mark.long(seconds=8)

MARKDOWN = """# Head

A **bold** word and `code`.

1. first
2. second

```python
print("x")
```

| a | b |
|---|---|
| 1 | 日本語 |
"""


async def test_markdown(start: Start, model: ScriptedModel) -> None:
    await model.script({"text": MARKDOWN, "chunk_chars": 7})
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("hello")
        text = await terminal.wait_for("total")
        assert "> hello\nHead\n\nA bold word and code.\n\n 1 first\n 2 second\n\n  print(" in text
        assert " 1  日本語" in text.replace("日 本 語 ", "日本語").replace("日 本 語", "日本語")
        assert re.search(r"[\d,]+ in · [\d,]+ out · 0 thinking · [\d,]+ total · \d+\.\d s", text)
        assert b"\x1b[1mbold" in terminal.raw
        terminal.keys(CTRL_D)
        assert await terminal.ended() == 0


async def test_stop(start: Start, model: ScriptedModel, user: User, served: ChatKit) -> None:
    await model.script(PAUSING, PAUSING)
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("count")
        await terminal.wait_for("three")
        for command in ("/edit", "/retry", "/version 1", "/clear", "/open 1"):
            terminal.say(command)
            await terminal.wait_for(f"> {command}\n✗ The assistant is still answering")
        terminal.say("/stop")
        text = await terminal.wait_for("Stopped.", "total")
        assert "ten" not in text
        terminal.say("/edit")
        await terminal.wait_for("edit> count")
        terminal.keys(CTRL_C)
        await terminal.wait_until(lambda text: "edit>" not in text)
        terminal.say("again")
        await terminal.wait_for("one", times=2)
        terminal.keys(CTRL_C)
        await terminal.wait_for("Stopped.", "total", times=2)
        terminal.keys("half a thought")
        await terminal.wait_for("> half a thought")
        terminal.keys(CTRL_C)
        await terminal.wait_until(lambda text: "half a thought" not in text)
        terminal.keys(CTRL_C)
        await terminal.wait_for("again to leave")
        assert terminal.process.poll() is None
        terminal.keys(CTRL_C)
        assert await terminal.ended() == 0
    [thread] = (await served.list_threads()).data
    assert (await user.runs.get_chat(thread["id"]))["interactions"][0]["status"] == "CANCELLED"


async def test_messages_while_an_answer_runs(start: Start, model: ScriptedModel) -> None:
    await model.script(PAUSING, {"text": "And that."})
    with start("--thread", "mine") as terminal:
        await terminal.wait_for(">")
        terminal.say("count")
        await terminal.wait_for("two")
        terminal.say("and that?")
        await terminal.wait_for("> and that?", "Press Enter to send it now")
        await model.release()
        await terminal.wait_for("And that.", "total", times=2)
        await model.script({**add_task("milk"), "hold_after": 0}, {"text": "Both of it."})
        terminal.say("add milk")
        await model.received_requests(3)
        terminal.say("and eggs")
        await terminal.wait_for("> and eggs", "Press Enter to send it now", times=2)
        terminal.keys(ENTER)
        await terminal.wait_for("before its next step")
        await model.release()
        await terminal.wait_for("Both of it.", "total", times=3)
    said = [[one["content"] for one in request["body"]["messages"]] for request in await model.finished_requests()]
    assert "and that?" in said[1][-1]
    assert "and eggs" in said[3][-1]


async def test_approvals(start: Start, model: ScriptedModel, user: User, served: ChatKit) -> None:
    thread = await talk_with_tasks(user, model, 2)
    await model.script(delete_tasks(1), {"text": "Kept."}, delete_tasks(2), {"text": "Gone."})
    with start("--thread", thread) as terminal:
        await terminal.wait_for("add them", "Added.")
        terminal.say("delete the first")
        await terminal.wait_for("The assistant asks:", "“task number 1”", "[y/N]")
        terminal.say("yes but not now")
        await terminal.wait_for("Type y to approve")
        terminal.say("n it is not done yet")
        await terminal.wait_for("Rejected: it is not done yet", "Kept.", "total")
        terminal.say("delete the second")
        await terminal.wait_for("“task number 2”", "[y/N]")
        terminal.say("y")
        await terminal.wait_for("Approved", "delete task 2 task number 2", "Gone.", "total", times=2)
        terminal.say("/tasks")
        text = await terminal.wait_for("> /tasks", "· 1 task number 1")
        assert "task number 2" not in text.rpartition("> /tasks")[2]
        terminal.say("/undo")
        await terminal.wait_for("Undone. The tasks are now:", "· task number 2")
    requests = await model.finished_requests()
    assert "it is not done yet" in str(requests[-3]["body"]["messages"][-1])


async def test_undo(start: Start, model: ScriptedModel, served: ChatKit) -> None:
    bread, eggs = (add_task(title) for title in ("bread", "eggs"))
    await model.script({**bread, "delay": 0.5}, {"text": "Bread."}, eggs, {"text": "Eggs."}, {"text": "I see."})
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("/undo")
        await terminal.wait_for("There is nothing to undo")
        terminal.say("add bread")
        await model.received_requests(1)
        terminal.say("and eggs")
        await terminal.wait_for("Bread.", "Eggs.", "total", times=2)
        terminal.say("/undo")
        await terminal.wait_for("Undone. The tasks are now:", "· eggs (deleted)")
    with start("--continue") as terminal:
        await terminal.wait_for("Eggs.")
        terminal.say("/undo")
        await terminal.wait_for("Undone. The tasks are now:", "· bread (deleted)")
        terminal.say("/undo")
        await terminal.wait_for("There is nothing to undo")
        terminal.say("what is left?")
        await terminal.wait_for("I see.", "total")
    assert "undid what was done" in str((await model.finished_requests())[-1]["body"]["messages"])


async def test_edit_retry_and_branches(start: Start, model: ScriptedModel) -> None:
    await model.script(*({"text": text} for text in ("First.", "Second.", "Third.", "Fourth.")))
    with start("--thread", "mine") as terminal:
        await terminal.wait_for(">")
        terminal.say("one")
        await terminal.wait_for("First.", "total")
        terminal.say("/edit")
        await terminal.wait_for("edit> one")
        terminal.keys(" more", ENTER)
        await terminal.wait_for("> one more", "Second.", "total", times=2)
        terminal.say("/edit something else")
        await terminal.wait_for("> something else", "Third.", "total", times=3)
        terminal.say("/retry")
        await terminal.wait_for("Fourth.", "total", times=4)
        terminal.say("/version 2")
        await terminal.wait_for("Version 2 of 4", "> one more", times=2)
        terminal.say("/version 9")
        await terminal.wait_for("from 1 to 4")
    last = (await model.finished_requests())[1]["body"]["messages"][-1]
    assert "one more" in str(last)


async def test_continue(start: Start, model: ScriptedModel, served: ChatKit) -> None:
    await model.script(PAUSING, {"text": "Here."})
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("count")
        await terminal.wait_for("two")
        terminal.keys(CTRL_D)
        assert await terminal.ended() == 0
        assert "See the answer: ./todo chat --thread thr_" in terminal.text
    with start("--continue") as one, start("--continue") as other:
        for terminal in (one, other):
            await terminal.wait_for("> count", "three")
        await model.release()
        for terminal in (one, other):
            await terminal.wait_for(SLOW_TEXT, "total")
        one.say("from one")
        await other.wait_for("> from one", "Here.", "total", times=2)
        [thread] = (await served.list_threads()).data
        await model.script({"text": "On the page."})
        await served.say("from the page", thread["id"])
        for terminal in (one, other):
            await terminal.wait_for("> from the page", "On the page.")


async def test_commands(start: Start, model: ScriptedModel, user: User, served: ChatKit, tmp_path: Path) -> None:
    await talk_with_tasks(user, model, 1)
    await model.script(*({"text": text} for text in ("Large.", "A slash.", "New.")), summarises("They talked."))
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("/tsks")
        await terminal.wait_for("There is no /tsks. Did you mean /tasks?")
        terminal.say("/help")
        await terminal.wait_for("/compact", "Alt-Enter starts a new line")
        terminal.say("/threads")
        await terminal.wait_for(" 1 add them")
        terminal.say("/open 1")
        await terminal.wait_for("> add them", "Added.")
        terminal.say("/model large")
        await terminal.wait_for("● large")
        terminal.say("hello")
        await terminal.wait_for("Large.", "total")
        terminal.say("//slash")
        await terminal.wait_for("> /slash", "A slash.", "total", times=2)
        terminal.say("/tasks never")
        await terminal.wait_for("There is no view never")
        terminal.say("/model huge")
        await terminal.wait_for("There is no model huge")
        for missing in ("nothing/here", "999"):
            terminal.say(f"/open {missing}")
            await terminal.wait_for(f"There is no conversation {missing}")
        terminal.say("/stop")
        await terminal.wait_for("There is no answer to stop.")
        for command, answer in (
            ("/agents", "No agent worked"),
            (f"/put {tmp_path}/none", "cannot be read"),
            ("/compact", "ompact"),
            ("/open", "/open N:"),
            ("/undo", "Undone. The tasks are now:"),
            ("/clear", "starts a new conversation"),
        ):
            terminal.say(command)
            await terminal.wait_for(f"> {command}", answer)
        terminal.say("anew")
        await terminal.wait_for("New.", "total", times=3)
        terminal.say("/quit")
        assert await terminal.ended() == 0
    bodies = [request["body"] for request in await model.finished_requests()]
    assert [body["model"] for body in bodies[-4:]] == ["large", "large", "offline-rules", "large"]
    assert "/slash" in str(bodies[-3]["messages"][-1])
    assert len((await served.list_threads()).data) == 2


async def test_lines_history_and_completion(start: Start, model: ScriptedModel, user: User, served: ChatKit) -> None:
    await talk_with_tasks(user, model, 1)
    await model.script({"text": "Two lines."}, {"text": "Again."}, {"text": "Fine."})
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.keys("one", ALT_ENTER, "two")
        await terminal.wait_for("> one\n  two")
        terminal.keys(CTRL_J, "three\\")
        await terminal.wait_for("  two\n  three\\")
        terminal.keys(ENTER)
        await terminal.wait_until(lambda text: "\\" not in text)
        terminal.keys("four")
        await terminal.wait_for("  two\n  three\n  four")
        terminal.keys(CTRL_A, CTRL_D)
        await terminal.wait_for("  three\n  our")
        terminal.keys(ENTER)
        await terminal.wait_for("Two lines.", "total")
        terminal.keys("/thr", TAB)
        await terminal.wait_for("> /threads")
        terminal.keys(ENTER)
        await terminal.wait_for("add them")
        for whole in ("/open add them", "/model large", "/tasks upcoming"):
            terminal.keys(whole[:-3])
            await terminal.complete(f"> {whole}")
            terminal.keys(CTRL_C)
            await terminal.wait_until(lambda text, whole=whole: f"> {whole}" not in text)
    with start("--continue") as terminal:
        await terminal.wait_for("> one\n  two", "Two lines.")
        terminal.keys(UP, UP, ENTER)
        await terminal.wait_for("Again.", "total")
        terminal.keys(CTRL_R, "one")
        await terminal.wait_for("I-search backward: one")
        terminal.keys(CTRL_C)
        await terminal.wait_until(lambda text: "I-search" not in text)
        terminal.keys(CTRL_R, "/th")
        await terminal.wait_for("> /threads", "I-search backward: /th")
        terminal.keys(ENTER, ENTER)
        await terminal.wait_for("● ", "add them")
        terminal.keys("complete task nu")
        await terminal.complete("> complete task number 1")
        terminal.keys(ENTER)
        await terminal.wait_for("Fine.")
    said = [str(request["body"]["messages"][-1]) for request in await model.finished_requests()]
    assert "one\\ntwo\\nthree\\nour" in said[-3]
    assert "complete task number 1" in said[-1]


async def test_wide_and_dangerous_text(start: Start, model: ScriptedModel) -> None:
    nasty = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x9b5m \u202eback\u202c \x08\x08 done"
    wide = "日本語のとても長いタスクの名前です" * 2
    await model.script(
        add_task(wide, due="2026-11-30"), says(nasty), calls(call("list_tasks")), {"text": "שלום עולם, " * 12}
    )
    with start(columns=40) as terminal:
        await terminal.wait_for(">")
        terminal.say("hello")
        await terminal.wait_for("done", "s\n")
        terminal.say("list")
        await terminal.wait_for("> list", "Mon 30 Nov", " s\n")
        assert all(len(line) < 40 for line in terminal.lines)
        for obeyed in (b"\x1b]0;", b"\x1b[2J", b"\x1b[31mred", b"\xc2\x9b", "\u202e".encode()):
            assert obeyed not in terminal.raw
        assert "[31mred" in terminal.text


async def test_without_colour(start: Start, model: ScriptedModel) -> None:
    await model.script(*[{"text": MARKDOWN}] * 2)
    with start(environment={"NO_COLOR": "1"}) as terminal:
        await terminal.wait_for(">")
        terminal.say("hello")
        await terminal.wait_for("A bold word", "total")
        assert not re.search(rb"\x1b\[[0-9;]*3[0-7]m", terminal.raw)
    with start(environment={"TERM": "dumb"}) as terminal:
        await terminal.wait_for(">")
        terminal.say("hello")
        await terminal.wait_for("A bold word", "total")
        assert b"\x1b" not in terminal.raw
        terminal.keys(CTRL_D)
        assert await terminal.ended() == 0


@pytest.mark.parametrize("line_end", ["\r", "\n", "\r\n"], ids=["CR", "LF", "CRLF"])
async def test_lines_pasted_without_bracketed_paste(start: Start, model: ScriptedModel, line_end: str) -> None:
    await model.script({"text": "Three lines."}, {"text": "Typed."}, {"text": "A long one."})
    lines = ["one", "two", "three"]
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.keys(line_end.join(lines), line_end)
        await terminal.wait_for("> one\n  two\n  three")
        assert await model.requests() == [], "it waits for Enter"
        terminal.keys(ENTER)
        await terminal.wait_for("Three lines.", "total")
        terminal.keys("typed", ENTER, ENTER)
        await terminal.wait_for("Typed.", "total", times=2)
        words = [f"word{number}" for number in range(1_000)]
        terminal.keys(line_end.join(words[:500]), line_end)
        terminal.keys(line_end.join(words[500:]), line_end)
        await terminal.wait_for("word999")
        terminal.keys(ENTER)
        await terminal.wait_for("A long one.", "total", times=3)
    said = [request["body"]["messages"][-1]["content"] for request in await model.finished_requests()]
    assert "one\ntwo\nthree" in said[0]
    assert "\n".join(words) in said[-1]


async def test_long_line_pasted_without_bracketed_paste(start: Start, model: ScriptedModel) -> None:
    await model.script({"text": "A long line."})
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("word " * 1_500 + "end")
        await terminal.wait_for("A long line.", "total")
        terminal.say("x" * 60_000)
        await terminal.wait_for("The message has 60,000 characters")
    [request] = await model.finished_requests()
    assert "word " * 1_500 + "end" in request["body"]["messages"][-1]["content"]


async def test_colours_pasted_without_bracketed_paste(start: Start, model: ScriptedModel) -> None:
    await model.script({"text": "Colours."})
    with start() as terminal:
        await terminal.wait_for(">")
        terminal.say("a \x1b[31mred\x1b[0m and \x1b[1;32mgreen\x1b[0m word")
        text = await terminal.wait_for("Colours.", "total")
        assert "Press ENTER" not in text
    [request] = await model.finished_requests()
    assert "a red and green word" in request["body"]["messages"][-1]["content"]


async def test_lines_pasted_into_a_dumb_terminal(start: Start, model: ScriptedModel) -> None:
    await model.script({"text": "Both lines."}, {"text": "Typed."})
    with start(environment={"TERM": "dumb"}) as terminal:
        await terminal.wait_for(">")
        terminal.keys("one\ntwo\n")
        await terminal.wait_for("Both lines.", "total")
        terminal.keys("typed\n")
        await terminal.wait_for("Typed.", "total", times=2)
    [first, second] = await model.finished_requests()
    assert "one\ntwo" in first["body"]["messages"][-1]["content"]
    assert "typed" in second["body"]["messages"][-1]["content"]


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
async def test_typed_bytes_that_are_not_utf8(start: Start, model: ScriptedModel, kind: str) -> None:
    await model.script({"text": "Coffee."})
    with start(environment={"TERM": kind}) as terminal:
        await terminal.wait_for(">")
        terminal.say("add caf\udce9 bad")
        await terminal.wait_for("not UTF-8 text", "add caf\ufffd bad")
        assert await model.requests() == []
        if kind != "dumb":
            terminal.keys(CTRL_C)
            await terminal.wait_until(lambda text: "caf" not in text)
        terminal.say("add café")
        await terminal.wait_for("Coffee.", "total")
    [request] = await model.finished_requests()
    assert "add café" in request["body"]["messages"][-1]["content"]


async def test_new_name_of_a_conversation(start: Start, model: ScriptedModel) -> None:
    await model.script({"text": "Hello."})
    with start("--thread", "mine") as terminal:
        await terminal.wait_for("There is no conversation named mine yet: your first message begins it.")
        terminal.say("hello")
        await terminal.wait_for("Hello.", "total")
    with start("--thread", "mine") as terminal:
        assert "no conversation" not in await terminal.wait_for("> hello", "Hello.")


async def test_missing_token(start: Start) -> None:
    with start("--continue", environment={"TODO_TOKEN": ""}) as terminal:
        await terminal.wait_for("Set TODO_TOKEN to a token that you make on the page")
        assert await terminal.ended() == 1


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
async def test_narrow_terminal_that_is_resized(start: Start, model: ScriptedModel, kind: str) -> None:
    await model.script(
        add_task("a long title of a task", due="2030-11-30"), PAUSING, calls(call("list_tasks")), says(".")
    )
    with start(columns=20, environment={"TERM": kind}) as terminal:
        await terminal.wait_for(">")
        terminal.say("count")
        await model.received_requests(2)
        for columns in (10, 120, 20):
            terminal.resize(columns, 24)
            await asyncio.sleep(0.2)
        await model.release()
        await terminal.wait_for("ten", "total")
        terminal.say("/tasks")
        await terminal.wait_for("a long")
        terminal.keys(CTRL_D)
        assert await terminal.ended() == 0
        assert "Traceback" not in terminal.text
        assert terminal.raw.count(b"three") < 50


@pytest.mark.parametrize("kind", ["xterm-256color", "dumb"])
async def test_closed_terminal_without_hangup(start: Start, model: ScriptedModel, kind: str) -> None:
    await model.script(PAUSING)
    with start(environment={"TERM": kind}, nohup=True) as terminal:
        await terminal.wait_for(">")
        terminal.say("count")
        await model.received_requests(1)
        terminal.close()
        await model.release()
        assert await terminal.ended() == 1
        assert terminal.process.stderr is not None
        errors = terminal.process.stderr.read().decode()
        assert errors in ("", "error: The output cannot be written: Input/output error.\n")


async def test_memory_and_log(start: Start, model: ScriptedModel, served: ChatKit, tmp_path: Path) -> None:
    await model.script({"text": "Noted."}, {"text": "Anew."})
    (tmp_path / "AGENT.md").write_text("* I have a dog\n")
    with start(columns=900) as terminal:
        await terminal.wait_for(">")
        terminal.say("/memory")
        await terminal.wait_for("The memory is empty")
        terminal.say("/memory I work nights")
        await terminal.wait_for("Saved to the memory.")
        terminal.say(f"/memory import {tmp_path}/AGENT.md")
        await terminal.wait_for("Saved to the memory.", times=2)
        terminal.say("/memory")
        await terminal.wait_for("* I work nights\n* I have a dog")
        terminal.say("hello")
        await terminal.wait_for("Noted.", "total")
        terminal.say("/log")
        await terminal.wait_for('"event": "session_start"', '"output": "Noted."')
        terminal.say("/clear")
        await terminal.wait_for("starts a new conversation")
        terminal.say("again")
        await terminal.wait_for("Anew.", "total", times=2)
    assert (await served.http.get("/memory")).json()["text"] == "* I work nights\n* I have a dog\n"
    cleared = (await served.list_threads()).data[-1]["id"]
    assert "session_clear" in (await served.http.get(f"/chats/{cleared}/log")).text.splitlines()[-1]
    assert "I work nights" in str((await model.finished_requests())[0]["body"]["messages"][0])

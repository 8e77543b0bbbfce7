"""The last message and its answer, and who answers the next one."""

from typing import TYPE_CHECKING

from cli.chat.screens import drawing
from cli.chat.screens.text import clean

if TYPE_CHECKING:
    from cli.chat.talk import Talk


_UNDER_WAY = "The assistant is still answering. Wait, or stop it with /stop or Ctrl-C."


async def stop(talk: "Talk", _: str) -> None:
    await talk.stop()


async def retry(talk: "Talk", _: str) -> None:
    if talk.answer is not None:
        await talk.screen.fail(_UNDER_WAY)
    elif talk.chat_id is None or talk.last_run is None:
        await talk.screen.fail("There is no message to answer again.")
    else:
        talk.follow(await talk.connection.retry(talk.chat_id))


async def edit(talk: "Talk", text: str) -> None:
    if talk.answer is not None:
        await talk.screen.fail(_UNDER_WAY)
        return
    last = await talk.connection.last(talk.chat_id) if talk.chat_id is not None else None
    if last is None:
        await talk.screen.fail("There is no message to edit.")
        return
    talk.edit(last["id"], text or clean(last["user_message"] or ""))
    if text:
        talk.screen.fill("")
        await talk.say(text)


async def show_version(talk: "Talk", number: str) -> None:
    if talk.answer is not None:
        await talk.screen.fail(_UNDER_WAY)
        return
    chat_id = talk.chat_id
    last = await talk.connection.last(chat_id) if chat_id is not None else None
    versions = last["siblings"] if last is not None else []
    if chat_id is None or not (number.isascii() and number.isdigit() and 0 < int(number) <= len(versions)):
        problem = f"Choose a version from 1 to {len(versions)}." if versions else "There is no message yet."
        await talk.screen.fail(problem)
        return
    await talk.connection.runs.branch(chat_id, versions[int(number) - 1])
    await talk.open(chat_id)


async def choose_model(talk: "Talk", name: str) -> None:
    connection = talk.connection
    models = list((await connection.page.ready())["model"]["models"])
    if name and name not in models:
        await talk.screen.fail(f"There is no model {name}. Choose one of these: {', '.join(models)}.")
        return
    connection.model = name or connection.model
    asked = connection.model or models[0]
    await talk.screen.show(*(f"{'●' if one == asked else ' '} {clean(one)}" for one in models))


async def show_agents(talk: "Talk", _: str) -> None:
    screen, run = talk.screen, talk.answer.reading.run_id if talk.answer is not None else talk.last_run
    lines: list[str] = []
    if talk.chat_id and run:
        async for step in talk.connection.steps(talk.chat_id, run):
            lines += drawing.step_lines(screen.style, step, screen.size[0])
    await screen.show(*(lines or [screen.style.dim("No agent worked on the last message.")]))

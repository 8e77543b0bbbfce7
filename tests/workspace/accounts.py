"""Work done as root, or as an account that owns nothing else, in a process of its own."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - which is loaded late, when another account cannot
import os
import pickle
import traceback
import warnings
from collections.abc import Callable, Coroutine
from typing import Any

ROOT_ACCOUNT = 0
_SECONDS = 240


def accounts() -> dict[str, int]:
    """Those that this machine lets us be: root and another one, or only the one that we are."""
    if os.getuid() != ROOT_ACCOUNT:
        return {"own account": os.getuid()}
    return {"root": ROOT_ACCOUNT, "another account": 61_000 + os.getpid() % 4_000}  # processes are counted by account


def done_as(
    account: int, work: Callable[[], Coroutine[Any, Any, Any]], *, before: Callable[[], None] = lambda: None
) -> Any:
    """What `work` returns, after `before` in the same process.

    What it imports must have been imported: another account may not read our files.
    """
    reader, writer = os.pipe()
    child = fork()
    if child == 0:
        os.close(reader)
        _do(account, before, work, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        told = answer.read()
    os.waitpid(child, 0)
    result, problem = pickle.loads(told) if told else (None, "it ended without an answer")
    assert problem is None, problem
    return result


def fork() -> int:
    """The test runner's other threads have nothing to do with what the child does, of which Python would warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _do(account: int, before: Callable[[], None], work: Callable[[], Coroutine[Any, Any, Any]], writer: int) -> None:
    try:
        if account != os.getuid():
            os.setgroups([])
            os.setgid(account)
            os.setuid(account)
        before()
        told = pickle.dumps((asyncio.run(asyncio.wait_for(work(), _SECONDS)), None))
    except BaseException:  # noqa: BLE001 - whatever it is, it is told
        told = pickle.dumps((None, traceback.format_exc()))
    with os.fdopen(writer, "wb") as answer:
        answer.write(told)
    os._exit(0)

"""What the models of the assistant and of the coder say to "work on NAME".

Each call of the coder has a token of its own, which stands in all that is done for it.
"""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Sequence

from offline_model.conversation import ChatTurn, parse_turns
from offline_model.protocol import MODEL, ChatMessage, Completion, CompletionCall, CompletionRequest

CODER = "do_with_coder"
ASKED_INSIDE = "run_python"
NOBODY = "I could not: there is no coder."
BRIEF = 0.4  # seconds of a command
_ASKED = re.compile(r"work (briefly|long|askingly) on \w+")
_WORK = re.compile(r"\AYour work: (\w+), with commands of ([\d.]+) seconds(, and with consent)?")
_FAILED = re.compile(
    r"Exit code [1-9]|The |This |There |old_text|Nothing was|Commands |Tool "
)  # how outputs begin of calls that did nothing
_TOKEN = re.compile(r"\w+")


class Script:
    """Counts the requests of coders. `told` has what the assistant's model read of each call of the coder, by token."""

    def __init__(self, long_seconds: str) -> None:
        self.requests = 0
        self.told: defaultdict[str, set[str]] = defaultdict(set)
        brief = f"{BRIEF} seconds"
        self._how = {"briefly": brief, "long": f"{long_seconds} seconds", "askingly": f"{brief}, and with consent"}

    def next_of(self, chat: CompletionRequest) -> Completion | None:
        """What it says, or nothing where it is not asked for an agent's work."""
        if "read_file" in chat.tool_names:
            self.requests += 1
            return _coder(chat.messages)
        turns = parse_turns(chat.messages)
        for turn in turns:
            self._note(turn)
        asked = _ASKED.fullmatch(turns[-1].request)
        return _assistant(turns[-1], self._how[asked[1]], chat.tool_names) if asked and chat.tool_names else None

    def _note(self, turn: ChatTurn) -> None:
        for calls, outputs in turn.made:
            for call in calls:
                if call.function.name == CODER:
                    self.told[token_of(call.function.arguments)].add(outputs[call.id])


def token_of(arguments: str) -> str:
    """Of a call of the coder."""
    found = _TOKEN.match(json.loads(arguments)["task"])
    assert found, arguments
    return found[0]


def done(token: str) -> str:
    return f"Done with {token}."


def _assistant(turn: ChatTurn, how: str, tools: frozenset[str]) -> Completion:
    outputs = [text for _, answers in turn.made for text in answers.values()]
    if outputs:
        return _said(outputs[-1] if outputs[-1].startswith("Done with") else f"That did not work: {outputs[-1]}")
    if CODER not in tools:
        return _said(NOBODY)
    task = f"t{secrets.token_hex(6)}, with commands of {how}"
    return _calling(CompletionCall(CODER, json.dumps({"task": task, "task_id": None})))


def _coder(messages: Sequence[ChatMessage]) -> Completion:
    task = next(found for message in messages if (found := _WORK.match(message.content)))
    token, seconds, asks = task.groups()
    made = sum(message.tool_calls is not None for message in messages)
    outputs = [message.content for message in messages if message.role == "tool"]
    if failed := [text for text in outputs if _FAILED.match(text)]:
        return _said(f"I came to no end of {token}: {failed[0]}")
    steps = _steps(token, seconds, asks=asks is not None)
    return _calling(*steps[made]) if made < len(steps) else _said(done(token))


def _steps(token: str, seconds: str, *, asks: bool) -> Sequence[Sequence[CompletionCall]]:
    """Files written, changed and read, commands that leave a line each time that they are run, and a commit.

    One that `asks` wants beside the last what its person is asked about.
    """
    wait = f"import time; open('{token}.py.log', 'a').write('ran\\n'); time.sleep({seconds})"
    return (
        (
            _call("write_file", path=f"{token}.txt", content="as it was written\n"),
            _call("run_command", command=f"echo ran >> {token}.sh.log; sleep {seconds}; echo out of {token}"),
        ),
        (
            _call("edit_file", path=f"{token}.txt", old_text="written", new_text="changed"),
            _call("read_file", path=f"{token}.txt"),
        ),
        (*([_call(ASKED_INSIDE, code=wait)] if asks else []), _call("commit", message=token)),
    )


def _call(name: str, **arguments: str) -> CompletionCall:
    return CompletionCall(name, json.dumps(arguments))


def _calling(*calls: CompletionCall) -> Completion:
    return Completion(model=MODEL, text="", calls=calls, finish_reason="tool_calls", usage=None)


def _said(text: str) -> Completion:
    return Completion(model=MODEL, text=text, calls=[], finish_reason="stop", usage=None)

"""What the models of the assistant and of the coder answer to messages like "brief work on NAME".

Each assignment has a random token, which is part of its files, commands and commit.
"""

import json
import re
import secrets
from collections import defaultdict
from collections.abc import Sequence

from offline_model.conversation import ChatTurn, parse_turns
from offline_model.protocol import MODEL, ChatMessage, Completion, CompletionCall, CompletionRequest

CODER_TOOL = "do_with_coder"
APPROVAL_TOOL = "run_python"
NO_CODER = "I could not: there is no coder."
_BRIEF_SECONDS = 0.4  # of a command
_REQUEST = re.compile(r"(brief|long|approved) work on \w+")
_ASSIGNMENT = re.compile(r"\AYour work: (\w+), with commands of ([\d.]+) seconds(, and with approval)?")
_FAILED = re.compile(
    r"Exit code [1-9]|The |This |There |old_text|Nothing was|Commands |Tool "
)  # how the outputs of calls that did nothing begin
_TOKEN = re.compile(r"\w+")


class AgentScript:
    """`requests` counts those of coders; `outputs` are those of the coder tool that the assistant read, by token."""

    def __init__(self, long_seconds: str) -> None:
        self.requests = 0
        self.outputs: defaultdict[str, set[str]] = defaultdict(set)
        brief = f"{_BRIEF_SECONDS} seconds"
        self._commands = {"brief": brief, "long": f"{long_seconds} seconds", "approved": f"{brief}, and with approval"}

    def complete(self, chat: CompletionRequest) -> Completion | None:
        """Returns None for requests that are not about an assignment."""
        if "read_file" in chat.tool_names:
            self.requests += 1
            return _complete_coder(chat.messages)
        turns = parse_turns(chat.messages)
        for turn in turns:
            self._record_outputs(turn)
        request = _REQUEST.fullmatch(turns[-1].request)
        if request is None or not chat.tool_names:
            return None
        return _complete_assistant(turns[-1], self._commands[request[1]], chat.tool_names)

    def _record_outputs(self, turn: ChatTurn) -> None:
        for calls, outputs in turn.made:
            for call in calls:
                if call.function.name == CODER_TOOL:
                    self.outputs[parse_token(call.function.arguments)].add(outputs[call.id])


def parse_token(arguments: str) -> str:
    """Returns the token of a call of the coder tool."""
    match = _TOKEN.match(json.loads(arguments)["task"])
    assert match, arguments
    return match[0]


def render_report(token: str) -> str:
    """Returns the last answer of a coder that has carried out all of its calls."""
    return f"Done with {token}."


def _complete_assistant(turn: ChatTurn, commands: str, tools: frozenset[str]) -> Completion:
    outputs = [text for _, answers in turn.made for text in answers.values()]
    if outputs:
        return _say(outputs[-1] if outputs[-1].startswith("Done with") else f"That did not work: {outputs[-1]}")
    if CODER_TOOL not in tools:
        return _say(NO_CODER)
    task = f"t{secrets.token_hex(6)}, with commands of {commands}"
    return _call_tools(CompletionCall(CODER_TOOL, json.dumps({"task": task, "task_id": None})))


def _complete_coder(messages: Sequence[ChatMessage]) -> Completion:
    assignment = next(match for message in messages if (match := _ASSIGNMENT.match(message.content)))
    token, seconds, with_approval = assignment.groups()
    responses = sum(message.tool_calls is not None for message in messages)
    outputs = [message.content for message in messages if message.role == "tool"]
    if failed := [text for text in outputs if _FAILED.match(text)]:
        return _say(f"I could not finish {token}: {failed[0]}")
    calls = _plan_calls(token, seconds, with_approval=with_approval is not None)
    return _call_tools(*calls[responses]) if responses < len(calls) else _say(render_report(token))


def _plan_calls(token: str, seconds: str, *, with_approval: bool) -> Sequence[Sequence[CompletionCall]]:
    """Returns the calls of each model response.

    They write, change and read files, run commands that each append a line to a log, and commit. `with_approval` adds
    a call that needs an approval.
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
        (*([_call(APPROVAL_TOOL, code=wait)] if with_approval else []), _call("commit", message=token)),
    )


def _call(name: str, **arguments: str) -> CompletionCall:
    return CompletionCall(name, json.dumps(arguments))


def _call_tools(*calls: CompletionCall) -> Completion:
    return Completion(model=MODEL, text="", calls=calls, finish_reason="tool_calls", usage=None)


def _say(text: str) -> Completion:
    return Completion(model=MODEL, text=text, calls=[], finish_reason="stop", usage=None)

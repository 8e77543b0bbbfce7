"""Whatever is said, and whatever the tools answer, there is a reply and the turn ends."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from offline_model import rules
from offline_model.protocol import Message
from offline_model.rules.language.vocabulary import LIST_FILLERS, LIST_SUBJECTS, UNSAID, VERBS
from tests.offline_model.fake_tools import TOOLS, Conversation, TaskList

WORDS = sorted(LIST_FILLERS | LIST_SUBJECTS | UNSAID | VERBS)
SIGNS = [
    '"',
    "'",
    ",",
    ";",
    ":",
    ".",
    "?",
    "\n",
    "- ",
    "1",
    "#2",
    " as ",
    " to ",
    "\ue000",
    "rename",
    "describe",
    "milk",
    *["every", "before", "on the 31st", "29 february", "in 999 years", "last week", "monday and", "at 25:99"],
    *["overdue", "undo", "bring back", "yes", "not", "high priority", "#work", "starting"],
]
sentences = st.lists(st.sampled_from(WORDS + SIGNS), max_size=12).map(" ".join)
texts = st.one_of(sentences, st.text(max_size=80))


@settings(max_examples=300, derandomize=True)
@given(st.lists(texts, min_size=1, max_size=4))
def test_every_message_is_answered(said: list[str]):
    conversation = Conversation(TaskList.of("buy milk", "milk the cow", "call mum", done=[3]))
    for text in said:
        assert conversation.say(text).strip()
        assert len(conversation.calls) <= 60


@settings(max_examples=100, derandomize=True)
@given(
    st.lists(
        st.builds(Message, role=st.sampled_from(["system", "user", "assistant", "tool"]), content=texts), min_size=1
    )
)
def test_any_order_of_messages_is_answered(messages: list[Message]):
    for tools in (TOOLS, frozenset[str]()):
        reply = rules.answer(messages, tools)
        assert reply.text.strip() or reply.calls


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["tasks", "id", "title", "next_cursor", "x"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=200, derandomize=True)
@given(json_values, st.sampled_from(["what is left?", "delete milk", "add milk", "complete 3", "rename milk to tea"]))
def test_any_result_of_a_tool_is_answered(value: object, request: str):
    messages = [Message(role="user", content=request)]
    for step in range(rules.MAX_STEPS):
        calls = rules.answer(messages, TOOLS).calls
        made = [{"id": f"{step}.{index}", "function": {"name": call.name}} for index, call in enumerate(calls)]
        if not calls:
            break
        messages.append(Message.model_validate({"role": "assistant", "tool_calls": made}))
        messages += [Message(role="tool", tool_call_id=call["id"], content=json.dumps(value)) for call in made]
    assert rules.answer(messages, TOOLS).text.strip()

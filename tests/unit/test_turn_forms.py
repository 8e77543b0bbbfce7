"""What is collected of a response for its server, and the forms in which model turns are given back."""

from typing import Any

import pytest

from backend.model.failures.errors import ModelError
from backend.model.requests.messages import create_messages
from backend.model.requests.replay import ReplayCollector, keep_replays
from backend.model.requests.turn_forms import TurnForm, TurnForms, render_turns
from backend.model.tool_calls import ParsedToolCall

Json = dict[str, Any]

MADE = [ParsedToolCall("add_task", "{}", {"extra_content": {"google": {"thought_signature": "c2ln"}}})]
DETAIL = {"type": "reasoning.text", "index": 0, "format": None}


def collect(*deltas: Json, calls: list[ParsedToolCall] | None = None) -> Json | None:
    collector = ReplayCollector()
    for delta in deltas:
        collector.read(delta)
    return collector.create(calls or [])


@pytest.mark.parametrize(
    ("deltas", "message"),
    [
        ([{"role": "assistant", "content": "hello", "refusal": None}], None),
        (
            [{"reasoning_content": "a"}, {"reasoning_content": None}, {"reasoning_content": "b"}],
            {"reasoning_content": "ab"},
        ),
        ([{"reasoning": "a", "reasoning_content": "a"}], {"reasoning": "a", "reasoning_content": "a"}),
        ([{"reasoning_opaque": "x"}, {"reasoning_opaque": "x"}], {"reasoning_opaque": "x"}),
        ([{"reasoning": "\x00\ud83d"}], {"reasoning": "\ufffd\ufffd"}),
        (
            [{"reasoning_details": [{**DETAIL, "text": part}]} for part in ("a", "b")]
            + [{"reasoning_details": [{**DETAIL, "signature": "s"}, {**DETAIL, "text": "c"}]}],
            {"reasoning_details": [{**DETAIL, "text": "ab", "signature": "s"}, {**DETAIL, "text": "c"}]},
        ),
        (
            [{"thinking_blocks": [{"type": "thinking", "thinking": part}]} for part in ("a", "b")],
            {"thinking_blocks": [{"type": "thinking", "thinking": "ab"}]},
        ),
        (
            [{"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": part}]} for part in ("a", "b")],
            {"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": part} for part in ("a", "b")]},
        ),
        (
            [{"provider_specific_fields": {"a": 1}}, {"provider_specific_fields": {"b": 2}}],
            {"provider_specific_fields": {"a": 1, "b": 2}},
        ),
    ],
)
def test_fields_that_are_collected(deltas: list[Json], message: Json | None) -> None:
    collected = collect(*deltas)
    assert (collected and collected["message"]) == message


def test_what_is_too_large_is_not_stored() -> None:
    assert collect(*[{"reasoning": "x" * 1_000}] * 500) is None
    assert collect({"reasoning_details": [{"type": "reasoning.encrypted", "data": "x" * 500_000}]}, calls=MADE) is None


def test_fields_of_calls() -> None:
    assert collect(calls=[*MADE, ParsedToolCall("list_tasks", "{}")]) == {"message": {}, "calls": [MADE[0].replay, {}]}


def create_turn(content: str | None = None, **replay: Any) -> Json:
    call = {"id": "call_1", "type": "function", "function": {"name": "add_task", "arguments": "{}"}}
    known = {"replay": {"origin": "here m", "message": {}, "calls": [{}], **replay}} if replay else {}
    return {"role": "assistant", "content": content, "tool_calls": [call], **known}


OUTPUT = {"role": "tool", "tool_call_id": "call_1", "content": "Done."}


def test_forms_of_a_missing_text() -> None:
    sent = [
        render_turns([create_turn()], TurnForm(text))[0].get("content", "no") for text in ("null", "empty", "missing")
    ]
    assert sent == [None, "", "no"]
    assert render_turns([create_turn("Yes.")], TurnForm("missing"))[0]["content"] == "Yes."


def test_replays_go_to_their_sender_alone() -> None:
    turn = create_turn(message={"reasoning": "hm"})
    assert render_turns(keep_replays([turn], "here m"), TurnForm())[0]["reasoning"] == "hm"
    assert "reasoning" not in render_turns(keep_replays([turn], "elsewhere m"), TurnForm())[0]
    assert all("replay" not in one for one in render_turns(keep_replays([turn, OUTPUT], "x"), TurnForm()))


def test_reasoning_of_an_answer_goes_back_where_it_is_demanded() -> None:
    """It counts for no budget, and most servers ignore it."""
    answer = {"role": "assistant", "content": "Yes.", "replay": {"message": {"reasoning": "hm"}, "calls": []}}
    assert "reasoning" not in render_turns([answer], TurnForm())[0]
    assert render_turns([answer], TurnForm(replay="reasoning_content"))[0]["reasoning_content"] == "hm"


def test_calls_go_back_under_an_id_with_a_signature() -> None:
    signed = create_turn(calls=[{"id": "call_1__thought__c2ln"}])
    turn, output = render_turns([signed, OUTPUT], TurnForm())
    assert turn["tool_calls"][0]["id"] == output["tool_call_id"] == "call_1__thought__c2ln"


def test_other_forms_are_tried_by_the_words_of_a_rejection() -> None:
    forms = TurnForms(TurnForm(), has_text_setting=False, has_replay_setting=False)
    turns = [create_turn(message={"reasoning_content": "hm"}), OUTPUT]

    def find(
        words: str, *, code: str = "model_request_rejected", messages: list[Json] | None = None
    ) -> TurnForm | None:
        given = turns if messages is None else messages
        return forms.find_other(given, TurnForm(), ModelError(code, status=400, words=words), [TurnForm()])

    assert find("content is null") == TurnForm("empty")
    assert find("reasoning_content: Extra inputs are not permitted") == TurnForm(replay="none")
    assert find("missing a thought_signature") == TurnForm(replay="extra_content")
    assert find("reasoning_content must be passed back", messages=[create_turn(), OUTPUT]) == TurnForm(
        replay="reasoning_content"
    )
    assert find("the value 7 is wrong") is None
    assert find("content is null", code="model_filtered") is None
    assert find("content is null", messages=[{"role": "user", "content": "hello"}]) is None, "nothing would change"


def test_form_is_learnt_when_it_has_helped_twice() -> None:
    forms = TurnForms(TurnForm(), has_text_setting=False, has_replay_setting=False)
    assert forms.learn("m", TurnForm("empty")) == {}
    assert forms.get("m") == TurnForm()
    assert forms.learn("m", TurnForm("empty")) == {"LLM_EMPTY_TEXT": "empty"}
    assert (forms.get("m"), forms.get("other")) == (TurnForm("empty"), TurnForm())


def test_items_of_a_turn_are_one_message() -> None:
    items: list[Json] = [
        {"role": "user", "content": "add milk"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add it."}]},
        {"type": "function_call", "call_id": "a", "name": "add_task", "arguments": "{}", "replay": {"origin": "x"}},
        {"type": "function_call", "call_id": "b", "name": "add_task", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "Done."},
        {"type": "function_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "Done."}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Added."}]},
        {"role": "assistant", "content": "Yes."},
    ]
    user, turn, *rest = create_messages(items)
    assert user == items[0]
    assert (turn["content"], [call["id"] for call in turn["tool_calls"]]) == ("I add it.", ["a", "b"])
    assert turn["replay"] == {"origin": "x"}
    assert [(one["role"], one["content"]) for one in rest] == [
        *[("tool", "Done.")] * 2,
        *[("assistant", "Added."), ("assistant", "Yes.")],
    ]

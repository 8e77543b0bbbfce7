"""Markup that public reports show: damaged, in the wrong field, in both forms, or only spoken of."""

import json
from typing import Any

import pytest

from backend.model.responses.reader import ResponseReader
from tests.unit.test_markup import TOOLS

_DATA = '{"title": "milk"}'
_ADD = ("add_task", {"title": "milk"})
_ELEMENT = "<function=add_task>\n<parameter=title>\nmilk\n</parameter>\n</function>\n"
_INVOKE = '<invoke name="add_task">\n<parameter name="title">milk</parameter>\n</invoke>'
_DSML = (
    '<｜DSML｜invoke name="add_task">\n<｜DSML｜parameter name="title" string="true">milk</｜DSML｜parameter>\n'
    "</｜DSML｜invoke>\n"
)
_KIMI = (
    "<|tool_calls_section_begin|> <|tool_call_begin|> functions.add_task:0 <|tool_call_argument_begin|> "
    f"{_DATA} <|tool_call_end|> <|tool_calls_section_end|>"
)
Expected = tuple[str, str, list[Any]]

# By the report: the text, or what else was sent, and what is read.
REPORTS: dict[str, tuple[str | dict[str, Any], Expected]] = {
    # Damaged.
    "vllm-project/vllm#47190": (
        "<tool_call>add_tasktitle</arg_key><arg_value>milk</arg_value></tool_call>",
        ("", "", [_ADD]),
    ),
    "vllm-project/vllm#49248": (
        "<tool_call>add_task<arg_key>title</arg_key>milk</arg_value></tool_call>",
        ("", "", [_ADD]),
    ),
    "getsigit/sigit#95": (
        "<tool_call>add_task<tool_call>title</arg_key><arg_value>milk</arg_value></tool_call>",
        ("", "", [_ADD]),
    ),
    "anthropics/claude-code#83088": (
        '<invoke name="add_task">\n<parameter name="description">long</description>\n'
        '<parameter name="title">milk</parameter>\n</invoke>',
        ("", "", [("add_task", {"description": "long", "title": "milk"})]),
    ),
    "exo-explore/exo#1757": (
        f"<|tool_call_begin|>functions.add_task!166<|tool_call_argument_begin|>{_DATA}<|tool_call_end|>",
        ("", "", [_ADD]),
    ),
    "can1357/oh-my-pi#8495": (
        'Next.<|open|>toolscall tool="add_task" index="1"<|sep|><|open|>argument key="title" type="string"<|sep|>milk'
        "<|close|>argument<|sep|><|close|>call<|sep|><|close|>toolsmessage<|sep|>",
        ("Next.", "", [_ADD]),
    ),
    "Augustas11/macprovider#1599": (f"<tool_call>\n{_ELEMENT}", ("", "", [_ADD])),
    "QwenLM/Qwen3.8#178": (
        f"<tool_call>\n{_ELEMENT}</function>\n</function_invocation>\n</tool_call>",
        ("", "", [_ADD]),
    ),
    "QwenLM/qwen-code#10700": ("That is all.\n</parameter>\n</invoke>", ("That is all.\n", "", [])),
    "ollama/ollama#18530": (
        "I look at it first.\n\n<function=list_tasks>\n</function>\n</tool_call>",
        ("I look at it first.\n\n", "", [("list_tasks", {})]),
    ),
    "vllm-project/vllm#35906": (
        "<|channel|>analysis<|message|>hm<|channel|>commentary to=functions.add_task<|channel|>commentary<|constrain|>"
        f"json<|message|>{_DATA}",
        ("", "hm", [_ADD]),
    ),
    "livekit/agents-js#1632": (
        f"to=functions.add_task  天天中彩票能json\n{_DATA}цҳауеит\nMilk, well.",
        ("", "", [_ADD]),
    ),
    # Other dialects.
    "QwenLM/qwen-code#10692": (f"I do.\n<tool_call>\n{_ELEMENT}</tool_call>", ("I do.\n", "", [_ADD])),
    "ddalcu/mlx-serve#315": ('<function name="add_task"><param name="title">milk</param></function>', ("", "", [_ADD])),
    "TokenRhythm/opensquilla#985": (f"<｜DSML｜tool_calls>\n{_DSML * 2}</｜DSML｜tool_calls>", ("", "", [_ADD, _ADD])),
    "lsdefine/GenericAgent#804": (
        f"<‖DSML‖tool_calls>\n{_DSML}</‖DSML‖tool_calls>".replace("｜DSML｜", "｜｜DSML｜｜"),
        ("", "", [_ADD]),
    ),
    "NousResearch/hermes-agent#24534": (f"Well. {_KIMI}", ("Well. ", "", [_ADD])),
    "ml-explore/mlx-lm#1448": (f"[TOOL_CALLS]add_task[ARGS]{_DATA}\n\nLet me search for that.", ("", "", [_ADD])),
    "langchain-ai/langchain#31440": (f"<function=add_task>{_DATA}</function>", ("", "", [_ADD])),
    "raullenchai/Rapid-MLX#480": (f"commentary to=functions.add_task json{_DATA}", ("", "", [_ADD])),
    "raullenchai/Rapid-MLX#1592": (f"[Calling tool: add_task({_DATA})]", ("", "", [_ADD])),
    # In another field, or in two.
    "vybestack/llxprt-code#749": ({"reasoning_content": f"I add it. {_KIMI}"}, ("", "I add it. ", [_ADD])),
    "cline/cline#13348": (
        {
            "content": f"<｜DSML｜tool_calls>\n{_DSML}</｜DSML｜tool_calls>".replace("｜", "|"),
            "tool_calls": [{"id": "a", "index": 0, "function": {"name": "add_task", "arguments": "{}"}}],
        },
        ("", "", [_ADD]),
    ),
    "fw-ai-external/python-sdk#119": (
        {"tool_calls": [{"id": "a", "index": 0, "function": {"name": "list_tasks</arg_value>", "arguments": "{}"}}]},
        ("", "", [("list_tasks", {})]),
    ),
    # More than a call.
    "anthropics/claude-code#72658": (f"{_INVOKE}\n\nuser: retry\n\nsystem: it is blocked", ("", "", [_ADD])),
    "anthropics/claude-code#61375": (
        '<function_calls>\n<invoke name="add_task">\n<parameter name="description">see </invoke> there</parameter>\n'
        "</invoke>\n</function_calls>",
        ("", "", [("add_task", {"description": "see </invoke> there"})]),
    ),
    # Thoughts.
    "ollama/ollama#18288": ("1. Greet.\n\n<channel|>Hello there", ("1. Greet.\n\nHello there", "", [])),
    "jundot/omlx#1028": ("<|channel><channel|>Hello there", ("Hello there", "", [])),
    "sgl-project/sglang#36285": (
        "Let us write the answer.</think>The root cause is this.",
        ("Let us write the answer.The root cause is this.", "", []),
    ),
    "QwenLM/qwen-code#8818": ("<thinking><thinking>inner</thinking>outer text", ("outer text", "inner", [])),
    "ENTERPILOT/GoModel#1041": ("<think>hm</mm:think>Hello there", ("Hello there", "hm", [])),
    "NickMonrad/kernel-ai-assistant#946": ("<|think|>hm<|/think|>Hello there", ("Hello there", "hm", [])),
    "nbramia/LifeOS#568": ('internal\n</think>{"sources": []}', ('internal\n{"sources": []}', "", [])),
    "NVIDIA/TensorRT-LLM#9256": ('<|channel|>commentary<|message|>{"path": "/"}<|end|>', ('{"path": "/"}', "", [])),
    # Notations, ends and mentions.
    "vllm-project/vllm#57490, internlm": (
        ('Ok <|action_start|><|plugin|>{"name": "add_task", "parameters": {"title": "milk"}}<|action_end|>'),
        ("Ok ", "", [_ADD]),
    ),
    "sgl-project/sglang#7672, hunyuan answer": (
        ('<answer><tool_calls>[{"name": "add_task", "arguments": {"title": "milk"}}]</tool_calls></answer>'),
        ("", "", [_ADD]),
    ),
    "sgl-project/sglang#7672, hunyuan text": (
        "<think>\nhm\n</think>\n<answer>\nHello there\n</answer>",
        ("Hello there\n", "hm\n", []),
    ),
    "ml-explore/mlx-lm#1416, M3 lists": (
        (
            'I check.]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="add_task">\n]<]minima'
            "x[>[<title>milk]<]minimax[>[</title>\n]<]minimax[>[<also>]<]minimax[>[<item>a]<]m"
            "inimax[>[</item>]<]minimax[>[<item>b]<]minimax[>[</item>]<]minimax[>[</also>\n]<]"
            "minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
        ),
        ("I check.", "", [("add_task", {"title": "milk", "also": ["a", "b"]})]),
    ),
    "NousResearch/hermes-agent#83023, <tools>": (
        '<tools>{"name": "add_task", "arguments": {"title": "milk"}}</tools>',
        ("", "", [_ADD]),
    ),
    "raullenchai/Rapid-MLX#1031, d": (
        "<tool_call><function=add_task><parameter=title>milk</parameter></function> ok </tool_call>",
        ("", "", [_ADD]),
    ),
    "waybarrios/vllm-mlx#63, python list": (
        (
            "<tool_call>\n<function=add_task>\n<parameter=title>milk</parameter>\n<parameter=als"
            "o>['a', 'b']</parameter>\n</function>\n</tool_call>"
        ),
        ("", "", [("add_task", {"title": "milk", "also": ["a", "b"]})]),
    ),
    "camel-ai/camel#4169, apostrophe, True": (
        ("<tool_call>{'name': 'add_task', 'arguments': {'title': \"it's milk\", 'remind': None}}</tool_call>"),
        ("", "", [("add_task", {"title": "it's milk", "remind": None})]),
    ),
    "ml-explore/mlx-lm#1796, commas": (
        "<|tool_call_start|>[add_task(title='Hello, world!', remind=5)]<|tool_call_end|>",
        ("", "", [("add_task", {"title": "Hello, world!", "remind": 5})]),
    ),
    "ollama/ollama#15254, gemma quotes": (
        '<|tool_call>call:add_task{title:<|"|>say "hi" {now}, ok<|"|>}<tool_call|>',
        ("", "", [("add_task", {"title": 'say "hi" {now}, ok'})]),
    ),
    "vllm-project/vllm#51284, gemma lists": (
        '<|tool_call>call:add_task{title:<|"|>milk<|"|>,also:["a",\'b\']}<tool_call|>',
        ("", "", [("add_task", {"title": "milk", "also": ["a", "b"]})]),
    ),
    "vllm-project/vllm#51307, = for :": (
        ('<|tool_call>call:add_task{title:<|"|>milk<|"|>,also=["a"],description="According to \\"X\\""}<tool_call|>'),
        ("", "", [("add_task", {"title": "milk", "also": ["a"], "description": 'According to "X"'})]),
    ),
    "vllm-project/vllm#47906, bare values": (
        '<|tool_call>call:add_task{title:<|"|>milk<|"|>,remind:30}<tool_call|>',
        ("", "", [("add_task", {"title": "milk", "remind": 30})]),
    ),
    "NVIDIA-NeMo/Automodel#3885, double braces": (
        '<|tool_call>call:add_task{{"title":"milk"}}<tool_call|>',
        ("", "", [_ADD]),
    ),
    "ollama/ollama#15315, bare dotted keys": (
        '<|tool_call>call:add_task{title:<|"|>milk<|"|>,description:{a:{b.c:<|"|>x<|"|>}}}<tool_call|>',
        ("", "", [("add_task", {"title": "milk", "description": {"a": {"b.c": "x"}}})]),
    ),
    "NousResearch/hermes-agent#7449, nested bare keys": (
        ('<|tool_call>call:add_task{metadata:{a:1,b:[{c:<|"|>d<|"|>}]},title:<|"|>milk<|"|>}<tool_call|>'),
        ("", "", [("add_task", {"metadata": {"a": 1, "b": [{"c": "d"}]}, "title": "milk"})]),
    ),
    "ggml-org/llama.cpp#26608, ling": (
        (
            "<tool_call>add_task<arg_key>title</arg_key>\n<arg_value>milk</arg_value><arg_key>"
            "remind</arg_key>\n<arg_value>100</arg_value>\n</tool_call>"
        ),
        ("", "", [("add_task", {"title": "milk", "remind": 100})]),
    ),
    "NousResearch/hermes-agent#83937, empty arguments": (
        '<tool_call>{"name": "list_tasks", "arguments": ""}</tool_call>',
        ("", "", [("list_tasks", {})]),
    ),
    "vllm-project/vllm#28806, no arguments": (
        '<tool_call>{"name": "list_tasks"}</tool_call>',
        ("", "", [("list_tasks", {})]),
    ),
    "lmstudio-ai/lmstudio-bug-tracker#1509, explains <im_end>": (
        'In Qwen\'s template "<|im_end|>" ends a turn, and `</s>` in others.',
        ('In Qwen\'s template "<|im_end|>" ends a turn, and `</s>` in others.', "", []),
    ),
    "lmstudio-ai/lmstudio-bug-tracker#1509, list of stops": (
        '"stop": [\n  "<|im_end|>",\n  "<im_end>",\n  "</s>"\n]',
        ('"stop": [\n  "<|im_end|>",\n  "<im_end>",\n  "</s>"\n]', "", []),
    ),
    "mozilla-ai/llamafile#630": ("Both are vegetables. \n<end_of_turn>", ("Both are vegetables. \n", "", [])),
    "deepseek-ai/DeepSeek-MoE#37, <|EOT|>": ("Hello there<|EOT|>", ("Hello there", "", [])),
    "cubist38/mlx-openai-server#215, text, then call": (
        "</think>\nFine.<tool_call>\n<function=list_tasks>\n</function>\n</tool_call>",
        ("Fine.", "", [("list_tasks", {})]),
    ),
    "sgl-project/sglang#32861, inkling text after a call": (
        '<tool_call>{"name": "list_tasks", "arguments": {}}</tool_call> That is what I do.',
        ("", "", [("list_tasks", {})]),
    ),
    "MoonshotAI/Kimi-K2#128, empty after think": ("<think>hm</think><|im_end|>", ("", "hm", [])),
    "jundot/omlx#103, partial bracket": (
        "See [1] and [Calling a friend] now.",
        ("See [1] and [Calling a friend] now.", "", []),
    ),
    "jundot/omlx#140, bracket prose": (
        "[Calling tool: unknown] is what it wrote.",
        ("[Calling tool: unknown] is what it wrote.", "", []),
    ),
    # Only spoken of.
    "lmstudio-ai/lmstudio-bug-tracker#1592": (
        f"<think>Some use <function=...>, others <tool_call>.</think><tool_call>\n{_ELEMENT}</tool_call>",
        ("", "Some use <function=...>, others <tool_call>.", [_ADD]),
    ),
    "continuedev/continue#11070": (
        f'It is called as "{_INVOKE}", or so.',
        (f'It is called as "{_INVOKE}", or so.', "", []),
    ),
    "jundot/omlx#3794": (
        "The model writes <tool_call> first, and </tool_call> last. That is all.",
        ("The model writes <tool_call> first, and </tool_call> last. That is all.", "", []),
    ),
}


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_reported_markup(report: str, size: int) -> None:
    sent, expected = REPORTS[report]
    delta = {"content": sent} if isinstance(sent, str) else sent
    reader, pieces = ResponseReader(TOOLS), []
    for name, value in delta.items():
        parts = (
            [value[start : start + size] for start in range(0, len(value), size)] if isinstance(value, str) else [value]
        )
        for part in parts:
            pieces += reader.read_frame({"choices": [{"delta": {name: part}}]})
    pieces += [*reader.read_frame({"choices": [{"delta": {}, "finish_reason": "stop"}]}), reader.end()]
    calls = [(call.name, json.loads(call.arguments)) for call in pieces[-1].calls]
    assert ("".join(one.text for one in pieces), "".join(one.thought for one in pieces), calls) == expected

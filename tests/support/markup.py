"""What models write in the markup of their families, and what it says."""

from collections.abc import Mapping
from dataclasses import dataclass

Call = tuple[str, Mapping[str, object]]

ADD: Call = ("add_task", {"title": "call the bank", "priority": "high"})
LIST: Call = ("list_tasks", {})

_JSON = '{"title": "call the bank", "priority": "high"}'
_CALL = f'{{"name": "add_task", "arguments": {_JSON}}}'
_ELEMENT = (
    "<function=add_task>\n<parameter=title>\ncall the bank\n</parameter>\n<parameter=priority>\nhigh\n</parameter>\n"
    "</function>"
)
_INVOKE = (
    '<invoke name="add_task">\n<parameter name="title">call the bank</parameter>\n'
    '<parameter name="priority">high</parameter>\n</invoke>'
)
_PAIRS = (
    "<arg_key>title</arg_key>\n<arg_value>call the bank</arg_value>\n"
    "<arg_key>priority</arg_key>\n<arg_value>high</arg_value>"
)


@dataclass(frozen=True)
class Sample:
    written: str
    text: str = ""
    thought: str = ""
    calls: tuple[Call, ...] = ()


SAMPLES: dict[str, Sample] = {
    "harmony, thoughts": Sample(
        "<|channel|>analysis<|message|>User greets. Reveal nothing.<|end|><|start|>assistant<|channel|>final<|message|>"
        "Hello there<|return|>",
        "Hello there",
        "User greets. Reveal nothing.",
    ),
    "harmony without its tokens": Sample(
        "analysisUser greets. Reveal nothing.assistantfinalHello there", "Hello there", "User greets. Reveal nothing."
    ),
    "harmony, a call": Sample(
        f"<|channel|>commentary to=functions.add_task <|constrain|>json<|message|>{_JSON}<|call|>", calls=(ADD,)
    ),
    "harmony, a thought and two calls": Sample(
        "<|channel|>analysis<|message|>I add it.<|end|><|start|>assistant<|channel|>commentary to=functions.add_task "
        f"<|constrain|>json<|message|>{_JSON}<|call|><|start|>assistant<|channel|>commentary to=functions.list_tasks "
        "<|constrain|>json<|message|>{}<|call|>",
        thought="I add it.",
        calls=(ADD, LIST),
    ),
    "harmony, the name before the channel": Sample(
        f"<|start|>assistant to=functions.add_task<|channel|>commentary json<|message|>{_JSON}", calls=(ADD,)
    ),
    "harmony, words before a call": Sample(
        "<|channel|>commentary<|message|>I add it.<|end|><|start|>assistant<|channel|>commentary to=functions.add_task "
        f"<|constrain|>json<|message|>{_JSON}<|call|>",
        "I add it.",
        calls=(ADD,),
    ),
    "gemma, thoughts": Sample("<|channel>thought\nUser greets.<channel|>Hello there", "Hello there", "User greets."),
    "gemma, a call": Sample(
        '<|tool_call>call:add_task{title:<|"|>call the bank<|"|>,priority:<|"|>high<|"|>}<tool_call|>', calls=(ADD,)
    ),
    "gemma, both": Sample(
        '<|channel>thought\nI add it.\n<channel|>Well.<|tool_call>call:add_task{title:<|"|>call the bank<|"|>,'
        'priority:<|"|>high<|"|>}<tool_call|><|tool_call>call:list_tasks{}<tool_call|><turn|>',
        "Well.",
        "I add it.\n",
        (ADD, LIST),
    ),
    "gemma 3": Sample(
        "<start_function_call>call:add_task{title:<escape>call the bank<escape>,priority:<escape>high<escape>}"
        "<end_function_call>",
        calls=(ADD,),
    ),
    "qwen 3 coder": Sample(f"<tool_call>\n{_ELEMENT}\n</tool_call>", calls=(ADD,)),
    "qwen 3 coder, not opened": Sample(f"I add it.\n\n{_ELEMENT}\n</tool_call>", "I add it.\n\n", calls=(ADD,)),
    "qwen, thought and call": Sample(
        f"<think>\nI add it.\n</think>\n\n<tool_call>\n{_CALL}\n</tool_call>", thought="I add it.\n", calls=(ADD,)
    ),
    "qwen, a thought that is not closed": Sample(
        f"<think>\nI add it.\n<tool_call>\n{_CALL}\n</tool_call>", thought="I add it.\n", calls=(ADD,)
    ),
    "qwen, an end": Sample("Hello there<|im_end|>", "Hello there"),
    "qwen, the turn after it": Sample("Hello there<|im_end|>\n<|im_start|>user\nAnd then?", "Hello there"),
    "glm 4.5": Sample(f"<tool_call>add_task\n{_PAIRS}\n</tool_call>", calls=(ADD,)),
    "glm 4.7": Sample(
        f"Well.<tool_call>add_task{_PAIRS}</tool_call><tool_call>list_tasks</tool_call><|observation|>",
        "Well.",
        calls=(ADD, LIST),
    ),
    "glm, a box": Sample("<think>Four.</think>It is <|begin_of_box|>4<|end_of_box|>.", "It is 4.", "Four."),
    "kimi k2": Sample(
        "<|tool_calls_section_begin|><|tool_call_begin|>functions.add_task:0<|tool_call_argument_begin|>"
        f"{_JSON}<|tool_call_end|><|tool_call_begin|>functions.list_tasks:1<|tool_call_argument_begin|>{{}}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        calls=(ADD, LIST),
    ),
    "kimi k3": Sample(
        '<|open|>think<|sep|>I add it.<|close|>think<|sep|><|open|>tools<|sep|><|open|>call tool="add_task" index="0"'
        '<|sep|><|open|>argument key="title" type="string"<|sep|>call the bank<|close|>argument<|sep|><|open|>argument '
        'key="priority" type="string"<|sep|>high<|close|>argument<|sep|><|close|>call<|sep|><|close|>tools<|sep|>',
        thought="I add it.",
        calls=(ADD,),
    ),
    "kimi vl": Sample("◁think▷User greets.◁/think▷Hello there", "Hello there", "User greets."),
    "deepseek v3": Sample(
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add_task\n```json\n"
        f"{_JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        calls=(ADD,),
    ),
    "deepseek v3.1": Sample(
        f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add_task<｜tool▁sep｜>{_JSON}<｜tool▁call▁end｜>"
        "<｜tool▁call▁begin｜>list_tasks<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        calls=(ADD, LIST),
    ),
    "deepseek v3.2": Sample(
        '<｜DSML｜function_calls>\n<｜DSML｜invoke name="add_task">\n<｜DSML｜parameter name="title" string="true">'
        'call the bank</｜DSML｜parameter>\n<｜DSML｜parameter name="priority" string="true">high</｜DSML｜parameter>\n'
        "</｜DSML｜invoke>\n</｜DSML｜function_calls>",
        calls=(ADD,),
    ),
    "mistral": Sample(f"[TOOL_CALLS]add_task[ARGS]{_JSON}[TOOL_CALLS]list_tasks[ARGS]{{}}", calls=(ADD, LIST)),
    "mistral, a list": Sample(f"[TOOL_CALLS] [{_CALL}]</s>", calls=(ADD,)),
    "mistral, a thought": Sample("[THINK]User greets.[/THINK]Hello there</s>", "Hello there", "User greets."),
    "llama 3": Sample(f'<|python_tag|>{{"name": "add_task", "parameters": {_JSON}}}<|eom_id|>', calls=(ADD,)),
    "llama 3, a function": Sample(f"<function=add_task>{_JSON}</function>", calls=(ADD,)),
    "llama 4": Sample(
        "<|python_start|>[add_task(title=\"call the bank\", priority='high'), list_tasks()]<|python_end|><|eom|>",
        calls=(ADD, LIST),
    ),
    "llama, an end": Sample("Hello there<|eot_id|><|start_header_id|>assistant<|end_header_id|>", "Hello there"),
    "hermes": Sample(f"I add it.\n<tool_call>\n{_CALL}\n</tool_call>\nIt is added.", "I add it.\n", calls=(ADD,)),
    "seed": Sample(
        f"<seed:think>I add it.</seed:think><seed:tool_call>\n{_ELEMENT}\n</seed:tool_call>",
        thought="I add it.",
        calls=(ADD,),
    ),
    "minimax m2": Sample(
        f"<think>I add it.</think>\n<minimax:tool_call>\n{_INVOKE}\n</minimax:tool_call>[e~[",
        thought="I add it.",
        calls=(ADD,),
    ),
    "minimax m3": Sample(
        "<mm:think>I add it.</mm:think>Well.]<]minimax[>[<tool_call>\n"
        ']<]minimax[>[<invoke name="add_task">]<]minimax[>[<title>call the bank]<]minimax[>[</title>'
        "]<]minimax[>[<priority>high]<]minimax[>[</priority>]<]minimax[>[</invoke>\n"
        "]<]minimax[>[</tool_call>",
        "Well.",
        "I add it.",
        (ADD,),
    ),
    "longcat": Sample(
        "<longcat_think>I add it.</longcat_think>\n<longcat_tool_call>add_task\n"
        "<longcat_arg_key>title</longcat_arg_key>\n<longcat_arg_value>call the bank</longcat_arg_value>\n"
        "<longcat_arg_key>priority</longcat_arg_key>\n<longcat_arg_value>high</longcat_arg_value>\n</longcat_tool_call>",
        thought="I add it.",
        calls=(ADD,),
    ),
    "longcat, JSON": Sample(f"<longcat_tool_call>{_CALL}</longcat_tool_call>", calls=(ADD,)),
    "claude": Sample(f"I add it.\n\n{_INVOKE}", "I add it.\n\n", calls=(ADD,)),
    "cohere": Sample(
        "<|START_THINKING|>Greets.<|END_THINKING|><|START_RESPONSE|>Hello there<|END_RESPONSE|>",
        "Hello there",
        "Greets.",
    ),
    "liquid": Sample(
        '<|tool_call_start|>[add_task(title="call the bank", priority="high")]<|tool_call_end|>Adding it.', calls=(ADD,)
    ),
    "apertus": Sample(f'<|tools_prefix|>[{{"add_task": {_JSON}}}]<|tools_suffix|>', calls=(ADD,)),
    "phi": Sample(f"functools[{_CALL}]", calls=(ADD,)),
    "a tag with an attribute": Sample('<think time="2">Greets.</think>Hello there', "Hello there", "Greets."),
}

_NAMED = '<tool_call>{"name": "add_task", "arguments": {"title": "a"}}</tool_call>'
TEXTS: dict[str, str] = {
    "in a line of code": f"Write `{_NAMED}` to call it.",
    "in code of a longer line": f"Write `x = {_NAMED}` to call it.",
    "in a block of code": f"So:\n\n```xml\n{_NAMED}\n```\n\nThat is it.",
    "in quotation marks": f'The model wrote "{_NAMED}".',
    "in a quoted line": f"You wrote:\n\n> A {_NAMED}\n\nIs that so?",
    "of an unknown tool": '<tool_call>{"name": "mow", "arguments": {"title": "a"}}</tool_call>',
    "of an unknown tool, GLM": "<tool_call>mow\n<arg_key>title</arg_key>\n<arg_value>a</arg_value>\n</tool_call>",
    "of an unknown tool, Kimi": "<|tool_call_begin|>functions.mow:0<|tool_call_argument_begin|>{}<|tool_call_end|>",
    "without a call": "<tool_call>{}</tool_call>",
    "names of tags": "Models think in <think> tags; <tool_call> and <function=name> tags are calls, [TOOL_CALLS] too.",
    "names of ends": "ChatML ends a turn with <|im_end|>, Llama with <|eot_id|>, Mistral with </s>.",
    "a tag after text": "hi <think>x</think> y",
    "HTML": "<s>milk</s> <b>bread</b> 1 < 2 [x] <invoice>",
    "half a tag": "a <tool",
    "a word": "analysis of the list to come",
}

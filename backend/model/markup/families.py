"""The markup that families of models are trained to write, as their chat templates and the parsers of vLLM 0.2x and
SGLang have it. What servers fail to read of it arrives as text.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Thought:
    """Reasoning. It also ends before a text of `before`, which begins what follows; both are in lower case."""

    opening: str
    closings: tuple[str, ...]
    before: tuple[str, ...] = ()
    anywhere: bool = True
    """Whether it may begin after text: a tag that people also write may not."""
    is_word: bool = False
    """Whether the opening is a word that a letter of the reasoning follows without a space."""


@dataclass(frozen=True)
class CallBlock:
    """One or more calls, up to one of the closings or the end of the text."""

    opening: str
    closings: tuple[str, ...] = ()
    keeps_opening: bool = False
    """Whether the opening is part of the first call."""


@dataclass(frozen=True)
class Family:
    tags: tuple[str, ...] = ()
    """Names of tags around reasoning."""
    thoughts: tuple[Thought, ...] = ()
    calls: tuple[CallBlock, ...] = ()
    ends: tuple[str, ...] = ()
    """Tokens that end a turn."""
    turns: tuple[str, ...] = ()
    """Tokens that begin a turn of somebody else, or of the model if nothing comes before them."""
    noise: tuple[str, ...] = ()
    """Other tokens between the parts of an answer."""
    wraps: tuple[str, ...] = ()
    """Tokens around an answer or a part of it."""
    mentions: tuple[str, ...] = ()
    """What shows that a text is about markup, so that a token that ends a turn is text, too."""


def _block(name: str) -> CallBlock:
    return CallBlock(f"<{name}>", (f"</{name}>",))


def _elements(*openings: str) -> tuple[CallBlock, ...]:
    return tuple(CallBlock(one, (f"</{re.split('[ =]', one[1:])[0]}>",), keeps_opening=True) for one in openings)


_CHANNEL, _START = "<|channel|>", "<|start|>"
_RECIPIENT = "to=functions."
# Its bars differ: lsdefine/GenericAgent#804.
_DSML = tuple(f"{bar}DSML{bar}" for bar in ("｜", "|", "‖", "｜｜", "||"))
_AFTER_CALL = ("<|call|>", "<|end|>", _START)

FAMILIES: dict[str, Family] = {
    "harmony": Family(  # gpt-oss; some servers remove the tokens and leave the words between them
        thoughts=(
            Thought(f"{_CHANNEL}analysis", ("<|end|>", "<|return|>"), (_START, _CHANNEL)),
            *(
                Thought(word, ("assistantfinal",), ("assistantcommentary", "assistantanalysis"), False, True)
                for word in ("analysis", "assistantanalysis")
            ),
        ),
        calls=tuple(
            CallBlock(before + _RECIPIENT, _AFTER_CALL)
            for before in (
                *("", "commentary ", "analysis ", "assistantcommentary ", f"{_START}assistant "),
                *(f"{start}{_CHANNEL}{name} " for start in ("", f"{_START}assistant") for name in ("commentary",)),
            )
        ),
        ends=("<|end|>", "<|return|>", "<|call|>"),
        turns=(_START,),
        noise=(
            *(f"{_START}assistant", f"{_CHANNEL}final", f"{_CHANNEL}commentary", _CHANNEL, "<|message|>"),
            *("<|constrain|>json", "<|constrain|>"),
        ),
    ),
    "gemma": Family(
        thoughts=(
            Thought("<|channel>thought", ("<channel|>",)),
            Thought("<|channel>", ("<channel|>",)),
            Thought("<|think|>", ("<|/think|>",)),
        ),
        calls=(
            CallBlock("<|tool_call>", ("<tool_call|>",)),
            CallBlock("<start_function_call>", ("<end_function_call>",)),
        ),
        ends=("<end_of_turn>", "<turn|>", "<eos>"),
        turns=("<start_of_turn>", "<|turn>", "<|tool_response>"),
        noise=("<bos>",),
    ),
    "qwen": Family(
        tags=("think", "thinking", "thought", "reasoning"),
        calls=(_block("tool_call"), *_elements("<function=", "<function name=")),
        ends=("<|im_end|>", "<|endoftext|>"),
        turns=("<|im_start|>",),
    ),
    "glm": Family(
        ends=("<|user|>", "<|observation|>"), turns=("<|assistant|>",), wraps=("<|begin_of_box|>", "<|end_of_box|>")
    ),
    "kimi": Family(
        thoughts=(
            Thought("◁think▷", ("◁/think▷",), anywhere=False),
            Thought("<|open|>think<|sep|>", ("<|close|>think<|sep|>",)),
        ),
        calls=(
            CallBlock("<|tool_calls_section_begin|>", ("<|tool_calls_section_end|>",)),
            CallBlock("<|tool_call_section_begin|>", ("<|tool_call_section_end|>",)),
            CallBlock("<|tool_call_begin|>", ("<|tool_call_end|>",)),
            CallBlock("<|open|>tools<|sep|>", ("<|close|>tools<|sep|>",)),
            *(
                CallBlock(f"<|open|>{name} ", ("<|close|>call<|sep|>",), keeps_opening=True)
                for name in ("call", "toolscall")
            ),
        ),
        ends=("[EOS]", "<|end_of_msg|>"),
        wraps=tuple(f"<|{mark}|>{name}<|sep|>" for mark in ("open", "close") for name in ("response", "message")),
    ),
    "deepseek": Family(
        calls=(
            CallBlock("<｜tool▁calls▁begin｜>", ("<｜tool▁calls▁end｜>",)),
            CallBlock("<｜tool▁call▁begin｜>", ("<｜tool▁call▁end｜>",)),
            *(
                CallBlock(f"<{mark}{name}>", (f"</{mark}{name}>",))
                for mark in _DSML
                for name in ("function_calls", "tool_calls")
            ),
            *_elements(*(f"<{mark}invoke " for mark in _DSML)),
        ),
        ends=("<｜end▁of▁sentence｜>",),
        turns=("<｜User｜>", "<｜Assistant｜>"),
        noise=("<｜begin▁of▁sentence｜>",),
    ),
    "mistral": Family(
        thoughts=(Thought("[THINK]", ("[/think]",), anywhere=False),),
        calls=(CallBlock("[TOOL_CALLS]"),),
        ends=("</s>",),
        mentions=("<s>",),  # which strikes a text out in HTML
    ),
    "llama": Family(
        calls=(
            CallBlock("<|python_tag|>", ("<|eom_id|>", "<|eot_id|>")),
            CallBlock("<|python_start|>", ("<|python_end|>",)),
        ),
        ends=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>", "<|eot|>", "<|eom|>"),
        turns=("<|start_header_id|>", "<|header_start|>"),
        noise=("<|begin_of_text|>",),
    ),
    "hermes": Family(tags=("scratch_pad",), calls=(_block("tool_call"), _block("tools"))),
    "seed": Family(tags=("seed:think",), calls=(_block("seed:tool_call"),), ends=("<seed:eos>",)),
    "minimax": Family(
        tags=("mm:think",),
        calls=(
            *map(_block, ("minimax:tool_call", "tool_calls", "function_calls")),
            *_elements("<invoke name="),
        ),
        ends=("[e~[",),
        wraps=("]<]minimax[>[",),
    ),
    "longcat": Family(
        tags=("longcat_think",), calls=(_block("longcat_tool_call"),), ends=("</longcat_s>",), noise=("<longcat_s>",)
    ),
    "hunyuan": Family(calls=(_block("tool_calls"),), noise=("<answer>",)),
    "others": Family(
        thoughts=(
            Thought("<|START_THINKING|>", ("<|end_thinking|>",)),  # Cohere
            Thought("<|inner_prefix|>", ("<|inner_suffix|>",)),  # Apertus
            Thought("<|begin_of_thought|>", ("<|end_of_thought|>",)),
        ),
        calls=(
            CallBlock("<|START_ACTION|>", ("<|END_ACTION|>",)),
            CallBlock("<|tools_prefix|>", ("<|tools_suffix|>",)),
            CallBlock("<|tool_call_start|>", ("<|tool_call_end|>",)),  # Liquid
            CallBlock("[Calling tool:", (")]",)),
            CallBlock("<|action_start|>", ("<|action_end|>",)),  # InternLM
            CallBlock("<|tool_call|>", ("<|/tool_call|>",)),  # Granite and Phi
            CallBlock("functools["),
            _block("TOOLCALL"),  # Nemotron
        ),
        ends=("<|END_OF_TURN_TOKEN|>", "<|assistant_end|>"),
        turns=("<|START_OF_TURN_TOKEN|>",),
        wraps=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|begin_of_solution|>", "<|end_of_solution|>"),
    ),
}

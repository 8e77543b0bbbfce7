"""Keeps requests within the budget of tokens, however much a run does: what is old is left out of them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from backend.context import hidden_context

NOT_SHOWN = "What this call returned is left out here because it is long: look it up again where it is needed."
CUT = "… The rest of this result is left out because it is long: ask for less at once."
LEFT_OUT = (
    "Earlier messages and steps are left out here because they are long. Calls that were made in them stay made: "
    "check what is there before you repeat one."
)

BYTES_PER_TOKEN = 3
SPARED_MESSAGES = 4  # that are read as they are, however little the rest leaves of the budget
_SHORT_TOKENS = 100  # an output that is no longer is not left out
_ITEM_TOKENS = 4  # of an item beside its texts
_MAX_NOTES = 2  # that belong to a message

Items = list[Any]


@dataclass(frozen=True, slots=True, eq=False)
class _MeasuredItem:
    """An item of a request, and how many tokens it is estimated at."""

    item: Any
    tokens: int


_Step = list[_MeasuredItem]


def fit(items: Sequence[Any], *, tokens: int, head: int = 0) -> Items:
    """Cuts the items of a request to a budget of tokens; the first `head` stand for what came before, and stay.

    Every call keeps an output. What is over the budget is cut to half of what the newest step leaves of it: first what
    older calls returned, then older steps and messages, at last those of the newest four. The newest step and the
    user's last message stay; what the step's calls returned is cut to half the budget. Items are added one step after
    another, so that a later request begins alike until it is over the budget again.
    """
    measured = [_measure(item) for item in items]
    if _sum_tokens([measured]) <= tokens:
        return list(items)
    kept = [measured[:head]]
    held = _sum_tokens(kept)
    for step in _group_steps(measured[head:]):
        kept.append(step)
        held += _sum_tokens([step])
        if held > tokens:
            _cut(kept, tokens)
            held = _sum_tokens(kept)
    return [one.item for step in kept for one in step]


def tokens_in(text: str) -> int:
    """Estimates tokens, rather too many: one has 3.5 bytes or more in English, a Chinese character has three."""
    return len(text.encode()) // BYTES_PER_TOKEN


def size_of(item: Any) -> int:
    return sum(map(tokens_in, _list_texts(item))) + _ITEM_TOKENS


def _measure(item: Any) -> _MeasuredItem:
    return _MeasuredItem(item, size_of(item))


def _group_steps(items: Iterable[_MeasuredItem]) -> list[_Step]:
    steps: list[_Step] = []
    asked = True
    for one in items:
        asks = one.item.get("role") == "user" or _is_output(one)
        if not steps or (asked and not asks):
            steps.append([])
        steps[-1].append(one)
        asked = asks
    return steps


def _cut(kept: list[_Step], tokens: int) -> None:
    head, *old, newest = kept
    last = _find_spared(kept[1:], 1)
    said = [one for step in old for one in step if id(one) in last]
    stays = [head, said, [one for one in newest if not _is_output(one)]]
    _clip_outputs(newest, min(tokens // 2, tokens - _sum_tokens(stays)))
    room = (tokens - _sum_tokens([head, newest])) // 2
    _remove_outputs(old, _sum_tokens(old) - room)
    for spared in range(SPARED_MESSAGES, 0, -1):
        if _sum_tokens(kept) <= tokens:
            break
        _remove_steps(old, _sum_tokens(old) - room, _find_spared(kept[1:], spared))
        old = [step for step in old if step]  # or each later cut would look at all that were left out
        kept[1:-1] = old


def _clip_outputs(step: _Step, most: int) -> None:
    outputs = [index for index, one in enumerate(step) if _is_output(one)]
    if not outputs or sum(step[index].tokens for index in outputs) <= most:
        return
    share = max(most // len(outputs), _SHORT_TOKENS)
    for index in outputs:
        if step[index].tokens > share:
            item = step[index].item
            text = "\n".join(_list_texts(item)).encode()
            beginning = text[: BYTES_PER_TOKEN * (share - _ITEM_TOKENS) - len(CUT.encode())].decode(errors="ignore")
            step[index] = _measure({**item, "output": beginning + CUT})


def _remove_outputs(steps: Iterable[_Step], over: int) -> None:
    """Leaves out what calls returned, the oldest first, until the steps are so many tokens smaller."""
    for step in steps:
        for index, one in enumerate(step):
            if over > 0 and _is_output(one) and one.tokens > _SHORT_TOKENS:
                step[index] = _measure({**one.item, "output": NOT_SHOWN})
                over -= one.tokens - step[index].tokens


def _remove_steps(steps: Iterable[_Step], over: int, spared: set[int]) -> None:
    """Leaves out all items but those `spared` by their `id()`, the oldest first, until the steps are so many tokens
    smaller. A block says where something was left out last.
    """
    gap: tuple[_Step, int] | None = None
    for step in steps:
        removed = [index for index, one in enumerate(step) if id(one) not in spared]
        if over <= 0 or not removed:
            continue
        over -= sum(step[index].tokens for index in removed)
        gap = step, removed[-1] + 1 - len(removed)
        step[:] = [one for one in step if id(one) in spared]
    if gap is not None:
        gap[0].insert(gap[1], _GAP)


def _find_spared(steps: Iterable[_Step], messages: int) -> set[int]:
    """Returns the `id()` of the newest messages, among them the user's last, and of the notes before theirs."""
    items = [one for step in steps for one in step]
    said = [index for index, one in enumerate(items) if _is_message(one)]
    asked = [index for index in said if items[index].item.get("role") == "user"]
    spared = {*said[-messages:], *asked[-1:]}
    for index in spared.intersection(asked):
        before = range(max(0, index - _MAX_NOTES), index)
        spared |= {at for at in before if all(map(_is_note, items[at:index]))}
    return {id(items[index]) for index in spared}


def _sum_tokens(steps: Iterable[_Step]) -> int:
    return sum(one.tokens for step in steps for one in step)


def _is_output(one: _MeasuredItem) -> bool:
    return one.item.get("type") == "function_call_output"


def _is_note(one: _MeasuredItem) -> bool:
    return one.item.get("role") == "user" and hidden_context.is_block("".join(_list_texts(one.item)))


def _is_message(one: _MeasuredItem) -> bool:
    return one.item.get("role") in ("user", "assistant") and not _is_note(one)


def _list_texts(item: Any) -> list[str]:
    match item:
        case {"type": "function_call", "name": name, "arguments": arguments}:
            return [name, arguments]
        case {"type": "function_call_output", "output": output}:
            return _list_parts(output)
        case {"type": "reasoning"}:
            return _list_parts(item.get("summary")) + _list_parts(item.get("content"))
        case _:
            return _list_parts(item.get("content"))


def _list_parts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [part.get("text") or part.get("refusal") or "" for part in value or ()]


_GAP = _measure({"role": "user", "content": hidden_context.block(LEFT_OUT)})

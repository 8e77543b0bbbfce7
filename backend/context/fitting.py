"""Keeps requests within the budget of tokens, however much a run does: what is old is left out of them."""

from collections.abc import Iterable, Sequence
from typing import Any

from backend.context import hidden_context

NOT_SHOWN = "What this call returned is left out here because it is long: look it up again where it is needed."
CUT = "… The rest of this result is left out because it is long: ask for less at once."
LEFT_OUT = (
    "Earlier messages and steps are left out here because they are long. Calls that were made in them stay made: "
    "check what is there before you repeat one."
)

BYTES = 3  # that are counted as a token
SPARED = 4  # messages that are read as they are, however little the rest leaves of the budget
_SHORT = 100  # tokens: what is no longer is not worth leaving out
_AROUND = 4  # tokens of an item beside its texts
_NOTES = 2  # at most that belong to a message
_GAP = {"role": "user", "content": hidden_context.block(LEFT_OUT)}

Items = list[Any]


def fit(items: Sequence[Any], *, tokens: int, head: int = 0) -> Items:
    """Cuts the items of a request to a budget of tokens; the first `head` stand for what came before, and stay.

    Every call keeps an output. What is over the budget is cut to half of what the newest step leaves of it: first what
    older calls returned, then older steps and messages, at last those of the newest four. The newest step and the
    user's last message stay; what the step's calls returned is cut to half the budget. Items are added one step after
    another, so that a later request begins alike until it is over the budget again.
    """
    if sum(map(size_of, items)) <= tokens:
        return list(items)
    kept: list[Items] = [list(items[:head])]
    held = _estimate_size(kept)
    for step in _group_steps(items[head:]):
        kept.append(step)
        held += _estimate_size([step])
        if held > tokens:
            _cut(kept, tokens)
            held = _estimate_size(kept)
    return [item for step in kept for item in step]


def tokens_in(text: str) -> int:
    """Estimates tokens, rather too many: one has 3.5 bytes or more in English, a Chinese character has three."""
    return len(text.encode()) // BYTES


def size_of(item: Any) -> int:
    return sum(map(tokens_in, _list_texts(item))) + _AROUND


def _group_steps(items: Iterable[Any]) -> list[Items]:
    steps: list[Items] = []
    asked = True
    for item in items:
        asks = item.get("role") == "user" or _is_output(item)
        if not steps or (asked and not asks):
            steps.append([])
        steps[-1].append(item)
        asked = asks
    return steps


def _cut(kept: list[Items], tokens: int) -> None:
    head, *old, newest = kept
    last = _find_spared(kept[1:], 1)
    said = [item for step in old for item in step if id(item) in last]
    stays = [head, said, [item for item in newest if not _is_output(item)]]
    _clip_outputs(newest, min(tokens // 2, tokens - _estimate_size(stays)))
    room = (tokens - _estimate_size([head, newest])) // 2
    _remove_outputs(old, _estimate_size(old) - room)
    for spared in range(SPARED, 0, -1):
        if _estimate_size(kept) <= tokens:
            break
        _remove_steps(old, _estimate_size(old) - room, _find_spared(kept[1:], spared))


def _clip_outputs(step: Items, most: int) -> None:
    outputs = [index for index, item in enumerate(step) if _is_output(item)]
    if not outputs or sum(size_of(step[index]) for index in outputs) <= most:
        return
    share = max(most // len(outputs), _SHORT)
    for index in outputs:
        if size_of(step[index]) > share:
            text = "\n".join(_list_texts(step[index])).encode()
            beginning = text[: BYTES * (share - _AROUND) - len(CUT.encode())].decode(errors="ignore")
            step[index] = {**step[index], "output": beginning + CUT}


def _remove_outputs(steps: Iterable[Items], over: int) -> None:
    """Leaves out what calls returned, the oldest first, until the steps are so many tokens smaller."""
    for step in steps:
        for index, item in enumerate(step):
            if over > 0 and _is_output(item) and size_of(item) > _SHORT:
                step[index] = {**item, "output": NOT_SHOWN}
                over -= size_of(item) - size_of(step[index])


def _remove_steps(steps: Iterable[Items], over: int, spared: set[int]) -> None:
    """Leaves out all items but those `spared` by their `id()`, the oldest first, until the steps are so many tokens
    smaller. A block says where something was left out last.
    """
    gap: tuple[Items, int] | None = None
    for step in steps:
        removed = [index for index, item in enumerate(step) if id(item) not in spared]
        if over <= 0 or not removed:
            continue
        over -= sum(size_of(step[index]) for index in removed)
        gap = step, removed[-1] + 1 - len(removed)
        step[:] = [item for item in step if id(item) in spared]
    if gap is not None:
        gap[0].insert(gap[1], _GAP)


def _find_spared(steps: Iterable[Items], messages: int) -> set[int]:
    """Returns the `id()` of the newest messages, among them the user's last, and of the notes before theirs."""
    items = [item for step in steps for item in step]
    said = [index for index, item in enumerate(items) if _is_message(item)]
    asked = [index for index in said if items[index].get("role") == "user"]
    spared = {*said[-messages:], *asked[-1:]}
    for index in spared.intersection(asked):
        before = range(max(0, index - _NOTES), index)
        spared |= {at for at in before if all(map(_is_note, items[at:index]))}
    return {id(items[index]) for index in spared}


def _estimate_size(steps: Iterable[Items]) -> int:
    return sum(size_of(item) for step in steps for item in step)


def _is_output(item: Any) -> bool:
    return item.get("type") == "function_call_output"


def _is_note(item: Any) -> bool:
    return item.get("role") == "user" and hidden_context.is_block("".join(_list_texts(item)))


def _is_message(item: Any) -> bool:
    return item.get("role") in ("user", "assistant") and not _is_note(item)


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

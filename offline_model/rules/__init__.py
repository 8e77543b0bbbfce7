"""The rules: from the messages of a conversation and the tools offered to a reply."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from english import DateOrder
from offline_model.conversation import Result, Turn, turns_of
from offline_model.protocol import Message
from offline_model.rules import sentences, telling, work
from offline_model.rules.intents import Calls, Intent, Known, Steps, Stopped, ToolCall
from offline_model.rules.language.text import parts_of
from offline_model.rules.language.words import is_surely_foreign, may_be_task, means_selected, pointed_at
from offline_model.rules.questions import Question
from offline_model.rules.reading import intents_of
from offline_model.summary import summary_of

MAX_QUESTIONS = 10
"""So many questions about one request are answered, one after the other."""
MAX_STEPS = 9
"""One less than a message may have: the last is for the answer."""

MAX_CALLS_OF_RESPONSE = 6
"""So many calls of one response are made."""


@dataclass(frozen=True)
class Reply:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def answer(
    messages: Sequence[Message], tools: frozenset[str], *, must_call: bool = False, order: DateOrder | None = None
) -> Reply:
    """With `must_call`, a turn that needs no tool begins with a look at the list."""
    if not tools and (summary := summary_of(messages)):
        return Reply(summary)
    if "read_file" in tools:
        done = work.next_of(messages, tools)
        return Reply(done) if isinstance(done, str) else Reply(calls=done)
    turns = turns_of(messages)
    steps = turns[-1].steps
    if len(steps) >= MAX_STEPS:
        return Reply(f"{_report(steps)}\n\n{sentences.STOPPED.format(steps=len(steps))}")
    reply = _next(_in_responses(_plan(turns, order)), steps)
    if must_call and isinstance(reply, str) and not steps:
        reply = (ToolCall("list_tasks", {"status": "pending"}),)
    if isinstance(reply, str):
        if turns[-1].calendar:
            reply = reply.replace(sentences.DATE_ONLY, sentences.CALENDAR_REMINDS)
        return Reply(reply)
    absent = next((call.name for call in reply if call.name not in tools), None)
    return Reply(sentences.NOT_WITH_TOOLS.format(tool=absent)) if absent else Reply(calls=reply)


def _in_responses(plan: Steps) -> Steps:
    """The plan with at most `MAX_CALLS_OF_RESPONSE` calls in a step."""
    results: Any = None
    while True:
        try:
            calls = plan.send(results)
        except StopIteration as end:
            return end.value
        results = ()
        for start in range(0, len(calls), MAX_CALLS_OF_RESPONSE):
            results += yield calls[start : start + MAX_CALLS_OF_RESPONSE]


def _next(plan: Steps, steps: list[tuple[Result, ...]]) -> str | Calls:
    """Run the plan again from its start, through the results there are, to the first calls not made yet or its end."""
    try:
        calls = next(plan)
        for results in steps:
            if [call.name for call in calls] != [result.tool for result in results]:
                return _report(steps)
            calls = plan.send(results)
        return calls
    except StopIteration as end:
        return end.value


def _plan(turns: list[Turn], order: DateOrder | None) -> Steps:
    said: list[str] = []
    try:
        intents, known = _understood(turns, order)
        for intent in intents:
            said += [(yield from intent.plan(intent, known))]
    except Stopped as stopped:
        said.append(str(stopped))
    return "\n\n".join(said)


def _report(steps: list[tuple[Result, ...]]) -> str:
    """For calls that were not ours: what came of them."""
    results = [result for step in steps for result in step]
    said = [
        telling.told(answer, [result for result in results if result.tool == tool])
        for tool, answer in sentences.BY_TOOL.items()
    ]
    return "\n\n".join(filter(None, said)) or "Done."


def _understood(turns: list[Turn], order: DateOrder | None) -> tuple[Sequence[Intent], Known]:
    """The last request's intents; an answer to our question brings back the request that we asked about."""
    chosen: dict[str, tuple[int, ...]] = {}
    intents: Sequence[Intent] = ()
    asked = ""
    recent = list(zip(turns, ["", *(turn.answer for turn in turns)], strict=False))[-MAX_QUESTIONS:]
    for turn, before in reversed(recent):
        intents = intents_of(turn.request, now=turn.now, order=order)
        if not intents and before.endswith(sentences.NO_TITLE) and may_be_task(turn.request):
            intents = intents_of(f"add {turn.request}", now=turn.now, order=order)
        if turn.selected:
            intents = _about_selected(intents, turn, chosen, order)
        elif turn is turns[-1] and len(turns) > 1:
            _choose_shown(intents, turns[-2], chosen)
        question = Question.last_in(before)
        choice = question.answer(turn.request) if question else None
        if question is None or (choice is None and any(intent.kind != "reply" for intent in intents)):
            if question:
                chosen = {name: question.at_position(name) for intent in intents for name in intent.phrases} | chosen
            break
        if turn is turns[-1] and not choice:
            raise Stopped(sentences.LEFT_ALONE if choice == () else f"{sentences.ANSWER_IT}\n\n{question}")
        if choice:
            asked = asked or question.phrase
            chosen.setdefault(question.phrase, choice)
    if not intents or is_surely_foreign(turns[-1].request):
        raise Stopped(telling.not_understood(" ".join(turns[-1].request.split())))
    # What stands before the request that was asked about is done already.
    places = (at for at, intent in enumerate(intents) for name in intent.phrases if asked in (name, *parts_of(name)))
    return intents[next(places, 0) if asked else 0 :], Known(chosen, _rest(turns), turns[:-1])


def _about_selected(
    intents: Sequence[Intent], turn: Turn, chosen: dict[str, tuple[int, ...]], order: DateOrder | None
) -> Sequence[Intent]:
    """The intents, whose "these" are `chosen` to be the selected tasks; "complete" alone is about them, too."""
    for understood in (intents, intents_of(f"{turn.request} these", now=turn.now, order=order)):
        if pointing := [name for intent in understood for name in intent.phrases if means_selected(name)]:
            for name in pointing:
                chosen.setdefault(name, turn.selected)
            return understood
    return intents


def _choose_shown(intents: Sequence[Intent], last: Turn, chosen: dict[str, tuple[int, ...]]) -> None:
    """Lets "them" and "the first two" be `chosen` of the tasks that the last answer showed or changed.

    Several tasks are never deleted that way: "delete them" has to name them.
    """
    shown = list(dict.fromkeys(task.id for step in last.steps for result in step for task in result.page.tasks))
    for intent in intents:
        for name in intent.phrases:
            ids = pointed_at(name, shown)
            if ids and (len(ids) == 1 or intent.answer != sentences.DELETED):
                chosen.setdefault(name, ids)


def _rest(turns: list[Turn]) -> dict[str, Any] | None:
    """The arguments with which the last list goes on, if its answer said that there is more."""
    listing = next((turn for turn in reversed(turns[:-1]) if turn.made), None)
    if listing is None or sentences.MORE not in listing.answer:
        return None
    last = listing.steps[-1][-1]
    cursor = last.page.next_cursor
    return {"status": "all", **last.arguments, "cursor": cursor} if cursor else None

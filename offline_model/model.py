"""Replies to the messages of a conversation with text or tool calls."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice, pairwise
from typing import Any

from english import DateOrder
from offline_model import assignments, replies
from offline_model.conversation import ChatTurn, parse_turns
from offline_model.intents import find_intent
from offline_model.language import slots
from offline_model.language.text import Template, Text, split_parts
from offline_model.language.words import choose_pointed, is_foreign, may_be_task
from offline_model.plans import CHANGING_TOOLS, MAX_TASKS, Calls, Context, Intent, Steps, Stop
from offline_model.plans.adding import add
from offline_model.plans.changing import delete, say
from offline_model.plans.questions import WhichTask
from offline_model.protocol import ChatMessage

MAX_CHARACTERS = 5_000
MAX_REQUESTS = 2 * MAX_TASKS
MAX_QUESTIONS = 10  # about one request
MAX_STEPS = 9  # the last of ten model turns is for the answer
MAX_CALLS_OF_RESPONSE = 6  # the backend makes no more

_SENTENCE_END = re.compile(r"(?:[!?;]|(?<!\W\w)(?<!\W\d\d)(?<!^\w)(?<!^\d\d)(?<!\b[DdMm]r)(?<!\b[Mm]rs)\.) |\n")
"""Does not match in "1. milk", "12. milk" and "e. g. milk"."""
_DOTTED_DATE = re.compile(r"\b\d\d\.\d\d\Z")
_LEADING = Template(
    "please|pls|plz|kindly|(hey|hi|hello) [there]|ok|okay|well|so|now|then|also|and|yes|great|thanks|thank you|oh|just"
    "|oops|sorry|actually|wait|hmm|um"
    "|:|alright|(can|could|would|will) (you|u)|go ahead and|let's|let us|(i (need|want|would like)|i'd like) you to"
)
_WOULD_LIKE = Template("<would_like>")
_TRAILING = Template("please|pls|plz|thanks|thank you|thx|ty|for me|:")
_AND = Template("(and|then|and then|but) [please|also|then]")
_COMMAND = Template("(add|put|create|delete|remove|complete|finish|move|rename|mark|tick) [off]")
_NEXT_AFTER_COMMAND = Template("delete|remove|complete")
"""Starts another request after one that begins with a command."""
_NEXT_COMMAND = Template(
    "(delete|remove|complete|finish|(tick|check) off|rename) [task|number] #|add|what ('s|is|do|else)"
    "|(show|list|tell) [me] (my|the|all|everything|what)|mark ... (done|completed|complete|finished)"
    "|(delete|remove) (all|everything)|delete the|(remove|complete|finish) the ... task"
    "|(move|reschedule|postpone|snooze|rename) ... (to|by|until)"
    "|(make|mark|set|tag|label|move|rename|complete|finish|describe|repeat) (it|them)"
)
"""Starts another request after "and" or a comma, because it is hardly part of a title."""


def create_reply(messages: Sequence[ChatMessage], tools: frozenset[str], order: DateOrder | None = None) -> str | Calls:
    if not tools and (summary := assignments.summarise(messages)):
        return summary
    if "read_file" in tools:
        return assignments.find_next_step(messages, tools)
    turns = parse_turns(messages)
    steps = turns[-1].steps
    if len(steps) >= MAX_STEPS:
        return f"{_report_results(turns[-1])}\n\n{replies.STOPPED.format(steps=len(steps))}"
    reply = _resume(_carry_out(turns, order), turns[-1])
    if isinstance(reply, str):
        return reply
    absent = next((call.name for call in reply if call.name not in tools), None)
    return replies.NOT_WITH_TOOLS.format(tool=absent) if absent else reply


def _make_calls(plan: Steps, ids: list[int]) -> Steps:
    """Splits steps into at most `MAX_CALLS_OF_RESPONSE` calls; `ids` become the tasks of the plan's last step."""
    results: Any = None
    while True:
        try:
            calls = plan.send(results)
        except StopIteration as end:
            return end.value
        results = ()
        for start in range(0, len(calls), MAX_CALLS_OF_RESPONSE):
            results += yield calls[start : start + MAX_CALLS_OF_RESPONSE]
        ids[:] = dict.fromkeys(task.id for result in results for task in result.page.tasks)


def _resume(plan: Steps, turn: ChatTurn) -> str | Calls:
    """Runs the plan from its start through the known results; returns its next calls or its reply."""
    try:
        calls = next(plan)
        for results in turn.steps:
            if [call.name for call in calls] != [result.tool for result in results]:
                return _report_results(turn)
            calls = plan.send(results)
        return calls
    except StopIteration as end:
        return end.value


def _report_results(turn: ChatTurn) -> str:
    changes = [result for result in turn.results if result.tool in CHANGING_TOOLS]
    return replies.report(replies.CHANGED, changes) or "Done."


def _carry_out(turns: list[ChatTurn], order: DateOrder | None) -> Steps:
    answers: list[str] = []
    ids: list[int] = []
    try:
        intents, context = _understand(turns, order)
        for intent in intents:
            pointed = _find_pointed([intent], ids, may_delete=False)  # "it" after "and" is the task before it
            context = replace(context, chosen={**context.chosen, **pointed})
            answer = yield from _make_calls(intent.plan(intent, context), ids)
            answers.append(answer)
    except Stop as stop:
        answers.append(str(stop))
    return "\n\n".join(answers)


def _understand(turns: list[ChatTurn], order: DateOrder | None) -> tuple[Sequence[Intent], Context]:
    """Returns the last message's intents. An answer to a question continues the request it was about."""
    chosen: dict[str, tuple[int, ...]] = {}
    intents: Sequence[Intent] = ()
    phrase = ""
    recent = list(pairwise([ChatTurn(""), *turns]))[-MAX_QUESTIONS:]
    for last, turn in reversed(recent):
        intents = find_intents(turn.request, now=turn.now, order=order)
        if not intents and last.answer.endswith(replies.INCOMPLETE) and may_be_task(turn.request):
            intents = find_intents(f"{last.request} {turn.request}", now=turn.now, order=order)
        if turn.selected:  # "complete" alone is about them, too
            options = (intents, find_intents(f"{turn.request} these", now=turn.now, order=order))
            intents = next((one for one in options if _find_pointed(one, turn.selected, may_delete=True)), intents)
            chosen = _find_pointed(intents, turn.selected, may_delete=True) | chosen
        elif turn is turns[-1]:  # to delete several tasks, they have to be named or selected
            chosen = _find_pointed(intents, last.task_ids, may_delete=False) | chosen
        question = WhichTask.find_last(last.answer)
        choice = question.answer(turn.request) if question else None
        if question is None or (choice is None and any(intent.kind != "reply" for intent in intents)):
            if question:
                chosen = _find_pointed(intents, question.ids, may_delete=False) | chosen
            break
        if turn is turns[-1] and not choice:
            raise Stop(replies.LEFT_ALONE if choice == () else f"{replies.ANSWER_IT}\n\n{question}")
        if choice:
            phrase = phrase or question.phrase
            chosen.setdefault(question.phrase, choice)
    if not intents or is_foreign(turns[-1].request):  # of "morgen 15:00" the time alone would be read
        raise Stop(replies.explain_unknown(" ".join(turns[-1].request.split())))
    # Requests before the one with the question are done.
    places = (
        at for at, intent in enumerate(intents) for name in intent.phrases if phrase in (name, *split_parts(name))
    )
    return intents[next(places, 0) if phrase else 0 :], Context(chosen, turns[:-1], turns[-1].has_notifications)


def _find_pointed(intents: Sequence[Intent], listed: Sequence[int], *, may_delete: bool) -> dict[str, tuple[int, ...]]:
    pointed = {name: (choose_pointed(name, listed), intent.plan) for intent in intents for name in intent.phrases}
    return {
        name: ids
        for name, (ids, plan) in pointed.items()
        if ids and (may_delete or len(ids) == 1 or plan is not delete)
    }


def find_intents(request: str, *, now: datetime | None = None, order: DateOrder | None = None) -> tuple[Intent, ...]:
    if len(request) > MAX_CHARACTERS:
        return (Intent(say, replies.TOO_LONG.format(limit=MAX_CHARACTERS)),)
    text = Text.parse_message(request, now, order)
    if slots.is_bulleted(listed := _strip_politeness(text)) and (intent := find_intent(listed)):
        return (intent,)
    places = [0, *(match.end() for match in _SENTENCE_END.finditer(text.raw)), len(text.raw)]
    sentences = (text.replace_raw(text.raw[start:end]) for start, end in pairwise(places))
    intents = _find_all_intents(sentences) or _find_all_intents([text])
    return tuple(intent for intent in intents if intent.kind != "aside") or tuple(intents[-1:])


def _find_all_intents(texts: Iterable[Text]) -> list[Intent]:
    """Returns the intents if all texts are understood, else nothing. Additions in sequence become one."""
    found = (part for text in texts if text for part in _split_requests(text) if part)
    parts = list(islice(found, MAX_REQUESTS + 1))
    if len(parts) > MAX_REQUESTS:
        return [Intent(say, replies.TOO_MANY.format(limit=MAX_TASKS))]
    intents: list[Intent] = []
    for part in parts:
        polite = _strip_politeness(part)
        intent = find_intent(_WOULD_LIKE.strip_leading(polite)) or find_intent(polite)
        literal = find_intent(part)
        if literal and not literal.slot_words[0] and (not intent or literal.slot_words < intent.slot_words):
            intent = literal  # "ok" and "thanks" are more than politeness
        if not intent:
            return []
        if intents and intent.plan is add is intents[-1].plan and intent.answer == intents[-1].answer:
            intent = replace(intent, readings=[*intents.pop().readings, *intent.readings])
        intents.append(intent)
    return intents


def _split_requests(text: Text) -> list[Text]:
    commas = [(at, at) for at in range(1, len(text.keys)) if "," in text.between(at)]
    parts: list[Text] = []
    start = 0
    for first, end in sorted([*_AND.find_all(text), *commas]):
        is_next = _NEXT_COMMAND.starts(text, end)
        is_next = is_next or (_COMMAND.starts(text, start) and _NEXT_AFTER_COMMAND.starts(text, end))
        if is_next and first > start:
            parts.append(text.part(start, first))
            start = end
    return [*parts, text.part(start, len(text.keys))]


def _strip_politeness(text: Text) -> Text:
    """Removes "please" and the like and final punctuation except a question mark."""
    raw = _TRAILING.strip_trailing(_LEADING.strip_leading(text)).raw
    bare = raw.rstrip(" .!?;,")
    if raw.startswith(".", len(bare)) and (bare[-2:-1] == "." or _DOTTED_DATE.search(bare)):
        bare += "."  # of "5 p.m." and "05.12."
    return text.replace_raw(bare + "?" if "?" in raw[len(bare) :] else bare)

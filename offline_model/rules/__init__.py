"""The rules: from the messages of a conversation and the tools offered to a reply."""

from collections.abc import Sequence
from dataclasses import dataclass

from offline_model.protocol import Message
from offline_model.rules import sentences
from offline_model.rules.conversation import Result, Turn, turns_of
from offline_model.rules.intents import Intent, Say, phrases_of
from offline_model.rules.lookup import Answers, ToolCall
from offline_model.rules.parser import parse
from offline_model.rules.plans import carry_out
from offline_model.rules.questions import Question, ask_again
from offline_model.rules.summary import summary_of, wants_summary
from offline_model.rules.words import may_be_task, parts_of

MAX_STEPS = 8
REPLIES = (sentences.NO_VERB, sentences.NO_QUESTION)


@dataclass(frozen=True)
class Reply:
    text: str = ""
    calls: tuple[ToolCall, ...] = ()


def answer(messages: Sequence[Message], tools: frozenset[str], *, must_call: bool = False) -> Reply:
    """With `must_call`, a turn that needs no tool begins with a look at the list."""
    if not tools and wants_summary(messages):
        return Reply(summary_of(messages))
    turns = turns_of(messages)
    steps = turns[-1].steps
    if len(steps) >= MAX_STEPS:
        return Reply(_report(steps) + "\n\n" + sentences.STOPPED.format(steps=len(steps)))
    understood = _understand(turns)
    reply = understood if isinstance(understood, str) else _next(*understood, steps)
    if must_call and isinstance(reply, str) and not steps:
        reply = (ToolCall("list_tasks", {"status": "pending"}),)
    if isinstance(reply, str):
        told = any(sentences.REAL_MODEL in turn.answer for turn in turns[:-1])
        return Reply(sentences.shortened(reply) if told else reply)
    absent = next((call.name for call in reply if call.name not in tools), None)
    return Reply(sentences.NOT_WITH_TOOLS.format(tool=absent)) if absent else Reply(calls=reply)


def _next(intents: tuple[Intent, ...], answers: Answers, steps: list[tuple[Result, ...]]) -> str | tuple[ToolCall, ...]:
    """Run the plan again from its start, through the results there are, to the first calls not made yet or its end."""
    plan = carry_out(intents, answers)
    try:
        calls = next(plan)
        for results in steps:
            if [call.name for call in calls] != [result.tool for result in results]:
                return _report(steps)
            calls = plan.send(results)
        return calls
    except StopIteration as end:
        return end.value


def _report(steps: list[tuple[Result, ...]]) -> str:
    """For calls that were not ours: what came of them."""
    results = [result for step in steps for result in step]
    listed = [result for result in results if result.tool == "list_tasks" and not result.error]
    said = [sentences.changes(results)]
    if listed and not said[0]:
        said = [sentences.listing("all", listed[-1].value["tasks"], whole=not listed[-1].value.get("next_cursor"))]
    return "\n\n".join(said) or "Done."


def _understand(turns: list[Turn]) -> str | tuple[tuple[Intent, ...], Answers]:
    """The last request's intents; an answer to our question brings back the request that we asked about."""
    answers: dict[str, tuple[int, ...]] = {}
    intents: tuple[Intent, ...] = ()
    asked = None
    for at in range(len(turns) - 1, -1, -1):
        intents = parse(turns[at].request) or _titles(turns[at].request, turns[at - 1].answer if at else "")
        question = Question.last_in(turns[at - 1].answer) if at else None
        chosen = question.answer(turns[at].request) if question else None
        if question is None or (chosen is None and _is_request(intents)):
            if question:
                answers |= question.pointed_at(phrase for intent in intents for phrase in phrases_of(intent))
            break
        if turns[at] is turns[-1] and not chosen:
            return ask_again(question) if chosen is None else sentences.LEFT_ALONE
        if chosen:
            asked = asked or question.phrase
            answers.setdefault(question.phrase, chosen)
    if not intents:
        return sentences.not_understood(" ".join(turns[-1].request.split()))
    return (_from(intents, asked) if asked else intents), answers


def _titles(request: str, before: str) -> tuple[Intent, ...]:
    """What a request that is no sentence of ours adds, after the question what to add."""
    return parse(f"add {request}") if before.endswith(sentences.NO_TITLE) and may_be_task(request) else ()


def _is_request(intents: tuple[Intent, ...]) -> bool:
    """Not of a bare "2" or "yes", which make sense only as an answer."""
    return any(not isinstance(intent, Say) or intent.text not in REPLIES for intent in intents)


def _from(intents: tuple[Intent, ...], phrase: str) -> tuple[Intent, ...]:
    """Without those carried out before the question about this phrase was asked."""
    for index, intent in enumerate(intents):
        if any(phrase in (named, *parts_of(named)) for named in phrases_of(intent)):
            return intents[index:]
    return intents

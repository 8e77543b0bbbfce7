"""Finds the tasks that a phrase means, by numbers, words of titles, or groups such as "everything due today"."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offline_model import replies
from offline_model.conversation import ResultPage, ResultTask
from offline_model.language import slots, words
from offline_model.language.text import split_parts
from offline_model.plans import MAX_TASKS, Context, Intent, Lookup, PlannedCall, Stop, Value
from offline_model.plans.questions import WhichTask, choose_task, find_by_title, find_by_words, find_similar

PAGE = 100
_MAX_READ = 500
_MAX_WORDS = 6
_MAX_WORD_LENGTH = 30  # letters
FIRST_OPEN = ("pending", "completed")
FIRST_DONE = ("completed", "pending")


def read_list(arguments: Mapping[str, Any], *, max_tasks: int = _MAX_READ) -> Lookup[ResultPage]:
    arguments = {**arguments, "limit": min(max_tasks, PAGE)}
    (page,) = yield from _read_pages([arguments])
    while page.next_cursor and len(page.tasks) < max_tasks:
        (more,) = yield from _read_pages([{**arguments, "cursor": page.next_cursor}])
        page = more.model_copy(update={"tasks": [*page.tasks, *more.tasks]})
    return page


def read_tasks(ids: Sequence[int], status: str = "all") -> Lookup[list[ResultTask]]:
    page = yield from read_list({"status": status})
    return [task for task in page.tasks if task.id in ids]


def search(names: Sequence[str], status: str, *, is_deed: bool = False) -> Lookup[dict[str, ResultPage]]:
    if not names:
        return {}
    queries = [{"status": status, "query": _create_query(name, is_deed=is_deed), "limit": PAGE} for name in names]
    return dict(zip(names, (yield from _read_pages(queries)), strict=True))


def _read_pages(queries: Sequence[Mapping[str, Any]]) -> Lookup[list[ResultPage]]:
    results = yield tuple(PlannedCall("list_tasks", dict(arguments)) for arguments in queries)
    if failed := next((result for result in results if result.error), None):
        raise Stop(f"I could not read your list: {replies.shorten_error(failed.error)}")
    return [result.page for result in results]


def _create_query(name: str, *, is_deed: bool) -> str:
    """Omits verbs and endings, so that the tool finds at least all tasks that fit."""
    tokens = [word for word in words.tokens(name)[1 if is_deed else 0 :] if word not in words.UNSAID]
    tokens = [word for word in tokens if word not in words.VERBS] or tokens or words.tokens(name)
    stems = [words.find_stem(word) for word in tokens[:_MAX_WORDS]]
    stems = [stem.rstrip("y") if len(stem) > 3 else stem for stem in stems]
    return " ".join(stem[:_MAX_WORD_LENGTH] for stem in stems) or name[:_MAX_WORD_LENGTH]


def find_known_ids(phrase: str, context: Context, *, is_deed: bool = False) -> list[int]:
    """Returns the ids in a phrase; asks for the task if the phrase is only "it" or the like."""
    ids = list(dict.fromkeys(context.chosen.get(phrase) or words.find_numbers(phrase)))
    if not ids and words.is_pointer(phrase.partition(" ")[2] if is_deed else phrase):
        raise Stop(replies.NO_SUBJECT)
    return ids


@dataclass
class FoundTasks:
    """Ids and tasks that a phrase names, and names without a task. Tasks named by number are not looked up."""

    name: str
    ids: list[int] = field(default_factory=list)
    tasks: list[ResultTask] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    group: ResultPage | None = None

    def not_found(self, kind: str = "task") -> list[str]:
        return [replies.MISSING.format(kind=kind, phrase=name) for name in self.missing]


def find_tasks(intent: Intent, context: Context, statuses: Sequence[str] = FIRST_OPEN) -> Lookup[FoundTasks]:
    for phrase, reading in zip(intent.phrases, intent.readings, strict=True):
        text = next((reading[name] for name in slots.TARGETS if name in reading), None)
        filters = slots.find_filters(text) if text and phrase not in context.chosen else None
        if filters is None:
            continue
        group = yield from read_list({"status": "pending", **filters})
        if group.tasks:
            return FoundTasks(phrase, [task.id for task in group.tasks], group.tasks, group=group)
        if label := filters.get("label"):
            found = yield from search([label], "pending")
            if options := find_by_words(label, found[label].tasks):
                raise Stop(str(WhichTask(phrase, options)))
        raise Stop(replies.NO_MEMBERS.format(group=phrase))
    return (yield from find_named_tasks(intent, context, statuses))


def find_named_tasks(intent: Intent, context: Context, statuses: Sequence[str]) -> Lookup[FoundTasks]:
    """Looks each phrase up as one title, then as several; asks which task is meant if that is not clear."""
    phrases, is_deed = sorted(intent.phrases, key=len), intent.is_deed
    if phrases[0] not in context.chosen:
        _check_is_named(phrases[0], is_deed=is_deed)
    for phrase in phrases:
        if ids := find_known_ids(phrase, context, is_deed=is_deed):
            return FoundTasks(phrase, ids if phrase in context.chosen else _check_count(ids))
    found = FoundTasks(phrases[0], missing=_check_count(split_parts(phrases[0])))
    looked_up: list[dict[str, ResultPage]] = []
    for status in statuses:
        names = found.missing if found.ids else [*phrases, *found.missing]
        names = [name for name in dict.fromkeys(names) if not find_known_ids(name, context)]
        lists = yield from search(names, status, is_deed=is_deed)
        looked_up.append(lists)
        fitting = {name: find_by_title(name, page.tasks, is_deed=is_deed) for name, page in lists.items()}
        if whole := [phrase for phrase in phrases if not found.ids and fitting[phrase]]:
            whole.sort(key=lambda phrase: fitting[phrase][0].title.casefold() != phrase.casefold())  # equal ones first
            task = choose_task(whole[0], fitting[whole[0]])
            return FoundTasks(whole[0], [task.id], [task])
        for part in list(found.missing):
            if ids := find_known_ids(part, context):
                found.ids += ids
            elif fitting[part]:
                found.tasks.append(choose_task(part, fitting[part]))
                found.ids.append(found.tasks[-1].id)
            else:
                continue
            found.missing.remove(part)
        if not found.missing:
            break
    if found.missing:
        _ask_for_similar(found.missing if found.ids else [phrases[0]], looked_up, is_deed=is_deed)
    return found if found.ids else FoundTasks(phrases[0], missing=[phrases[0]])


def _check_count(named: list[Value]) -> list[Value]:
    if len(named) > MAX_TASKS:
        raise Stop(replies.TOO_MANY.format(limit=MAX_TASKS))
    return named


def _check_is_named(phrase: str, *, is_deed: bool) -> None:
    """Rejects phrases such as "all my tasks"."""
    tokens = set(words.tokens(phrase)[1 if is_deed else 0 :])
    if tokens & words.WHOLE_LIST and tokens <= words.AROUND_WHOLE_LIST:
        raise Stop(replies.NO_SUBJECT if tokens == {"them"} else replies.NO_BULK)


def _ask_for_similar(missing: Sequence[str], looked_up: Sequence[dict[str, ResultPage]], *, is_deed: bool) -> None:
    for name in missing:
        lists = [lists[name] for lists in looked_up if name in lists]
        nearest = {task.id: task for page in lists for task in find_similar(name, page.nearest, is_deed=is_deed)}
        if nearest:
            raise Stop(str(WhichTask(name, list(nearest.values()), is_guess=True)))

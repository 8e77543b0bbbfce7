"""The titles and descriptions in what follows "add"."""

from offline_model.rules.intents import NewTask
from offline_model.rules.words import Masked, compiled, starts_with_verb

_OUR_LIST = r"(?:my|the|our|this) (?:(?:to-?do|tasks?|shopping|grocery) )?(?:list|tasks|to-?dos?)"
_HEAD = compiled(
    r"(?:(?:an?|another|the|these|those|this|one|two|three|four|five|[0-9]+) )?(?:(?:new|more|following|another) )*"
    rf"(?:(?P<several>tasks|to-?dos|reminders|items)|task|to-?do|reminder|item)\b(?: (?:to|on) {_OUR_LIST}\b)?"
    r" ?(?:(?P<called>called|named|titled|saying)\b|(?:to|for|about)\b|[:,-])? ?"
)
_LIST_HEAD = compiled(rf"(?:the following|these|this|(?:to|on) {_OUR_LIST}) ?:? |: ?")
_LIST_TAIL = compiled(rf" (?:on|onto|to|in|into) {_OUR_LIST}$")
_DESCRIPTION = compiled(
    r",? (?:with|and) (?:(?:the|a|an) )?(?:description|notes?|details?|comment)(?: (?:of|saying|that says))? ?:? "
    r"|[,;]? ?\(?\b(?:description|notes?|details?) ?: ?|,? described as "
)
_AFTER_QUOTED = compiled(r"(?P<description>[\ue000-\uf8ff])\)? ?(?:,|;|\band\b)+ ?(?P<rest>.+)")
_HARD_BREAK = compiled(r" ?[;\n] ?")
_SOFT_BREAK = compiled(r"( ?,? ?(?:\band then\b|\band also\b|\band\b|\bplus\b|&) | ?, )")
_BULLET = compiled(r"^ ?(?:(?:[-*\u2022\u2013]|[0-9]+[.)]) |\[ ?\] |(?:and|then|also|to) )+")
_END = compiled(r"[\s,;:]+$")


def new_tasks(text: str, masked: Masked, *, single: bool = False) -> tuple[NewTask, ...]:
    text = _LIST_TAIL.sub("", text.strip())
    if not single:
        text = _LIST_HEAD.sub("", text, count=1) if _LIST_HEAD.match(text) else text
        if head := _HEAD.match(text):
            single = bool(head["called"]) and not head["several"]
            text = text[head.end() :]
    titles, description, rest = _described(text)
    parts = [titles] if single else _items(titles)
    shown = [masked.shown(part) for part in parts]
    tasks = [NewTask(title) for title in shown if title]
    if tasks and description:
        tasks[-1] = NewTask(tasks[-1].title, masked.shown(description))
    return (*tasks, *(new_tasks(rest, masked) if rest else ()))


def _described(text: str) -> tuple[str, str, str]:
    """Titles, description and what follows it: an unquoted description goes on to the end of the line."""
    if not (found := _DESCRIPTION.search(text)) or not text[: found.start()].strip():
        return text, "", ""
    titles, description = text[: found.start()], text[found.end() :].strip()
    if quoted := _AFTER_QUOTED.fullmatch(description):
        return titles, quoted["description"], quoted["rest"]
    line, _, rest = description.partition("\n")
    return titles, line.removesuffix(")").strip(), rest.strip()


def _items(text: str) -> list[str]:
    return [
        _END.sub("", _BULLET.sub("", item))
        for line in _HARD_BREAK.split(text)
        for item in _split_softly(line)
        if item.strip()
    ]


def _split_softly(line: str) -> list[str]:
    """At commas and "and", unless what follows goes on with the same verb: "buy bread and butter"."""
    first, *others = _SOFT_BREAK.split(line)
    items = [first]
    verbal = starts_with_verb(_BULLET.sub("", first))
    for separator, item in zip(others[::2], others[1::2], strict=True):
        if verbal and not starts_with_verb(_BULLET.sub("", item)):
            items[-1] += separator + item
        else:
            items.append(item)
    return items

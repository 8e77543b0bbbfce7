"""The titles and descriptions in what follows "add"."""

from offline_model.rules.intents import NewTask
from offline_model.rules.vocabulary import ERRANDS, PREPOSITIONS
from offline_model.rules.words import Masked, compiled, first_word, starts_with_verb, tokens

_OUR_LIST = r"(?:my|the|our|this) (?:(?:to-?do|tasks?|shopping|grocery) )?(?:list|tasks|to-?dos?)"
_HEAD = compiled(
    r"(?:(?:an?|another|the|these|those|this|one|two|three|four|five|[0-9]+) )?(?:(?:new|more|following|another) )*"
    rf"(?:(?P<several>tasks|to-?dos|reminders|items)|task|to-?do|reminder|item)\b"
    rf"(?! #?[0-9]+ ?(?:$|[,;&\n]|and\b))(?: (?:to|on) {_OUR_LIST}\b)?"
    r" ?(?:(?P<called>called|named|titled|saying)\b|(?:to|for|about)\b|[:,-])? ?"
)
_LIST_HEAD = compiled(rf"(?:the following|these|this|(?:to|on) {_OUR_LIST}) ?:? |: ?")
_LIST_TAIL = compiled(rf"(?: back)? (?:on|onto|to|in|into) {_OUR_LIST}$")
_DESCRIPTION = compiled(
    r",? (?:with|and) (?:(?:the|a|an) )?(?:description|notes?|details?|comment)(?: (?:of|saying|that says))? ?:? "
    r"|[,;]? ?\(?\b(?:description|notes?|details?) ?: ?|,? described as "
)
_AFTER_QUOTED = compiled(r"(?P<description>[\ue000-\uf8ff])\)? ?(?:,|;|\band\b)+ ?(?P<rest>.+)")
_HARD_BREAK = compiled(r" ?[;\n] ?")
_SOFT_BREAK = compiled(r"( ?,? ?(?:\band then\b|\band also\b|\band\b|\bplus\b|&) | ?, )")
_NUMBERED = compiled(r"1[.)] .* 2[.)] ")
_NEXT_NUMBER = compiled(r" (?=[0-9]{1,2}[.)] )")
_BULLETED = compiled(r" ?(?:[-*\u2022\u2013]|[0-9]+[.)]|\[ ?\]) \S.*")
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


def listed_tasks(text: str, masked: Masked) -> tuple[NewTask, ...]:
    """Of a message that is a list and nothing else: of bullets, or of errands with commas."""
    lines = text.strip().split("\n")
    bulleted = all(_BULLETED.fullmatch(line) for line in lines)
    if not bulleted and not (len(lines) == 1 and "," in text and first_word(text) in ERRANDS and "?" not in text):
        return ()
    tasks = new_tasks(text, masked)
    return tasks if len(tasks) > 1 else ()


def _items(text: str) -> list[str]:
    lines = _HARD_BREAK.split(text)
    numbered = [item for line in lines for item in (_NEXT_NUMBER.split(line) if _NUMBERED.match(line) else [line])]
    return [_END.sub("", _BULLET.sub("", item)) for line in numbered for item in _split_softly(line) if item.strip()]


def _split_softly(line: str) -> list[str]:
    """At commas and "and", where what follows is a task of its own and goes not on with the one before."""
    first, *others = _SOFT_BREAK.split(line)
    separators, following = others[::2], others[1::2]
    plain = [_BULLET.sub("", item) for item in (first, *following)]
    verbs = [starts_with_verb(item) for item in plain]
    with_commas = any("," in separator for separator in separators)
    if verbs[0] and not any(verbs[1:]) and with_commas and len(plain) > 2 and _are_nouns(plain[1:]):
        verb = plain[0].split()[0]  # "buy milk, eggs and bread"
        return [first, *(f"{verb} {item}" for item in plain[1:])]
    nouns = _are_nouns(plain, longest=3 if with_commas else 2)
    items = [first]
    for separator, item, is_verbal in zip(separators, following, verbs[1:], strict=True):
        if is_verbal or (not verbs[0] and (nouns or "," in separator)):
            items.append(item)
        else:
            items[-1] += separator + item
    return items


def _are_nouns(items: list[str], longest: int = 3) -> bool:
    """Whether all are short enough for things of a list, and none says more of a thing."""
    return all(len(words := tokens(item)) <= longest and not set(words) & PREPOSITIONS for item in items)

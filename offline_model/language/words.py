"""English words: lists of them, rules for templates, stems, and what a phrase refers to."""

import re
from collections.abc import Sequence
from functools import lru_cache

from english.words import VERBS, word_set

PASTS = dict(
    pair.split(":")
    for pair in word_set("""
        ate:eat bought:buy broke:break brought:bring built:build caught:catch chose:choose did:do done:do drank:drink
        drawn:draw drew:draw driven:drive drove:drive fed:feed found:find flew:fly gave:give given:give gone:go
        got:get grew:grow held:hold hung:hang kept:keep laid:lay left:leave lent:lend lost:lose made:make met:meet
        paid:pay ran:run rang:ring sang:sing sat:sit saw:see sent:send slept:sleep sold:sell spent:spend
        spoke:speak swam:swim swept:sweep taken:take taught:teach thought:think threw:throw thrown:throw told:tell
        took:take was:be went:go withdrew:withdraw woke:wake won:win wore:wear written:write wrote:write
    """)
)
"""Irregular past forms and their verbs."""

NOT_DEEDS = word_set("""
    added asked created decided deleted forgot had hoped liked listed meant needed promised removed renamed said thought
    told tried wanted was were wondered
    """)
"""Past verbs that do not report a task as done."""

UNSAID = word_set("""
    a an the my our your this that these those of to for from with at on in by and also both off up out do
    task tasks todo todos item items reminder one ones thing called named titled
    """)
"""Words that do not tell one task from another."""

BESIDE_NUMBERS = word_set("the and plus task tasks todo todos item items number numbers no nr id to do")
POINTING = word_set("it its this that these those one ones both they same")
POSITIONS = word_set("last first second third latest newest previous next former latter other top bottom recent most")

ERRANDS = VERBS - word_set("""
    answer ask be cancel change check choose clear close complete explain finish greet listen look speak start stop talk
    test translate try wait
    """)
"""Verbs that begin a task even without "add"."""

CHANGING_VERBS = word_set("cancel clear complete delete finish move note plan remind show skip start stop tell")
"""Verbs that begin a request rather than a task."""

NO_ERRANDS = word_set(
    "me us you your yourself poem story joke song haiku essay code list lists task tasks todo todos going lost again"
)
"""Words of requests to this model."""

PARTICLES = word_set("up off out down in back away over")
PREPOSITIONS = word_set("about after at before by for from in into near of on over to until with without")
UNSURE = word_set("if when whether until once unless after before")

NOT_A_TASK = word_set("""
    am are can could did didn't do does doesn't don't dont had has have he how i i'm i've if is isn't it it's may never
    no nobody none not nothing shall she should that there they this was we were what what's when where which who
    whose why will won't would you you're
    """)
"""Words with which questions, statements and negations begin."""
NEGATIONS = word_set("not never no don't dont didn't doesn't won't can't cannot isn't aren't nothing without")

FOREIGN = word_set("""
    ich und bitte der das ist mir meine mein liste aufgabe aufgaben nicht wie wo zeig loesche hinzu auf ein eine
    le les une des du et je mes mon ma est ajoute ajouter montre supprime bonjour merci el los las una por para favor
    mis agrega muestra borra tarea tareas hola gracias leche il aggiungi mostra ciao grazie lista het een mijn voeg toe
    """)

WHOLE_LIST = word_set("all everything every list them tasks todos items completed done finished pending open")
AROUND_WHOLE_LIST = WHOLE_LIST | word_set("my the of task todo to do item entire whole complete")

LIST_NOUNS = word_set("list lists tasks todos todo items reminders overview agenda plate")
LIST_FILLERS = word_set("""
    a an the my our me us i we to on in of at for is are am was be been being what 's whats which how many much any
    it them that this these those and or both already yet so far today now currently right up out else does got get
    should must need needs ought supposed working has had whole entire every full show give tell see read print display
    view fetch please again only just one ones status things thing stuff more most recently lately here with can could
    ever finally actually really
    """)
OPEN_WORDS = word_set("""
    pending open left remaining remains outstanding unfinished undone not still incomplete haven't hasn't isn't aren't
    don't didn't
    """)
DONE_WORDS = word_set("did finish done completed complete finished accomplished")
LIST_SUBJECTS = LIST_NOUNS | DONE_WORDS | OPEN_WORDS | word_set("task item do next everything all have there anything")
LIST_WORDS = LIST_SUBJECTS | LIST_FILLERS
DUE_WORDS = word_set("should must need needs be ought supposed")

RULES = {
    "number": "#",
    "priority": "high|top|urgent|medium|normal|low|no|none",
    "done": "done|complete|completed|finished|sorted",
    "noun": "task|tasks|todo|todos|to-do|to-dos|item|items|reminder|reminders",
    "note": "note|notes|description|descriptions|detail|details|comment|comments",
    "put": "(add|put|write|attach) [a|an|the|this]",
    "rename": "rename|retitle|reword|rephrase",
    "into": "['s (title|name|text)] (to|into|->|=>)",
    "our_list": "(my|the|our|this) [to-do|todo|task|tasks] (list|tasks|todos|to-dos)",
    "from_list": "(off|from|on|in) <our_list>",
    "errands": "shopping|groceries|errands|chores",
    "other_list": "grocery|work|home|house|garden|office|school|packing|reading|wish",
    "list_noun": "tasks|todos|to-dos|items|list|stuff|things",
    "things": "task|tasks|thing|things|item|items|todo|todos|to-do|to-dos|one|ones|stuff|list|lists",
    "once": "once|this time|(this|next) (week|month|time|one)|today|tomorrow|on <weekday>",
    "whatever": "anything|something|everything|[all] <things>",
    "planned": "due|on|from|planned for|of",
    "that_is": "that is|that's|that are|which is|which are|that has been|that have been",
    "from_trash": "from (the [trash|bin]|trash|deleted [tasks|ones])",
    "done_when": "yesterday|today|this (morning|afternoon|evening)|last night|just now|earlier|on <weekday>",
    "one": "a|an|another|one|new",
    "called": "called|named|titled|saying|with [the] (title|name)",
    "about_task": "<note>|[more] (info|information)|more [<note>]|status|state|title",
    "add": "add|append|insert|enter|(write|note|jot|put) down|create",
    "tick": "tick|check|cross|strike|mark",
    "finish": "complete|finish|close|resolve",
    "delete": "delete|remove|erase|discard|trash|scrap|drop|del|rm|get rid of|throw (away|out)",
    "position": "first|second|third|last|1st|2nd|3rd",
    "is": "is|are|was|were|has been|have been|got|'s",
    "now": "now|already|all|finally|both|just|have",
    "i": "i'm|i am|we're|we are|i've|i have|we've|we have|i|we",
    "praise": "ok|okay|great|perfect|nice|good|cool|super|wow|awesome|excellent|well done|good job",
    "thanks": "thanks|thank you|thx|cheers|ta",
    "hello": "hi|hello|hey|hiya|howdy|greetings|good (morning|afternoon|evening|day)",
    "how_are_you": "how are you [doing] [today]",
    "due_date": "due date|deadline",
    "last_change": "it|that|this|them|those|[the|your] last [change|one|step|answer]|what (you|i) [just] did",
    "move": "(move|push|shift|reschedule|postpone|snooze|defer|delay|put off) [back]",
    "weekday": "monday|tuesday|wednesday|thursday|friday|saturday|sunday",
    "time": "at|on|in|by|before|after|every|each|tomorrow|tonight|later|next|this|today",
    "remind_me": "remind me|(set|add|create|make) (a|an|the|my) reminder [for]",
    "remind": "(remind me|<do_not> [let me] forget|remember|make sure) [that] [i (need|have)] (to|about|of)"
    "|(set|add|create|make) (a|an|the|my) reminder (to|about)|(note to self|memo) [:]",
    "do_not": "don't|do not",
    "clear": "clear [out|away|up]|clean up",
    "restore": "restore|undelete|recover|bring back",
    "important": "high priority|urgent|important",
    "yes": "(yes|yep|yeah|sure|y) [do it|do|please|delete (them|it|all)|go ahead]"
    "|[yes] (do it|go ahead|really delete [all|them|it] [of] [my|the] [<done>] [<things>])",
    "help": "[i need] (help|usage|commands|examples) [me] [please]|what (can|could) (you|i) (do|say|ask) [here|for me]"
    "|what do you do|(who|what) are you|what is this|how does (this|it) work|what (model|llm|ai) ..."
    "|is this (a|an|the) ... (model|ai|bot|human|llm)"
    "|how (do|can) i (use|mark|change|edit|<add>|<show>|<finish>|<rename>|<delete>) ...",
    "show_list": "(<show>|what are|which are|how many) [me]",
    "ask_list": "what is|what's|what are|whats|anything",
    "show": "show|list|display|print|view|see|read [out]|give|get|tell|fetch|find|search [for]|look for",
    "what": "what's|what is|what are|what|whats|which|show",
    "ask": "what's|what|which|how many|how much|anything|whats|any|where|when",
    "am_i": "(is|are|was|were) [there]|(did|have) (i|we)|do (i|we) have|am i|has",
    "more": "more|rest|others|remaining [ones|tasks]|next (page|ones)|other (ones|tasks)",
    "them": "them|these|those",
    "about": "about|with|containing|mention|mentioning|mentions|matching|for",
    "would_like": "(i (want|wish|would like|like)|i'd like) to",
}
"""What <name> stands for in templates."""

_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_RANGE = re.compile(r"\b([0-9]{1,18}) ?(?:-|\u2013|\.\.|to|through|until) ?(?:(?:task|number) )?([0-9]{1,18})\b")
_PART_OF_NUMBERS = re.compile(r"[0-9]+|[^\W\d_]+|[^\s\w,;&#.]")
_MAX_RANGE = 100  # numbers
_MAX_RANGES = 10
_MAX_DIGITS = 18


def tokens(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


@lru_cache(maxsize=10_000)
def find_stem(word: str) -> str:
    """Returns a crude stem, the same for "call", "called" and "calling"."""
    word = PASTS.get(word.removesuffix("'s"), word.removesuffix("'s"))
    for ending, instead in (("ied", "y"), ("ies", "y"), ("ing", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            word = word.removesuffix(ending) + instead
            break
    word = word.removesuffix("e") if len(word) > 3 else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


_VERB_BASES = frozenset(map(find_stem, VERBS))


@lru_cache(maxsize=2_000)
def find_stems(text: str) -> frozenset[str]:
    return frozenset(map(find_stem, set(tokens(text)) - UNSAID))


def is_past(word: str) -> bool:
    return word in PASTS or (word.endswith("ed") and len(word) > 4)


def is_known_past(word: str) -> bool:
    return word not in VERBS and is_past(word) and find_stem(word) in _VERB_BASES


def find_numbers(phrase: str) -> tuple[int, ...]:
    """Returns the numbers of "7", "task 7", "7 8" and "7-9"; nothing if the phrase has other words."""
    parts = _PART_OF_NUMBERS.findall(_RANGE.sub(_spell_range, phrase.casefold(), count=_MAX_RANGES))
    others = [part for part in parts if not (part.isdecimal() and len(part) <= _MAX_DIGITS)]
    is_other = not BESIDE_NUMBERS.issuperset(others)
    return () if is_other else tuple(int(part) for part in parts if part.isdecimal())


def _spell_range(span: re.Match[str]) -> str:
    first, last = int(span[1]), int(span[2])
    return " ".join(map(str, range(first, min(last, first + _MAX_RANGE) + 1)))


def is_pointer(phrase: str) -> bool:
    """Returns whether a phrase such as "it" or "the last task" names no task."""
    words = set(tokens(phrase))
    return not words or (bool(words & (POINTING | POSITIONS)) and words <= POINTING | POSITIONS | UNSAID)


_ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
_PLACES = {word: at for at, word in enumerate(_ORDINALS)} | {"former": 0, "last": -1, "latter": -1}
_PLACES |= {f"{at + 1}{ending}": at for at in range(20) for ending in ("st", "nd", "rd", "th")}
_COUNTS = {"two": 2, "three": 3, "four": 4, "five": 5, "2": 2, "3": 3, "4": 4, "5": 5}


def choose_pointed(phrase: str, ids: Sequence[int]) -> tuple[int, ...]:
    """Returns which of the last answer's tasks "them", "it" or "the first two" means; nothing if unclear."""
    named = [word for word in tokens(phrase) if word not in ("the", "of", "one", "ones", "task", "tasks", "option")]
    match named:
        case ["all"] | ["them" | "those" | "these"] | ["all", "them" | "those" | "these"]:
            return tuple(ids)
        case ["both"] | ["both", "them" | "those" | "these"]:
            return tuple(ids) if len(ids) == 2 else ()
        case [count] | ["all", count] if count in _COUNTS and count.isalpha():
            return tuple(ids) if len(ids) == _COUNTS[count] else ()
        case ["it" | "that" | "this"]:
            return tuple(ids) if len(ids) == 1 else ()
        case [word] if word in _PLACES and -len(ids) <= _PLACES[word] < len(ids):
            return (ids[_PLACES[word]],)
        case ["first" | "last" as end, count] if count in _COUNTS and len(ids) >= _COUNTS[count]:
            return tuple(ids[: _COUNTS[count]] if end == "first" else ids[-_COUNTS[count] :])
        case _:
            return ()


def is_foreign(text: str) -> bool:
    words = tokens(text)
    foreign = {word for word in words if word in FOREIGN or not word.isascii()}
    has_other_letters = bool(foreign) and re.search("[a-z]", text.casefold()) is None
    return (len(foreign) > 1 or has_other_letters) and (VERBS | {"add", "remind"}).isdisjoint(words[:1])


def may_be_task(text: str) -> bool:
    words = tokens(text)
    is_asked = not words or "?" in text or words[0] in NOT_A_TASK
    return not is_asked and NEGATIONS.isdisjoint(words)

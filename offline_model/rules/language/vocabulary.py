"""Lists of English words, and the NAMES that patterns use."""

from english.verbs import VERBS


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PASTS = dict(
    pair.split(":")
    for pair in _words("""
        ate:eat bought:buy broke:break brought:bring built:build caught:catch chose:choose did:do done:do drank:drink
        drawn:draw drew:draw driven:drive drove:drive fed:feed found:find flew:fly gave:give given:give gone:go
        got:get grew:grow held:hold hung:hang kept:keep laid:lay left:leave lent:lend lost:lose made:make met:meet
        paid:pay ran:run rang:ring said:say sang:sing sat:sit saw:see sent:send slept:sleep sold:sell spent:spend
        spoke:speak swam:swim swept:sweep taken:take taught:teach thought:think threw:throw thrown:throw told:tell
        took:take was:be went:go withdrew:withdraw woke:wake won:win wore:wear written:write wrote:write
    """)
)
"""Irregular past forms and what they are of."""

NOT_DEEDS = _words("""
    added asked created decided deleted forgot had hoped liked listed meant needed promised removed renamed said thought
    told tried wanted was were wondered
    """)
"""Past verbs after which "I …" does not tell that a task is done."""

UNSAID = _words("""
    a an the my our your this that these those of to for from with at on in by and also both off up out do
    task tasks todo todos item items reminder one ones thing called named titled
    """)
"""Words that do not tell one task from another."""

BESIDE_NUMBERS = _words("the and plus task tasks todo todos item items number numbers no nr id to do")
POINTING = _words("it its this that these those one ones both they same")
POSITIONS = _words("last first second third latest newest previous next former latter other top bottom recent most")

ERRANDS = VERBS - _words("""
    answer ask be cancel change check choose clear close complete explain finish greet listen look speak start stop talk
    test translate try wait
    """)
"""With one of these begins what is a task even without "add" before it."""

CHANGING_VERBS = _words("cancel clear complete delete finish move plan show skip start stop tell")
"""With one of these begins what is done to a task or asked, rather than what is a task."""

NO_ERRANDS = _words(
    "me us you your yourself poem story joke song haiku essay code list lists task tasks todo todos going lost again"
)
"""With one of these it is asked of this model, or said to it."""

PARTICLES = _words("up off out down in back away over")
PREPOSITIONS = _words("about after at before by for from in into near of on over to until with without")
UNSURE = _words("if when whether until once unless after before")

NOT_A_TASK = _words("""
    am are can could did didn't do does doesn't don't dont had has have he how i i'm i've if is isn't it it's may never
    no nobody none not nothing shall she should that there they this was we were what what's when where which who
    whose why will won't would you you're
    """)
"""Words with which questions, statements and negations begin."""
NEGATIONS = _words("not never no don't dont didn't doesn't won't can't cannot isn't aren't nothing without")

FOREIGN = _words("""
    ich und bitte der das ist mir meine mein liste aufgabe aufgaben nicht wie wo zeig loesche hinzu auf ein eine
    le les une des du et je mes mon ma est ajoute ajouter montre supprime bonjour merci el los las una por para favor
    mis agrega muestra borra tarea tareas hola gracias leche il aggiungi mostra ciao grazie lista het een mijn voeg toe
    """)

WHOLE_LIST = _words("all everything every list them tasks todos items completed done finished pending open")
AROUND_WHOLE_LIST = WHOLE_LIST | _words("my the of task todo to do item entire whole complete")

LIST_NOUNS = _words("list lists tasks todos todo items overview agenda plate")
LIST_FILLERS = _words("""
    a an the my our me us i we to on in of at for is are am was be been being what 's whats which how many much any
    it them that this these those and or both already yet so far today now currently right up out else does got get
    should must need needs ought supposed working has had whole entire every full show give tell see read print display
    view fetch please again only just one ones status things thing stuff more most recently lately here with can could
    ever finally actually really
    """)
OPEN_WORDS = _words("""
    pending open left remaining remains outstanding unfinished undone not still incomplete haven't hasn't isn't aren't
    don't didn't
    """)
DONE_WORDS = _words("did finish done completed complete finished accomplished")
LIST_SUBJECTS = LIST_NOUNS | DONE_WORDS | OPEN_WORDS | _words("task item do next everything all have there anything")
LIST_WORDS = LIST_SUBJECTS | LIST_FILLERS
DUE_WORDS = _words("should must need needs be ought supposed")

NAMES = {
    "done": "done|complete|completed|finished|sorted",
    "noun": "task|tasks|todo|todos|to-do|to-dos|item|items|reminder|reminders",
    "note": "note|notes|description|descriptions|detail|details|comment|comments",
    "put": "(add|put|write|attach) [a|an|the|this]",
    "rename": "rename|retitle|reword|rephrase",
    "into": "['s (title|name|text)] (to|into|->|=>)",
    "our_list": "(my|the|our|this) [to-do|todo|task|tasks] (list|tasks|todos|to-dos)",
    "from_list": "(off|from|on|in) {our_list}",
    "errands": "shopping|groceries|errands|chores",
    "other_list": "grocery|work|home|house|garden|office|school|packing|reading|wish",
    "list_noun": "tasks|todos|to-dos|items|list|stuff|things",
    "things": "task|tasks|thing|things|item|items|todo|todos|to-do|to-dos|one|ones|stuff|list|lists",
    "once": "once|this time|(this|next) (week|month|time|one)|today|tomorrow|on {weekday}",
    "whatever": "anything|something|everything|[all] {things}",
    "that_is": "that is|that's|that are|which is|which are|that has been|that have been",
    "from_trash": "from (the [trash|bin]|trash|deleted [tasks|ones])",
    "done_when": "yesterday|today|this (morning|afternoon|evening)|last night|just now|earlier|on {weekday}",
    "one": "a|an|another|one|new",
    "called": "called|named|titled|saying|with [the] (title|name)",
    "about_task": "{note}|[more] (info|information)|more [{note}]|status|state|title",
    "add": "add|append|insert|enter|(write|note|jot|put) down|create",
    "tick": "tick|check|cross|strike|mark",
    "finish": "complete|finish|close|resolve",
    "delete": "delete|remove|erase|discard|trash|scrap|drop|del|rm|get rid of|throw (away|out)",
    "number": "[task|number] #",
    "position": "first|second|third|last|1st|2nd|3rd",
    "is": "is|are|was|were|has been|have been|got|'s",
    "now": "now|already|all|finally|both|just|have",
    "i": "i|we|i'm|i am|we're|we are|i've|i have|we've|we have",
    "praise": "ok|okay|great|perfect|nice|good|cool|super|wow|awesome|excellent|well done|good job",
    "thanks": "thanks|thank you|thx|cheers|ta",
    "hello": "hi|hello|hey|hiya|howdy|greetings|good (morning|afternoon|evening|day)",
    "how_are_you": "how are you [doing] [today]",
    "due_date": "due date|deadline|alarm|timer",
    "last_change": "it|that|this|them|those|[the|your] last [change|one|step|answer]|what (you|i) [just] did",
    "move": "(move|push|shift|reschedule|postpone|snooze|defer|delay|put off) [back]",
    "weekday": "monday|tuesday|wednesday|thursday|friday|saturday|sunday",
    "when": "at|on|in|by|before|after|every|each|tomorrow|tonight|later|next|this|today",
    "remind": "(remind me|(don't|do not) let me forget) [that] [i (need|have)] (to|about|of)",
    "remember": "(remember|make sure|(don't|do not) forget) [that] [i (need|have)] (to|about|of)"
    "|[{i} [also|still|really]] (need|have|got|ought) [also|still] to",
    "show": "show|list|display|print|view|see|read [out]|give|get|tell|fetch|find|search [for]|look for",
    "what": "what|what's|what is|what are|whats|which|show",
    "ask": "what|what's|which|how many|how much|anything|whats|any|where|when",
    "am_i": "(is|are|was|were) [there]|(did|have) (i|we)|do (i|we) have|am i|has",
    "more": "more|rest|others|remaining [ones|tasks]|next (page|ones)|other (ones|tasks)",
    "them": "them|these|those",
    "about": "about|with|containing|mention|mentioning|mentions|matching|for",
    "would_like": "(i (want|wish|would like|like)|i'd like) to",
}
"""What stands in patterns for {name}."""

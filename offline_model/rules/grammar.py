"""The rules of English, in the order in which they are tried. `x` is what the intent is about."""

from offline_model.rules import sentences
from offline_model.rules.intents import Complete, Delete
from offline_model.rules.listing import details_of, listing_of, numbered_of
from offline_model.rules.rule import (
    Rule,
    add,
    add_called,
    add_duty,
    add_reminder,
    clear_description,
    rename_number,
    rule,
    say,
    stated,
    target,
    told,
    update,
)

DONE = r"(?:done|completed?|finished|sorted)"
NOUN = r"(?:tasks?|to-?dos?|items?|reminders?)"
NOTE = r"(?:notes?|descriptions?|details?|comments?)"
OUR_LIST = r"(?:my|the|our|this) (?:(?:to-?do|tasks?|shopping|grocery) )?(?:list|tasks|to-?dos?)"
FROM_LIST = rf"(?: (?:off|from|on|in) {OUR_LIST})?"
NUMBER = r"(?:(?:task|number) )?#?[0-9]+"
IS = r"(?:(?: (?:is|are|was|were|has been|have been|got)|'s)(?: (?:now|already|all|finally|both))*)"
PRAISE = r"(?:ok|okay|great|perfect|nice|good|cool|super|wow|awesome|excellent|well done|good job)"
WHEN = r"at|on|in|by|before|after|every|each|tomorrow|tonight|later|next|this|today"
PUT_NOTE = rf"(?:add|put|write|attach) (?:(?:an?|the|this) )?{NOTE}"
END = r" ?[\s!.?,]*"

SMALL_TALK: tuple[Rule, ...] = (
    rule(
        say(sentences.GREETING, aside=True),
        rf"(?:hi|hello|hey|hiya|howdy|greetings|good (?:morning|afternoon|evening|day))(?: (?:there|all))?{END}"
        rf"(?:how are you(?: doing)?(?: today)?)?{END}",
        rf"how are you(?: doing)?(?: today)?{END}",
    ),
    rule(
        say(sentences.WELCOME, aside=True),
        rf"(?:{PRAISE}{END})?(?:thanks?|thank you|thx|cheers|ta)(?: (?:so|very) much| a lot)?{END}",
        rf"{PRAISE}{END}",
    ),
    rule(
        say(sentences.BYE, aside=True),
        rf"(?:bye|goodbye|good bye|see you(?: later)?|good night|that's (?:all|it)(?: for now)?){END}",
    ),
    rule(say(sentences.NO_QUESTION, aside=True), rf"(?:yes|no|yep|nope|sure|y|n){END}"),
    rule(
        say(sentences.HELP),
        rf"(?:i need )?(?:help|\?|usage|commands|examples)(?: me)?(?: please)?{END}",
        rf"what (?:can|could) (?:you|i) (?:do|say|ask)(?: here| for me)?{END}",
        rf"(?:what do you do|who are you|what are you|what is this|how does (?:this|it) work){END}",
        r"how (?:do|can) i (?:use|add|create|list|see|show|complete|finish|mark|rename|change|edit|delete|remove)\b.*",
        r"what (?:model|llm|ai)\b.*|is this (?:an?|the) .*(?:model|ai|bot|human|llm)\W*",
    ),
    rule(say(sentences.I_AM), r"are (?:you|u)\b.*"),
    rule(say(sentences.NO_MEMORY), r"(?:did|have|had|were) (?:you|u)\b.*"),
)
_UNASKED = (
    rule(
        say(sentences.LEFT_ALONE, aside=True),
        r"never ?mind|forget (?:it|that|about it)|cancel(?: (?:it|that))?|stop|nothing",
    ),
    rule(
        say(sentences.NO_VERB),
        rf"{NUMBER}|(?:the )?(?:[0-9]+(?:st|nd|rd|th)|first|second|third|last)(?: one| task)?|both|it|them",
    ),
)
_CANNOT = (
    rule(say(sentences.NO_NEW_VALUE), r"(?:i|we|actually|no|make|let's)\b.* instead"),
    rule(add_reminder, rf"remind me (?P<when>(?:{WHEN})\b.*?) (?:to|about|of) (?P<x>.+)"),
    rule(
        say(sentences.NO_TIMES),
        r"(?:set|change|add|give) (?:\S+ ){0,3}(?:an?|the|my) (?:due date|deadline|priority|alarm|timer)\b.*",
        r"(?:set|change) (?:due date|deadline|priority)\b.*",
        r"(?:set|change|add) (?:an?|the|my) reminder (?:for|at|on|in)\b.*",
        r"(?:when|what|which)\b.*\bdue\b.*|schedule .+|prioriti[sz]e .+",
        rf"(?:remind|wake|notify|alert) me(?: up)? (?:{WHEN})\b.*",
    ),
    rule(
        say(sentences.NO_UNDO),
        r"undo(?: .*)?|(?:reopen|re-open|uncomplete|untick|uncheck|restore|undelete|reactivate) .+",
        rf"(?:mark|set) .+ (?:not {DONE}|undone|incomplete|pending|open)",
        rf".+ (?:is not|isn't|are not|aren't) {DONE}(?: yet)?",
    ),
    rule(
        say(sentences.NO_BULK),
        r"clear (?:my |the )?(?:to-?do |task )?(?:list|everything|all|tasks|completed|done)(?: .*)?",
    ),
)
_DESCRIBE = (
    rule(clear_description, rf"(?:clear|remove|delete|erase|empty) (?:the )?{NOTE} (?:of|for|on|from) (?P<x>.+)"),
    rule(update("description", r" as | ?: | with "), r"describe (?P<x>.+)"),
    rule(
        update("description", r" ?: ?| saying (?:that )?| that says | that | - |, "),
        rf"{PUT_NOTE} (?:to|on|for) (?P<x>.+)",
    ),
    rule(update("description", r" (?:to|on) ", value_first=True), rf"{PUT_NOTE}:? (?P<x>.+ (?:to|on) .+)"),
    rule(
        update("description", rf" (?:to|as) the {NOTE} (?:of|for) ", value_first=True),
        rf"(?:add|put|write|attach) (?P<x>.+ (?:to|as) the {NOTE} (?:of|for) .+)",
    ),
    rule(
        update("description", r" to | ?: ?| as "),
        rf"(?:set|change|update|edit|make) (?:the )?{NOTE} (?:of|for|on) (?P<x>.+)",
    ),
    rule(update("description", r" ?: ?"), rf"{NOTE} (?:on|for|to|of) (?P<x>.+)"),
)
_SHOW = (
    rule(
        lambda match, masked: details_of(match["x"], masked),
        rf"(?:(?:what(?:'s| is|s)|show|give|tell|read)(?: me)? )?(?:(?:the|any|some) )?"
        rf"(?:{NOTE}|(?:more )?info(?:rmation)?|more(?: {NOTE})?|status|state|title) (?:of|on|for|about) (?P<x>.+)",
        r"tell me about (?P<x>.+)",
    ),
    rule(
        lambda match, masked: numbered_of(match["x"]),
        r"(?:what(?:'s| is| are|s| about)|show|view|read|display)(?: me)? (?P<x>.*[0-9])",
    ),
)
_ADD = (
    rule(
        add_called,
        r"(?:add|create|make|enter|new)(?: me)?(?: (?:an?|another|one))?(?: (?:new|more))*"
        r" (?:to-?do|task|item|reminder)"
        rf"(?: (?:to|on) {OUR_LIST})? (?:called|named|titled|saying|with (?:the )?(?:title|name))[\s:]+(?P<x>.+)",
    ),
    rule(
        add(),
        r"(?:add|append|insert|enter|write down|note down|jot down|put down)(?: me)?\b[\s:]*(?P<x>.*)",
        rf"(?:create|make|set up)(?: me)? (?P<x>(?:(?:an?|another|the|these|some|new|following) )*{NOUN}\b.*)",
        r"create (?P<x>.+)",
        rf"(?:put|stick|place|get) (?P<x>.+ (?:back )?(?:on|onto|in|into|to) {OUR_LIST})",
        rf"(?:new )?(?:{NOUN}|to do) ?[:-] ?(?P<x>.+)",
        rf"new {NOUN} (?P<x>.+)",
    ),
    rule(
        add(timed=True),
        r"(?:remind me|don't (?:let me )?forget|do not forget|remember|make sure)(?:(?: that)? i (?:need|have))?"
        r" (?:to|about|of) (?P<x>.+)",
        r"(?:i|we)(?:'ve| have| also| still| really)* (?:need|have|got|ought)(?: also| still)? to (?P<x>.+)",
        r"(?:need|have) to (?P<x>.+)",
        r"(?:don't|do not) (?:let me )?forget (?:(?:the|my) )?(?P<x>(?!(?:that|it|this|me|to)\b).+)",
    ),
    rule(add_duty, r"(?:i|we) (?:must|should|gotta)(?: also| still)? (?!(?:not|never)\b)(?P<x>.+)"),
)
_RENAME = (
    rule(
        target(Complete),
        rf"(?:change|set|move|update) (?:the )?(?:status of )?(?P<x>.+?)(?:'s status)? (?:to|as) {DONE}",
    ),
    rule(
        update("title", r" to | into | as | ?[-=]> ?| ?: "),
        r"(?:change|update|edit|set) (?:the )?(?:title|name|text|wording) of (?P<x>.+)",
        r"(?:rename|retitle|reword|rephrase) (?P<x>.+)",
    ),
    rule(rename_number, r"(?:rename|retitle|reword) (?:(?:task|number) )?#?(?P<n>[0-9]+),? (?P<x>.+)"),
    rule(update("title", r" to | into | ?[-=]> ?"), r"(?:change|update|edit|turn) (?P<x>.+)"),
    rule(update("title", r" should (?:be called|be named|read|say) "), r"(?P<x>.+)"),
    rule(say(sentences.NO_NEW_VALUE), r"(?:rename|retitle|reword|rephrase|change|edit|update|describe)(?: .*)?"),
)
_LIST = (rule(lambda match, masked: listing_of(match["x"], masked), r"(?P<x>.+)"),)
_COMPLETE = (
    rule(
        target(Complete),
        rf"(?:mark|set|tick|check|cross|flag|put)(?: off| out)? (?P<x>.+?)(?: (?:as|to|is))?(?: being)? {DONE}",
        rf"(?:tick|check|cross|strike|mark) (?P<x>.+?) (?:off|out){FROM_LIST}",
        rf"(?:complete|finish|close|resolve|(?:tick|check|cross|mark|strike) (?:off|out)) (?P<x>.+?){FROM_LIST}",
        rf"(?:tick|check|mark) (?P<x>{NUMBER})",
        r"(?:(?:i|we)(?:'m| am|'re| are|'ve| have)?(?: (?:already|just|now|all|have|finally))* )?"
        rf"{DONE}(?: with)? ?:? (?P<x>.+)",
    ),
    rule(
        stated,
        rf"(?P<x>.+?){IS} {DONE}(?: now| already)?",
        rf"(?P<x>.+?){IS} (?P<verb>\w+)(?: now| already)?",
        rf"(?P<x>.+?) ?[\s:,-] ?{DONE}",
    ),
)
_DELETE = (
    rule(
        target(Delete),
        r"(?:delete|remove|erase|discard|trash|scrap|drop|del|rm|get rid of|throw away|throw out)"
        rf" (?P<x>.+?){FROM_LIST}",
        rf"take (?P<x>.+?) (?:off|from) {OUR_LIST}",
        rf"(?:cancel|forget(?: about)?|clear) (?P<x>.*\b{NOUN}|{NUMBER})",
    ),
    rule(say(sentences.NO_SUBJECT), r"delete|remove|erase|complete|finish"),
)
_TOLD = (
    rule(
        told,
        r"(?P<who>(?:i|we)(?:'ve| have)? )?(?:(?:already|just|now|finally|also) )*(?P<verb>[a-z]+) (?P<x>.+)",
    ),
)
REQUESTS: tuple[Rule, ...] = (
    *_UNASKED,
    *_CANNOT,
    *_DESCRIBE,
    *_SHOW,
    *_ADD,
    *_RENAME,
    *_LIST,
    *_COMPLETE,
    *_DELETE,
    *_TOLD,
)
WISHES: tuple[Rule, ...] = (
    rule(add(timed=True), r"i(?:'d| would)? (?:want|like|wish) to (?P<x>.+)"),
    rule(
        add(timed=True),
        r"(?:i|we)(?: also| still| really)* need (?:(?:some|more) )*"
        r"(?P<x>(?!(?:you|to|it|this|that|them|help|an answer|a hand)\b).+)",
    ),
)

"""What is no wish about a task: greetings, questions about this model, and short replies."""

from offline_model.rules import sentences
from offline_model.rules.plans.listing import show_rest
from offline_model.rules.plans.talking import agree, refuse, say
from offline_model.rules.sentences import HELP, LEFT_ALONE, NO_QUESTION
from offline_model.rules.wishes.wish import Wish

SMALL_TALK = (
    Wish("({hello} [there|all] [{how_are_you}]|{how_are_you})", say, sentences.GREETING, "aside"),
    Wish("(ok|okay|alright) [do it|please|then]", agree, sentences.WELCOME, "aside"),
    Wish("({praise}|[{praise}] {thanks} [so much|very much|a lot])", say, sentences.WELCOME, "aside"),
    Wish(
        "(bye|goodbye|good (bye|night)|see you [later|tomorrow]|that's (all|it) [for now])", say, sentences.BYE, "aside"
    ),
    Wish("(yes|yep|yeah|sure|y) [do it|do|please|delete (them|it|all)|go ahead]", agree, NO_QUESTION, "reply"),
    Wish(
        "[yes] (do it|go ahead|really delete [all|them|it] [of] [my|the] [{done}] [{things}])",
        agree,
        NO_QUESTION,
        "reply",
    ),
    Wish("(no|nope|n) [don't|do not|thanks|thank you|keep them]", refuse, NO_QUESTION, "reply"),
    Wish("[i need] (help|usage|commands|examples) [me] [please]", say, HELP),
    Wish("what (can|could) (you|i) (do|say|ask) [here|for me]", say, HELP),
    Wish("(what do you do|(who|what) are you|what is this|how does (this|it) work)", say, HELP),
    Wish("how (do|can) i (use|mark|change|edit|{add}|{show}|{finish}|{rename}|{delete}) ...", say, HELP),
    Wish("what (model|llm|ai) ...", say, HELP),
    Wish("is this (a|an|the) ... (model|ai|bot|human|llm)", say, HELP),
    Wish("are (you|u) ...", say, sentences.I_AM),
    Wish("(did|have|had|were) (you|u) ...", say, sentences.NO_MEMORY),
)
"""Tried before politeness is taken away, of which some of it consists."""

REPLIES = (
    Wish("(never mind|nevermind|stop|nothing|(cancel|forget [about]) [it|that])", say, LEFT_ALONE, "aside"),
    Wish("({number}|[the] {position} [one|task]|both|it|them)", say, sentences.NO_VERB, "reply"),
    Wish("[{show}|ask for] [me] [the|and] {more} [of (it|them|{our_list})]", show_rest, sentences.NO_MORE),
    Wish("(what|anything) else [is there]", show_rest, sentences.NO_MORE),
    Wish("(i|we|actually|no|make|let's) ... instead", say, sentences.NO_NEW_VALUE),
    Wish("<errand> instead", say, sentences.NO_NEW_VALUE),
)

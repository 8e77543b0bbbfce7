"""What is no wish about a task: greetings, questions about this model, and short replies."""

from offline_model.rules import plans, sentences
from offline_model.rules.sentences import HELP, LEFT_ALONE
from offline_model.rules.wishes.wish import Wish

SMALL_TALK = (
    Wish("({hello} [there|all] [{how_are_you}]|{how_are_you})", plans.say, sentences.GREETING, "aside"),
    Wish("({praise}|[{praise}] {thanks} [so much|very much|a lot])", plans.say, sentences.WELCOME, "aside"),
    Wish("(bye|goodbye|good (bye|night)|see you [later]|that's (all|it) [for now])", plans.say, sentences.BYE, "aside"),
    Wish("(yes|no|yep|nope|sure|y|n)", plans.say, sentences.NO_QUESTION, "reply"),
    Wish("[i need] (help|usage|commands|examples) [me] [please]", plans.say, HELP),
    Wish("what (can|could) (you|i) (do|say|ask) [here|for me]", plans.say, HELP),
    Wish("(what do you do|(who|what) are you|what is this|how does (this|it) work)", plans.say, HELP),
    Wish("how (do|can) i (use|mark|change|edit|{add}|{show}|{finish}|{rename}|{delete}) ...", plans.say, HELP),
    Wish("what (model|llm|ai) ...", plans.say, HELP),
    Wish("is this (a|an|the) ... (model|ai|bot|human|llm)", plans.say, HELP),
    Wish("are (you|u) ...", plans.say, sentences.I_AM),
    Wish("(did|have|had|were) (you|u) ...", plans.say, sentences.NO_MEMORY),
)
"""Tried before politeness is taken away, of which some of it consists."""

REPLIES = (
    Wish("(never mind|nevermind|stop|nothing|(cancel|forget [about]) [it|that])", plans.say, LEFT_ALONE, "aside"),
    Wish("({number}|[the] {position} [one|task]|both|it|them)", plans.say, sentences.NO_VERB, "reply"),
    Wish("[{show}|ask for] [me] [the|and] {more} [of (it|them|{our_list})]", plans.show_rest, sentences.NO_MORE),
    Wish("(what|anything) else [is there]", plans.show_rest, sentences.NO_MORE),
    Wish("(i|we|actually|no|make|let's) ... instead", plans.say, sentences.NO_NEW_VALUE),
    Wish("<errand> instead", plans.say, sentences.NO_NEW_VALUE),
)

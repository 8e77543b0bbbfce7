"""Lists of English words."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VERBS = _words(
    """
    answer apply arrange ask attend back bake be bill book borrow bring brush build buy call cancel change charge check
    choose clean clear collect confirm contact cook copy create cut decide deliver deposit design discuss do donate
    download draft draw drink drive drop dry dust eat edit email empty exercise explain feed fetch file fill find finish
    fix fold follow get give go greet hang help hire hold install invite invoice iron join jog keep learn leave lend
    listen look mail make measure meet message mop move mow open order organise organize pack paint park pay phone pick
    plan plant play post practice practise prepare present print proofread pull push put rake read refill register renew
    rent repair replace reply report request reserve return review ring run save scan schedule see sell send set sew
    share shave shop shower sign sleep sort speak start stop study submit sweep swim take talk teach tell test text
    thank throw tidy train translate try turn update upgrade upload vacuum visit wait wake walk wash watch water weed
    wipe withdraw work wrap write
    """
)

PASTS = dict(
    pair.split(":")
    for pair in _words(
        """
        ate:eat began:begin bought:buy broke:break brought:bring built:build caught:catch chose:choose did:do done:do
        drank:drink drawn:draw drew:draw driven:drive drove:drive fed:feed found:find flew:fly gave:give given:give
        gone:go got:get grew:grow held:hold hung:hang kept:keep laid:lay left:leave lent:lend lit:light lost:lose
        made:make met:meet paid:pay planned:plan ran:run rang:ring said:say sang:sing sat:sit saw:see sent:send
        slept:sleep sold:sell spent:spend spoke:speak swam:swim swept:sweep taken:take taught:teach thought:think
        threw:throw thrown:throw told:tell took:take understood:understand was:be went:go withdrew:withdraw woke:wake
        won:win wore:wear written:write wrote:write
        """
    )
)
"""Irregular past forms and what they are of."""

NOT_DEEDS = _words(
    """
    added asked created decided deleted forgot had hoped liked listed meant needed promised removed renamed said thought
    told tried wanted was were wondered
    """
)
"""Past verbs after which "I …" does not tell that a task is done."""

UNSAID = _words(
    """
    a an the my our your this that these those of to for from with at on in by and also both off up out do
    task tasks todo todos item items reminder one ones thing called named titled
    """
)
"""Words that do not tell one task from another."""

POINTING = _words("it its this that these those one ones both they same")
# Of "the last task": which one that is depends on what the person looks at.
POSITIONS = _words("last first second third latest newest previous next former latter other top bottom recent most")

ERRANDS = _words(
    """
    bake book borrow buy call charge clean collect cook deliver email feed fetch fix fold get invite iron make mop mow
    order pack paint pay phone pick plan renew rent repair return schedule send sew sweep text tidy vacuum visit wash
    water weed wipe write
    """
)
"""With one of these begins what is a task even without "add" before it, if several of them are listed."""

PREPOSITIONS = _words("about after at before by for from in into near of on over to until with without")

NOT_A_TASK = _words(
    """
    am are can could did didn't do does doesn't don't dont had has have he how i i'm i've if is isn't it it's may never
    no nobody none not nothing shall she should that there they this was we were what what's when where which who
    whose why will won't would you you're
    """
)
"""Words with which questions, statements and negations begin."""
NEGATIONS = _words("not never no don't dont didn't doesn't won't can't cannot isn't aren't nothing without")

FOREIGN = _words(
    """
    ich und bitte der das ist mir meine mein liste aufgabe aufgaben nicht wie wo zeig loesche hinzu auf ein eine
    le les une des du et je mes mon ma est ajoute ajouter montre supprime tâche tâches bonjour merci
    el los las una por para favor mis agrega añade muestra borra tarea tareas hola gracias leche
    il gli aggiungi mostra cancella ciao grazie lista het een mijn voeg toe boodschappen adiciona adicionar minha
    """
)

WHOLE_LIST = _words("all everything every list them tasks todos items completed done finished pending open")
AROUND_WHOLE_LIST = WHOLE_LIST | _words("my the of task todo to do item entire whole complete")

LIST_SUBJECTS = _words(
    """
    list lists task tasks todo todos item items do done left pending open completed complete finish finished remaining
    remains outstanding unfinished undone incomplete next everything all have there anything accomplished overview plate
    agenda
    """
)
LIST_FILLERS = _words(
    """
    a an the my our me us i we to on in of at for is are am was be been being what what's whats which how many much any
    it them that this these those and or both not still already yet so far today now currently right up out else did
    does got get should must need needs ought supposed work working that's there's has had whole entire every full show
    give tell see read print display view fetch please again only just one ones status things thing stuff more most
    recently lately here with can could
    """
)
OPEN_WORDS = _words("pending open left remaining remains outstanding unfinished undone not still incomplete")
DONE_WORDS = _words("finish done completed complete finished accomplished")
ALL_WORDS = _words("all everything every whole entire full")
AROUND_VERB = ALL_WORDS | _words("my the these those them")
DUE_WORDS = _words("should must need needs be ought supposed")

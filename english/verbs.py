"""Verbs with which tasks begin."""

from english.words import word_set

VERBS = word_set("""
    adjust answer apologise apologize apply arrange ask assemble attend bake bathe be bill book borrow brainstorm
    bring brush build buy call cancel cash cc change charge chase check choose clean clear collate collect commit
    compare compile complete confirm congratulate contact convert cook copy count create cut debug decide defrost
    deliver deploy deposit descale design dig discuss dispose do donate download draft draw dress drill drink drive
    drop dry dust dye eat edit email empty enrol enroll enter evaluate exercise explain extend feed fetch file fill
    finalise finalize find finish fix fly fold follow forward freeze fry fund gather get give go grab greet grill
    grow hand hang harvest help hike hire hold hoover host inform inspect install insure inventory invite invoice
    iron jog join keep kick label launch lay learn leave lend listen load lock log look mail make measure meet mend
    merge message migrate mop move mow nap negotiate note notify nudge oil open order organise organize pack paint
    park pay phone pick pitch plan plant play polish post practice practise pray prep prepare present print
    proofread prune pull punch purchase push put quit raise rake rank rate read rebook recharge recycle redeem
    refill register remind remove renew rent repair replace reply report request reschedule research resend reserve
    restock return review rewrite ring rinse roast rotate run save scan schedule secure see sell send set sew share
    shave shop shovel shower sign skype sleep solder sort speak spray stain start sterilise stock stop store strip
    study style submit swap sweep swim switch take talk teach tell test text thank throw tidy tile toss track train
    transcribe transfer translate trim try turn type unpack unsubscribe update upgrade upload vacuum validate verify
    visit volunteer vote wait wake walk wash watch water wax weed wipe withdraw work wrap write
    """)

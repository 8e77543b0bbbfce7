"""Which sentences of an answer claim a change, and how long it takes to find them."""

import time

import pytest

from common.claims import Claim, find_claims

CLAIMS = [
    "You've added milk for tomorrow",
    "I\u2019ve added milk to your list.",
    "**Done!** Milk is on your list.",
    "Sure, I've gone ahead and moved the dentist — anything else?",
    "I can't set reminders, but I've added the task.",
    "I've added milk. If you need more, tell me.",
    "I've snoozed it until Monday.",
    "I looked at your list and deleted the old entries.",
    "Task “Milk” added.",
    "Reminder set for 5 pm",
    "The dentist has been moved to Friday.",
    "Here's what I did:\n- Moved the dentist\n- Deleted bread",
    "Everything is now marked as done.",
    "Here is a haiku.\n\nIch habe Milch hinzugefügt, sag Bescheid, wenn du mehr brauchst.",
    "Du hast Milch für morgen hinzugefügt.",
    "Erledigt!",
    "Ya he añadido la leche a tu lista.",
    "La tarea ha sido eliminada.",
    "Je viens d'ajouter le lait à votre liste.",
    "C'est fait !",
    "Sütü listene ekledim.",
    "Görev eklendi.",
    "好的。已帮你把牛奶加到清单里了。",
    "搞定了。",
    "لقد أضفت الحليب إلى قائمتك.",
    "تم الحذف.",
]
NO_CLAIMS = [
    "You completed three tasks this week.",
    "You've completed 3 of 7 tasks.",
    "I added that yesterday.",
    "As you asked earlier, I added milk.",
    "I can add it. Shall I?",
    "You can mark it as done, or say so.",
    "I haven't added anything.",
    "Nothing has been changed, and no task was added.",
    "Once I've added it, you will see it here.",
    "The Eiffel Tower was completed in 1889.",
    "You wrote “I've added milk”.",
    "- Task added: milk\n1. **I've updated the resume** due Monday\n```\nI've added milk.\n```\n> Done!",
    "Say for example:\n- the milk is done / I finished all the shopping\n- Milk added for tomorrow",
    "Completed tasks are hidden. A task is completed when you say so.",
    "I've created a packing plan for you:",
    "Dodałem mleko do listy. Jag har lagt till mjölk. ミルクを追加しました。",
    "Soll ich Milch hinzufügen? Ich habe nichts hinzugefügt.",
    "Diese Woche hast du drei Aufgaben erledigt. Gestern habe ich das eingetragen.",
    "Puedo añadirlo si quieres. No he añadido nada. Ayer añadí la leche.",
    "Je peux l'ajouter. Je n'ai rien ajouté. Vous avez terminé trois tâches cette semaine.",
    "Eklememi ister misiniz? Henüz eklenmedi. Dün ekledim.",
    "我没有添加任何东西。您本周完成了三个任务。可以帮你添加牛奶。已完成的任务在下面。",
    "يمكنني إضافة الحليب. لم تتم إضافة شيء. أكملت ثلاث مهام هذا الأسبوع.",
]
HOSTILE = ["I've added milk ", "ich habe die und ", "“", "**a", "'a ", "i did and i ", "我已经把", "- a\n", "a", "is, "]


@pytest.mark.parametrize("text", CLAIMS)
def test_claims_are_found(text: str) -> None:
    assert find_claims(text)


@pytest.mark.parametrize("text", NO_CLAIMS)
def test_past_offers_quotations_and_titles_are_no_claims(text: str) -> None:
    assert not find_claims(text)


def test_answer_that_has_read_claims_only_what_it_says_of_itself() -> None:
    text = "You've added milk. “Dentist” has been moved.\n- I've deleted bread.\nI have completed tea."
    assert len(find_claims(text)) == 4
    assert find_claims(text, has_read=True) == [
        Claim("deleted", "I've deleted bread."),
        Claim("completed", "I have completed tea."),
    ]


def test_time_grows_with_the_length_of_a_text_only() -> None:
    def measure(length: int) -> float:
        began = time.process_time()
        for part in HOSTILE:
            find_claims(part * (length // len(part)))
        return time.process_time() - began

    measure(2_000)
    assert measure(40_000) < 10 * measure(10_000)

"""Which messages ask about what was done, and which for a change."""

import pytest

from common.questions import asks_about_past, asks_for_change

ABOUT_PAST = [
    "did you really add milk?",
    "Have you added the milk?",
    "Did you add milk and eggs?",
    "Was milk added?",
    "has it been moved to Friday?",
    "When did you add it?",
    "Why did you set it to high priority?",
    "why is it that you have deleted bread? When was it deleted?",
    "What have you done so far?",
    "Is it done?",
    "Thanks!",
    "Great, thank you",
    "Hast du Milch wirklich eingetragen?",
    "Wurde die Milch hinzugefügt?",
    "Warum hast du das auf Freitag verschoben?",
    "Danke!",
    "¿Has añadido la leche?",
    "¿Por qué lo moviste al viernes?",
    "As-tu ajouté le lait ?",
    "Avez-vous vraiment supprimé la tâche ?",
    "Pourquoi as-tu déplacé le rendez-vous ?",
    "Sütü ekledin mi?",
    "Süt eklendi mi?",
    "牛奶加了吗?",
    "你添加牛奶了吗?",
    "هل أضفت الحليب؟",
]
FOR_CHANGE = [
    "can you add milk?",
    "could you also add eggs?",
    "add milk",
    "Please add milk",
    "Thanks, now add bread",
    "Did you add milk? If not, please add it.",
    "Have you got a minute? Add bread.",
    "Did you add milk? Also add eggs",
    "I need bread, too",
    "milk again, please",
    "delete it",
    "Kannst du Milch eintragen?",
    "Trag Milch ein",
    "Danke, und lösch das Brot",
    "¿Puedes añadir leche?",
    "Añade leche",
    "Peux-tu ajouter du lait ?",
    "Ajoute du lait",
    "Süt ekle",
    "Süt ekler misin?",
    "请添加牛奶",
    "帮我加牛奶",
    "أضف الحليب",
    "هل يمكنك إضافة الحليب؟",
]


@pytest.mark.parametrize("message", ABOUT_PAST)
def test_question_about_the_past(message: str) -> None:
    assert asks_about_past(message)


@pytest.mark.parametrize("message", FOR_CHANGE)
def test_request_for_a_change(message: str) -> None:
    assert asks_for_change(message)
    assert not asks_about_past(message)


def test_long_message_is_a_request() -> None:
    assert asks_for_change("did you? " * 1_000)

"""How many tasks the claims of an answer name, compared with those that its run has changed."""

import time
from typing import Any

import pytest

from common.named import admits_failure, count_named

MILK: dict[str, Any] = {"changed": ["milk"], "most": 1}
NAMED: list[tuple[str, dict[str, Any], int]] = [
    ("I've added 3 tasks to your list.", MILK, 3),
    ("I've added all three tasks.", MILK, 3),
    ("I have added three tasks: milk, bread and eggs.", MILK, 3),
    ("We have completed 2 tasks.", MILK, 2),
    ("Both tasks have been added.", MILK, 2),
    ("3 tasks were deleted.", MILK, 3),
    ("I've deleted tasks 3, 4 and 5.", MILK, 3),
    ('I\'ve added "milk", "bread" and "eggs".', MILK, 3),
    ('I\'ve added "milk", "bread", "eggs".', MILK, 3),
    ("I've added **Milk** and **Bread** to your list.", MILK, 2),
    ("I've added **milk**, **tea** and **bread**.", {"changed": ["milk", "tea"], "most": 2}, 3),
    ("I've added milk, bread and eggs to your list.", MILK, 3),
    ("I've added buy milk at six, bread and eggs to your list.", {"changed": ["buy milk at six"], "most": 1}, 3),
    ("I've added the following tasks:\n- Milk\n- Bread\n- Eggs\n\nAnything else?", MILK, 3),
    ("I've added these to your list:\n\n1. **Milk**\n2. **Bread**", MILK, 2),
    ("Added:\n- milk\n- bread\n- eggs", MILK, 3),
    ("I've added:\n- milk (due tomorrow)\n- bread\n- eggs", MILK, 3),
    ("Done! Here is what I added:\n1. milk\n2. bread\n3. eggs", MILK, 3),
    ("I've added to your list:\n- milk\n- bread", MILK, 2),
    ("Hinzugefügt:\n- milk\n- Brot", MILK, 2),
    ("J'ai ajouté :\n- milk\n- pain", MILK, 2),
    ("已添加:\n- milk\n- 面包", MILK, 2),
    ("✅ milk added\n✅ bread added\n✅ eggs added", MILK, 3),
    ("✅ Added milk\n✅ Added bread\n\nAnything else?", MILK, 2),
    ("Done, they are on your list.\n✔️ **milk** hinzugefügt\n✔️ **Brot** hinzugefügt", MILK, 2),
    ("I've added milk, bread and eggs.", MILK, 3),
    ("He añadido milk, huevos y pan.", MILK, 3),
    ("Ich habe milk, Brot und Eier hinzugefügt.", MILK, 3),
    ("I've added twenty tasks.", MILK, 20),
    ("Ich habe fünfzehn Aufgaben hinzugefügt.", MILK, 15),
    ("لقد أضفت ثلاث مهام.", MILK, 3),
    ("تمت إضافة 3 مهام إلى قائمتك.", MILK, 3),
    ("لقد أضفت مهمتين.", MILK, 2),
    ("I've added milk and bread.", {**MILK, "failed": ["bread"]}, 2),
    ("I've added milk and 面包.", {**MILK, "failed": ["面包"]}, 2),
    ("已添加牛奶和面包。", {"changed": ["牛奶"], "failed": ["面包"], "most": 1}, 2),
    ("I've added milk and milk chocolate.", {**MILK, "failed": ["milk chocolate"]}, 2),
    ("No problem! I've added milk and bread.", {**MILK, "failed": ["bread"]}, 2),
    ("No problem, I've added milk and bread.", {**MILK, "failed": ["bread"]}, 2),
    ("I've added milk and bread. You still have time!", {**MILK, "failed": ["bread"]}, 2),
    ("I've added milk and bread. Only tea is open.", {**MILK, "failed": ["bread"]}, 2),
    ("Kein Problem! Milch und Brot wurden hinzugefügt.", {"changed": ["Milch"], "failed": ["Brot"], "most": 1}, 2),
    ("没问题。已添加牛奶和面包。", {"changed": ["牛奶"], "failed": ["面包"], "most": 1}, 2),
    ("لقد أضفت الحليب والخبز. الاجتماع غدا.", {"changed": ["الحليب"], "failed": ["الخبز"], "most": 1}, 2),
    ("Ich habe drei Aufgaben hinzugefügt.", MILK, 3),
    ("Ich habe Milch, Brot und Eier zu deiner Liste hinzugefügt.", {"changed": ["Milch"], "most": 1}, 3),
    ("He añadido 3 tareas a tu lista.", MILK, 3),
    ("J'ai ajouté trois tâches.", MILK, 3),
    ("3 görev eklendi.", MILK, 3),
    ("İki görev eklendi.", MILK, 2),
    ("ALTI görev eklendi.", MILK, 6),
    ("٣ مهام أضفت.", MILK, 3),
    ("已帮你添加了三个任务。", MILK, 3),
]
TRUTHFUL: list[tuple[str, dict[str, Any]]] = [
    ("I've added milk to your list.", MILK),
    ("I've added milk. You have 3 tasks for today.", MILK),
    ("I've added milk, and you now have 5 tasks.", MILK),
    ("I've added milk to your 5 tasks.", MILK),
    ("I have added milk and you have 3 tasks.", MILK),
    ("I have added milk and you have now 3 tasks.", MILK),
    ("I have added milk and we have now 3 tasks.", MILK),
    ("I have added milk and you have completed 3 tasks.", MILK),
    ("I have added milk to 3 tasks.", MILK),
    ("I've moved milk in front of the 2 other tasks.", MILK),
    ("I've deleted milk; 4 tasks are left.", MILK),
    ("I've completed 1 of the 3 tasks.", MILK),
    ("I've moved milk to 3 pm, in 2 weeks.", MILK),
    ("I've set milk to repeat every 3 days, 10 times.", MILK),
    ("I've added 10 items to the description of milk.", MILK),
    ("I've added milk. These are your tasks:\n- milk\n- bread\n- eggs", MILK),
    ("I've added milk. Your list now has these tasks:\n- milk\n- bread\n- eggs", MILK),
    ("I've added the following task:\n- **Title:** milk\n- **Due:** tomorrow\n- **Priority:** high", MILK),
    ("I've added these details:\n- due tomorrow\n- high priority\n- 2 litres", MILK),
    ('I\'ve renamed "milk" to "oat milk".', {"changed": ["oat milk"], "most": 1}),
    ('I\'ve tagged "milk" with "shop" and "home".', MILK),
    ("I've added **milk**, due **Friday**, with **high** priority.", MILK),
    ("I've added milk, bread and eggs to your list.", {"changed": ["Buy milk, bread and eggs"], "most": 1}),
    ('I\'ve added "milk", "bread" and "eggs".', {"changed": ["milk", "bread", "eggs"], "most": 3}),
    ("I've deleted tasks 3, 4 and 5.", {"changed": ["a", "b", "c"], "most": 3}),
    ("I've added milk, but bread could not be added.", {**MILK, "failed": ["bread"]}),
    ("I've added milk. Adding bread failed. Shall I try again?", {**MILK, "failed": ["bread"]}),
    ("I've added milk and kept bread.", {**MILK, "failed": ["bread"]}),
    ("Added:\n- milk\n- due tomorrow\n- high priority", MILK),
    ("I've added:\n- **milk**\n- the label shop\n- a reminder", MILK),
    ("I've added:\n- milk\n- bread (failed: the date is invalid)", MILK),
    ("Added:\n- Pack for the trip\n  - socks\n  - shirts", {"changed": ["Pack for the trip"], "most": 1}),
    ("Added:\n- milk\n\nStill open:\n- bread\n- eggs", MILK),
    ("I've added milk. Your list:\n- milk\n- bread", MILK),
    ("✅ milk added\n✅ due date added\n✅ label added", MILK),
    ("✅ Added milk to your list\n✅ Set it to high priority", MILK),
    ("I've added milk.\n✅ bread\n☐ eggs", MILK),
    ("I've added milk, labelled it shop and set it to high priority.", MILK),
    ("I've added milk, due tomorrow and urgent.", MILK),
    ("I've completed milk, leaving eggs and bread.", MILK),
    ("I've added Milk, organic and fresh.", MILK),
    ("I've added milk, 2 litres, organic and fresh.", MILK),
    ("I've added:\n- **Milk** for the cake\n- 2 litres, organic", MILK),
    ("✅ Added milk\n✅ Added two notes to it", MILK),
    ('I\'ve added "milk", "high" priority.', MILK),
    ("I've added a reminder to check the 3 tasks of Ben.", {"changed": ["Ben's tasks"], "most": 1}),
    ("I've added milk, updated the date and set a label.", MILK),
    ("Ich habe milk hinzugefügt, auf morgen gesetzt und markiert.", MILK),
    ("He añadido milk, para mañana y con prioridad alta.", MILK),
    ("J'ai ajouté milk, pour demain et en urgent.", MILK),
    ("لقد أضفت milk ولديك الآن 5 مهام.", MILK),
    ("لقد أكملت 2 من 5 مهام.", {"changed": ["a", "b"], "most": 2}),
    ("I've added milk and bread. The second one couldn't be saved, though.", {**MILK, "failed": ["bread"]}),
    ("I've added milk and bread. Sorry, the date of the latter is invalid.", {**MILK, "failed": ["bread"]}),
    ("I've added milk and bread. Bread still needs your approval.", {**MILK, "failed": ["bread"]}),
    ("已添加牛奶和面包。面包没有保存。", {"changed": ["牛奶"], "failed": ["面包"], "most": 1}),
    ("I've added milk chocolate.", {**MILK, "failed": ["milk chocolate"]}),
    ("I've added milk chocolate.", {"changed": ["milk chocolate"], "failed": ["milk"], "most": 1}),
    ("I've added to-do milk.", {**MILK, "failed": ["to"]}),
    ("I've added bread.", {"changed": ["bread"], "failed": ["bread"], "most": 1}),
    ("I've added milk and that makes 5 tasks.", MILK),
    ("I've added milk because both tasks were missing a date.", MILK),
    ("I've moved task 7 before tasks 3 and 4.", MILK),
    ("I've merged tasks 3 and 4 into milk.", MILK),
    ("I've added eggs, bread and milk to the description of the task.", MILK),
    ("I've made the following changes to milk:\n- moved it to Friday\n- labelled it", MILK),
    ("I've updated milk with the following:\n- 2 litres of milk\n- organic", MILK),
    ("He añadido la leche, con lo que son 3 tareas.", {"changed": ["leche"], "most": 1}),
    ("J'ai ajouté le lait. Il vous reste 3 tâches.", {"changed": ["lait"], "most": 1}),
    ("已添加“milk”。这样今天就有三个任务了。", MILK),
    ("You completed three tasks this week.", MILK),
    ("I can add 3 tasks for you. Shall I?", MILK),
    ("Here are 3 tasks:\n- milk\n- bread\n- eggs", MILK),
    ("Ich habe Milch hinzugefügt, du hast jetzt 5 Aufgaben.", {"changed": ["Milch"], "most": 1}),
    ("Ich habe Milch zu deinen 5 Aufgaben hinzugefügt.", {"changed": ["Milch"], "most": 1}),
    ("He añadido la leche; quedan 3 tareas.", {"changed": ["leche"], "most": 1}),
    ('I\'ve added "buy 3 tasks books".', {"changed": ["buy 3 tasks books"], "most": 1}),
    ("I've added read 12 tasks of chapter 2 to your list.", {"changed": ["Read 12 tasks of chapter 2"], "most": 1}),
    ("已添加read 12 tasks of chapter 2。", {"changed": ["read 12 tasks of chapter 2"], "most": 1}),
    ("I've added milk and only two tasks are left.", MILK),
    ("已添加买3个任务书。", {"changed": ["买3个任务书"], "most": 1}),
    ("I've added **milk**, **tomorrow**, **high priority**.", MILK),
    ("I've added **milk** and **set it to high priority**.", MILK),
    ("I've added **milk**, **due tomorrow** to your list.", MILK),
    ("I've merged the three tasks into one.", MILK),
    ("Ich habe die drei Aufgaben zu einer zusammengefasst.", MILK),
    ('I\'ve combined "milk", "eggs" and "bread".', MILK),
    ('I\'ve added "buy…" and "call mom".', {"changed": ["buy all for the party", "call mom"], "most": 2}),
    ('I\'ve added "cafe\u0301" and "tea".', {"changed": ["caf\u00e9", "tea"], "most": 2}),
    ('I\'ve added "\u202eabc\u202c" and "tea".', {"changed": ["abc", "tea"], "most": 2}),
    ('I\'ve added "abc" and "tea".', {"changed": ["\u202eabc\u202c", "tea"], "most": 2}),
    ('I\'ve added "mom\u2019s gift" and "tea".', {"changed": ["mom's gift", "tea"], "most": 2}),
    ('I\'ve added "milk", "groceries" and "tea".', {"changed": ["milk", "shop for food", "tea"], "most": 3}),
]


@pytest.mark.parametrize(("answer", "values", "named"), NAMED)
def test_more_named_than_changed(answer: str, values: dict[str, Any], named: int) -> None:
    assert count_named(answer, **values) == named


@pytest.mark.parametrize(("answer", "values"), TRUTHFUL)
def test_truthful_answer_is_not_doubted(answer: str, values: dict[str, Any]) -> None:
    assert count_named(answer, **values) is None


def test_long_answers_are_read_in_time() -> None:
    """The time grows with the length of a text only."""
    pieces = ["a, ", '"x", ', "three tasks ", "1, ", "**a** and ", "I've added these:\n- a\n", "I've added 3 tasks. "]
    for piece in pieces:
        text = "I've added tasks " + piece * (10_000 // len(piece))
        began = time.thread_time()
        count_named(text, changed=["milk"] * 200, failed=["bread"] * 200, most=1)
        assert time.thread_time() - began < 2, piece


@pytest.mark.parametrize(
    ("answer", "is_admitted"),
    [
        ("Nothing was changed.", True),
        ("I haven\u2019t added it.", True),
        ("Es wurde nichts geändert.", True),
        ("No se ha cambiado nada.", True),
        ("Rien n'a été modifié.", True),
        ("Hiçbir şey değiştirilmedi.", True),
        ("什么都没有改变。", True),
        ("لم يتغير شيء.", True),
        ("I'll add it now.", False),
        ("Ich trage das gleich ein.", False),
        ("Voy a añadirlo ahora.", False),
        ("Je l'ajoute tout de suite.", False),
        ("Hemen ekliyorum.", False),
        ("我现在就添加。", False),
        ("سأضيفه الآن.", False),
    ],
)
def test_answer_that_admits_a_failure(answer: str, is_admitted: bool) -> None:
    assert admits_failure(answer) is is_admitted

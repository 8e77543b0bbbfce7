# ruff: noqa: RUF001 - the letters that look alike are what is tested
"""Which letters list_tasks takes for the same when it searches, and which not."""

from tests.mcp.calls import Tools

ALIKE = [
    *[("Mum’s cake", "mum's"), ("Mum's cake", "mum’s"), ("Łódź trip", "lodz"), ("lodz", "ŁÓDŹ")],
    *[("Straße fegen", "strasse"), ("STRASSE", "straße"), ("GROẞ", "gross"), ("Đakovo", "dakovo"), ("Ærø", "aero")],
    *[("Smørrebrød", "smorrebrod"), ("Þór", "thor"), ("œuvre", "oeuvre"), ("Iğdır", "igdir"), ("Zürich", "zurich")],
    *[("ΟΔΟΣ", "οδος"), ("οδός", "ΟΔΟΣ"), ("σεισμός", "σεισμοσ"), ("ｶﾀｶﾅ", "カタカナ"), ("Ёлка", "елка")],
    *[("كِتَابٌ", "كتاب"), ("كتاب", "كِتَاب"), ("كـــتاب", "كتاب"), ("أحمد", "احمد")],
    *[("שָׁלוֹם", "שלום"), ("שלום", "שָׁלוֹם"), ("בן־גוריון", "בן-גוריון")],
    *[("e‑mail", "e-mail"), ("e-mail", "e–mail"), ("Jean—Luc", "jean-luc"), ("O’Brien", "o'brien")],
]
APART = [("für", "fuer"), ("don't", "dont"), ("e-mail", "email"), ("हिन्दी", "हन्द"), ("ŋ", "n")]


async def test_search_takes_equivalent_letters_for_the_same(tools: Tools) -> None:
    pairs = [*ALIKE, *APART]
    for start in range(0, len(pairs), 20):
        first, *also = [title for title, _ in pairs[start : start + 20]]
        await tools.add(first, also=also)
    found = [(title, query) for nth, (title, query) in enumerate(pairs, 1) if nth in await tools.ids(query=query)]
    assert found == ALIKE
    for number in range(1, len(pairs) + 1):
        await tools.delete(number)
    deleted = {task["title"] for task in (await tools.call("list_tasks", status="deleted", query="lodz"))["tasks"]}
    assert deleted == {"Łódź trip", "lodz"}

# ruff: noqa: RUF001 - other alphabets have letters that look alike
"""Words about time in other languages, so that a text in one of them is not read in part."""

from collections.abc import Sequence

from english.atoms import Atom, Tag
from english.words import Words, word_set

# Without words that are English too, such as "mars", "ore", "mayo", "todo" and "jam".
_WORDS_BY_LANGUAGE = {
    "German": "heute morgen übermorgen gestern montag montags dienstag dienstags mittwoch mittwochs donnerstag "
    "donnerstags freitag freitags samstag samstags sonnabend sonntag sonntags uhr jeden jede jedes täglich "
    "wöchentlich monatlich jährlich nächste nächsten nächster nächstes woche wochen wochenende tagen monat monaten "
    "stunde stunden minuten abends morgens vormittag vormittags nachmittag nachmittags mittags januar februar märz "
    "oktober dezember",
    "French": "aujourd'hui demain lundi mardi mercredi jeudi vendredi samedi dimanche chaque prochain prochaine "
    "semaine semaines jours heure heures janvier février juin juillet août septembre octobre novembre décembre "
    "matin soir minuit tous toutes",
    "Spanish": "hoy mañana lunes martes miércoles miercoles jueves viernes sábado sabado domingo cada próximo próxima "
    "semana semanas horas días enero febrero marzo abril junio agosto septiembre octubre noviembre diciembre tarde "
    "noche mediodía",
    "Italian": "oggi domani dopodomani lunedì lunedi martedì martedi mercoledì mercoledi giovedì giovedi venerdì "
    "venerdi sabato domenica ogni prossimo prossima settimana giorno giorni gennaio febbraio aprile maggio giugno "
    "luglio settembre ottobre dicembre mattina pomeriggio mezzogiorno",
    "Dutch": "vandaag overmorgen maandag dinsdag woensdag donderdag vrijdag zaterdag zondag iedere volgende uur "
    "dagelijks wekelijks maandelijks januari februari maart augustus",
    "Portuguese": "hoje amanhã feira terça janeiro fevereiro março maio junho julho setembro outubro novembro dezembro "
    "manhã noite",
    "Scandinavian": "imorgon imorgen idag ikväll morgon måndag tisdag onsdag torsdag fredag lördag söndag mandag "
    "tirsdag lørdag søndag varje hver klockan klokken nästa neste næste veckan",
    "Polish": "jutro dzisiaj dziś pojutrze poniedziałek wtorek środa środę czwartek piątek sobota sobotę niedziela "
    "niedzielę każdy godzinie tydzień",
    "Czech": "zítra dnes pondělí úterý středa středu čtvrtek pátek neděle neděli každý",
    "Russian": "завтра сегодня послезавтра понедельник вторник среда среду четверг пятница пятницу суббота субботу "
    "воскресенье каждый каждую каждое утра вечера часов через",
    "Ukrainian": "сьогодні понеділок вівторок середу четвер суботу неділю щодня",
    "Turkish": "yarın bugün pazartesi salı çarşamba perşembe cuma cumartesi pazar",
    "Greek": "αύριο σήμερα δευτέρα τρίτη τετάρτη πέμπτη παρασκευή σάββατο κυριακή",
    "Hungarian": "holnap hétfő hétfőn kedden szerdán csütörtökön pénteken szombaton vasárnap",
    "Finnish": "huomenna tänään maanantaina tiistaina keskiviikkona torstaina perjantaina lauantaina sunnuntaina",
    "Romanian": "mâine miercuri vineri sâmbătă duminică",
    "Indonesian": "besok senin selasa rabu kamis sabtu minggu",
    "Arabic": "غدا غداً اليوم",
    "Hebrew": "מחר היום",
    "Hindi": "कल आज सोमवार",
    "Thai": "พรุ่งนี้ วันนี้",
}
_TIME_WORDS = word_set(" ".join(_WORDS_BY_LANGUAGE.values()))
# Of Chinese, Japanese and Korean, which have no spaces between words or endings at them.
_TIME_SIGNS = word_set(
    "明天 后天 後天 今天 今晚 每天 每周 每週 星期 周一 周二 周三 周四 周五 "
    "周六 周日 下午 上午 晚上 明日 今日 毎日 毎週 曜日 午後 午前 点 點 時 내일 오늘 모레 매일 매주 요일 오후 오전"
)
_MONTHS_OR_NAMES = word_set("mai mei juni juli avril")  # a month after a number: "3. Mai"
_BEFORE_TIME = word_set("à um om kl klo las alle às ás в о")


def find_other_language(words: Words, atoms: Sequence[Atom]) -> range | None:
    """Returns the words from the first to the last about time if one of them is not English."""
    foreign = [at for at in range(len(words.words)) if _is_time_word(words, at)]
    before_number = (at for at in range(len(words.words) - 1) if words.raw(at + 1)[0].isdigit())
    pairs = [(at, at + 1) for at in before_number if words.raw(at).casefold() in _BEFORE_TIME]
    foreign.extend(at for pair in pairs for at in pair)
    if not foreign:
        return None
    timed = [atom for atom in atoms if not isinstance(atom.meaning, Tag)]
    first = min([*foreign, *(atom.first for atom in timed)])
    return range(first, max([*foreign, *(atom.end - 1 for atom in timed)]) + 1)


def _is_time_word(words: Words, at: int) -> bool:
    word = words.raw(at).casefold().replace("\u2019", "'")
    if word in _MONTHS_OR_NAMES:
        before = at - 2 if words.raw(at - 1) == "." else at - 1
        return words.raw(before)[:1].isdigit()
    return word in _TIME_WORDS or (not word.isascii() and any(sign in word for sign in _TIME_SIGNS))

"""What is read of a line about a new task: a row for each phrase. Unless it says otherwise, it is Monday at 10:40."""

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from english import ParsedTask, read_task
from tests.examples import same_examples

NOW = datetime(2026, 11, 23, 10, 40)
WEEKDAYS = "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"
TUE_TO_SAT = "FREQ=WEEKLY;BYDAY=TU,WE,TH,FR,SA"


def task(title: str, **fields: Any) -> dict[str, Any]:
    return {"title": title, **fields}


def fields_of(reading: ParsedTask) -> dict[str, Any]:
    when = reading.when
    fields = {"due": when and when.due[4:], "repeat": when and when.repeat}
    fields |= {"priority": reading.priority, "labels": reading.labels}
    return task(reading.title, **{name: value for name, value in fields.items() if value})


PHRASES = [
    ("buy milk", task("buy milk")),
    ("read 20 pages", task("read 20 pages")),
    ("pay the rent today", task("pay the rent", due="2026-11-23")),
    ("dentist tomorrow at 3pm", task("dentist", due="2026-11-24 15:00")),
    ("dentist at 15:30 tomorrow", task("dentist", due="2026-11-24 15:30")),
    ("walk tomorrow morning", task("walk", due="2026-11-24 09:00")),
    ("call mum tonight", task("call mum", due="2026-11-23")),
    ("send the report the day after tomorrow", task("send the report", due="2026-11-25")),
    ("call mum on Friday", task("call mum", due="2026-11-27")),
    ("call mum friday 3pm", task("call mum", due="2026-11-27 15:00")),
    ("report by next Friday", task("report", due="2026-12-04")),
    ("report by next Monday", task("report", due="2026-11-30")),
    ("evening class on tuesday at 7", task("evening class", due="2026-11-24 19:00")),
    ("report (due Friday)", task("report", due="2026-11-27")),
    ("lunch on Friday at noon", task("lunch", due="2026-11-27 12:00")),
    ("call Ben on Monday", task("call Ben", due="2026-11-30")),
    ("call Ben on mon", task("call Ben", due="2026-11-30")),
    ("standup at 9", task("standup", due="2026-11-24 09:00")),
    ("meet Ann at 5 p.m.", task("meet Ann", due="2026-11-23 17:00")),
    ("meet Ann at half past four", task("meet Ann", due="2026-11-23 16:30")),
    ("gym in 3 days", task("gym", due="2026-11-26")),
    ("gym in a week", task("gym", due="2026-11-30")),
    ("gym two weeks from now", task("gym", due="2026-12-07")),
    ("renew the passport in six months", task("renew the passport", due="2027-05-23")),
    ("call the bank in 2 hours", task("call the bank", due="2026-11-23 12:40")),
    ("meet Ann next week", task("meet Ann", due="2026-11-30")),
    ("clean the garage this weekend", task("clean the garage", due="2026-11-28")),
    ("clean the garage next weekend", task("clean the garage", due="2026-12-05")),
    ("book the flights next month", task("book the flights", due="2026-12-01")),
    ("send the invoice at the end of the month", task("send the invoice", due="2026-11-30")),
    ("taxes by april 30", task("taxes", due="2027-04-30")),
    ("party on 24 December at 8pm", task("party", due="2026-12-24 20:00")),
    ("party on the 24th of December 2027", task("party", due="2027-12-24")),
    ("pay the rent by the 1st", task("pay the rent", due="2026-12-01")),
    ("submit the form due 2026-12-01", task("submit the form", due="2026-12-01")),
    ("submit the form before Friday", task("submit the form", due="2026-11-26")),
    ("water the plants every day", task("water the plants", due="2026-11-23", repeat="FREQ=DAILY")),
    ("take the pills every day at 8", task("take the pills", due="2026-11-24 08:00", repeat="FREQ=DAILY")),
    (
        "take the pills every weekday at 11",
        task("take the pills", due="2026-11-23 11:00", repeat="FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"),
    ),
    (
        "water the plants every Monday at 9",
        task("water the plants", due="2026-11-30 09:00", repeat="FREQ=WEEKLY;BYDAY=MO"),
    ),
    ("run every Tuesday and Thursday", task("run", due="2026-11-24", repeat="FREQ=WEEKLY;BYDAY=TU,TH")),
    ("pay the cleaner every other week", task("pay the cleaner", due="2026-11-23", repeat="FREQ=WEEKLY;INTERVAL=2")),
    ("review the budget every 3 months", task("review the budget", due="2026-11-23", repeat="FREQ=MONTHLY;INTERVAL=3")),
    ("pay the rent every month on the 1st", task("pay the rent", due="2026-12-01", repeat="FREQ=MONTHLY")),
    ("book club every first Monday", task("book club", due="2026-12-07", repeat="FREQ=MONTHLY;BYDAY=1MO")),
    (
        "close the books on the last day of every month",
        task("close the books", due="2026-11-30", repeat="FREQ=MONTHLY;BYMONTHDAY=-1"),
    ),
    ("write to Ann every year on 5 May", task("write to Ann", due="2027-05-05", repeat="FREQ=YEARLY")),
    (
        "change the filter 3 months after I last did",
        task("change the filter", due="2026-11-23", repeat="FREQ=MONTHLY;INTERVAL=3;FROM=DONE"),
    ),
    ("stand up every 2 days starting tomorrow", task("stand up", due="2026-11-24", repeat="FREQ=DAILY;INTERVAL=2")),
    ("buy milk #shopping", task("buy milk", labels=("shopping",))),
    ("buy milk tomorrow #shopping #home", task("buy milk", due="2026-11-24", labels=("shopping", "home"))),
    ("buy milk #shopping tomorrow", task("buy milk", due="2026-11-24", labels=("shopping",))),
    ("pay the rent, high priority", task("pay the rent", priority="high")),
    ("pay the rent on Friday with low priority", task("pay the rent", due="2026-11-27", priority="low")),
    ("pay the rent !high", task("pay the rent", priority="high")),
    ("pay the rent friday !medium #home", task("pay the rent", due="2026-11-27", priority="medium", labels=("home",))),
    ('"tomorrow never dies"', task("tomorrow never dies")),
    ("tomorrow never dies", task("tomorrow never dies")),
    ("gifts for Black Friday", task("gifts for Black Friday")),
    ("dentist on 31 November at 3pm", task("dentist on 31 November at 3pm")),
    ("dentist at 25:00", task("dentist at 25:00")),
    ("plan the trip after Friday", task("plan the trip after Friday")),
    ("Friday", task("Friday")),
    # Days and times that were lost, or wrong.
    ("lunch at 1 on sunday with Bob", task("lunch with Bob", due="2026-11-29 13:00")),
    ("dinner at 7 on saturday with Jane", task("dinner with Jane", due="2026-11-28 19:00")),
    ("standup tmrw 9am", task("standup", due="2026-11-24 09:00")),
    ("call mum tomorow at 6", task("call mum", due="2026-11-24 18:00")),
    ("gym mon wed fri 7am", task("gym", due="2026-11-25 07:00", repeat="FREQ=WEEKLY;BYDAY=MO,WE,FR")),
    ("gym every mon, wed and fri at 7am", task("gym", due="2026-11-25 07:00", repeat="FREQ=WEEKLY;BYDAY=MO,WE,FR")),
    ("standup mon-fri 9am", task("standup", due="2026-11-24 09:00", repeat=WEEKDAYS)),
    ("meeting on the 3rd at 4pm with Tom", task("meeting with Tom", due="2026-12-03 16:00")),
    ("dentist 2026/12/01", task("dentist", due="2026-12-01")),
    ("dentist 05.12.", task("dentist", due="2026-12-05")),
    ("dentist 27/11", task("dentist", due="2026-11-27")),
    ("dentist 12.12.2026 at 10", task("dentist", due="2026-12-12 10:00")),
    ("standup 15h", task("standup", due="2026-11-23 15:00")),
    ("gym at 6 tomorrow evening", task("gym", due="2026-11-24 18:00")),
    ("run tomorrow morning at 9", task("run", due="2026-11-24 09:00")),
    ("pay rent in a fortnight", task("pay rent", due="2026-12-07")),
    ("buy bread fri 3pm", task("buy bread", due="2026-11-27 15:00")),
    ("buy bread mon", task("buy bread", due="2026-11-30")),
    ("tomorrow buy bread", task("buy bread", due="2026-11-24")),
    ("tomorrow: buy bread", task("buy bread", due="2026-11-24")),
    ("friday 27 november dentist appointment", task("dentist appointment", due="2026-11-27")),
    ("party on friday the 27th", task("party", due="2026-11-27")),
    ("renew car insurance before 15 december", task("renew car insurance", due="2026-12-14")),
    ("buy wedding present by 5 june", task("buy wedding present", due="2027-06-05")),
    ("friday week collect suit", task("collect suit", due="2026-12-04")),
    ("collect suit friday next week", task("collect suit", due="2026-12-04")),
    ("a week on friday collect suit", task("collect suit", due="2026-12-04")),
    ("budget by eod friday", task("budget", due="2026-11-27")),
    ("project deadline: 31/01/2027", task("project", due="2027-01-31")),
    ("deadline friday 5pm: finish the essay", task("finish the essay", due="2026-11-27 17:00")),
    ("send cards by christmas", task("send cards", due="2026-12-25")),
    ("meeting with Tom 14.30 tomorrow", task("meeting with Tom", due="2026-11-24 14:30")),
    ("call mum at 3:15", task("call mum", due="2026-11-23 15:15")),
    ("gym at 6 in the morning tomorrow", task("gym", due="2026-11-24 06:00")),
    ("wake up at 6 tomorrow", task("wake up", due="2026-11-24 06:00")),
    ("fly to Paris dec 3 at 6:45am with Ann", task("fly to Paris with Ann", due="2026-12-03 06:45")),
    ("laundry on Sunday, then ironing", task("laundry, then ironing", due="2026-11-29")),
    ("Laundry Sunday!", task("Laundry", due="2026-11-29")),
    ("walk 30 minutes tomorrow", task("walk 30 minutes", due="2026-11-24")),
    ("MOT before end of January", task("MOT", due="2027-01-31")),
    ("parents' evening weds 2 dec 6.30pm", task("parents' evening", due="2026-12-02 18:30")),
    ("Sunday dinner at mum's 1pm", task("dinner at mum's", due="2026-11-29 13:00")),
    ("call the bank tomorrow week", task("call the bank", due="2026-12-01")),
    ("call the bank at nine thirty", task("call the bank", due="2026-11-24 09:30")),
    ("call the bank 0900 tomorrow", task("call the bank", due="2026-11-24 09:00")),
    ("flight 14FEB 10:05", task("flight", due="2027-02-14 10:05")),
    ("pay 12.50 tomorrow", task("pay 12.50", due="2026-11-24")),
    ("dentist dec12", task("dentist", due="2026-12-12")),
    ("call Jan tomorrow", task("call Jan", due="2026-11-24")),
    ("pay on the last day of february", task("pay", due="2027-02-28")),
    ("pay on the last day of the year", task("pay", due="2026-12-31")),
    ("pay on the last day of next month", task("pay", due="2026-12-31")),
    ("pay on the first day of april", task("pay", due="2027-04-01")),
    ("pay on the first of the month", task("pay", due="2026-12-01")),
    ("pay on the first day of next month", task("pay", due="2026-12-01")),
    ("party on the twentieth of march", task("party", due="2027-03-20")),
    ("party on the twenty-first of march", task("party", due="2027-03-21")),
    ("party on thirty first of december", task("party", due="2026-12-31")),
    ("party on december twelfth", task("party", due="2026-12-12")),
    ("party 15-Apr-2027", task("party", due="2027-04-15")),
    ("2026-12-01T14:30 webinar", task("webinar", due="2026-12-01 14:30")),
    ("call mum 3 o clock", task("call mum", due="2026-11-23 15:00")),
    (
        "call mum on friday because she travels on monday",
        task("call mum because she travels on monday", due="2026-11-27"),
    ),
    ("call mum on friday please bring cake", task("call mum please bring cake", due="2026-11-27")),
    ("lunch (because she asked) tomorrow at 1", task("lunch (because she asked)", due="2026-11-24 13:00")),
    # A preposition after a hyphen belongs to the noun.
    ("flight check-in tomorrow", task("flight check-in", due="2026-11-24")),
    ("review the add-on friday", task("review the add-on", due="2026-11-27")),
    ("drive-by 5pm", task("drive-by", due="2026-11-23 17:00")),
    # Of a range the beginning; its words stay in the title, because a task has no end.
    ("meeting 2-3pm tomorrow", task("meeting 2-3pm", due="2026-11-24 14:00")),
    ("trip 3-5 december", task("trip 3-5 december", due="2026-12-03")),
    ("trip nov 30 to dec 2", task("trip nov 30 to dec 2", due="2026-11-30")),
    ("trip july 3 - july 10", task("trip july 3 - july 10", due="2027-07-03")),
    ("trip 28 november to 3 december", task("trip 28 november to 3 december", due="2026-11-28")),
    # One wrong letter in the name of a day or month.
    ("gym on wendesday", task("gym", due="2026-11-25")),
    ("dentist thrusday 3pm", task("dentist", due="2026-11-26 15:00")),
    ("dentist 3 decembr", task("dentist", due="2026-12-03")),
    ("buy sundae", task("buy sundae")),
    ("watch 3 match", task("watch 3 match")),
    # What touches or adjoins a phrase belongs to it.
    *(
        (text, task(text))
        for text in ("look at 1:1 notes", "edit at 4:3 ratio", "see 9am-ish", "raise it by 5%", "run at 12 km/h")
    ),
    ("meet at 12/F tomorrow", task("meet at 12/F", due="2026-11-24")),
    ("from ai sdk 7.0.173 tomorrow", task("from ai sdk 7.0.173", due="2026-11-24")),
    ("Task1 @24/4 14:30 90m", task("Task1 90m", due="2027-04-24 14:30")),
    ("dentist @friday", task("dentist", due="2026-11-27")),
    ("go home and tomorrow", task("go home", due="2026-11-24")),
    ("hand the essay in tomorrow", task("hand the essay in", due="2026-11-24")),
    ("send it before friday 5pm", task("send it", due="2026-11-27 17:00")),
    ("send it no later than friday", task("send it", due="2026-11-27")),
    # Lengths.
    *(
        (f"call {text}", task("call", due=f"2026-11-23 {time}"))
        for text, time in (
            *(("in 1 hour 30 minutes", "12:10"), ("in 2 hours and 15 minutes", "12:55"), ("in 1h 30m", "12:10")),
            *(("in 1h30m", "12:10"), ("in an hour and a half", "12:10"), ("in 2 1/2 hours", "13:10")),
            *(("in a quarter of an hour", "10:55"), ("in 30m", "11:10"), ("1 hour, 5 minutes from now", "11:45")),
        )
    ),
    ("call in 2 weeks and 3 days", task("call", due="2026-12-10")),
    ("call in 1 year 6 months", task("call", due="2028-05-23")),
    ("call in 2 days and 3 hours", task("call", due="2026-11-25 13:40")),
    ("call 2 weeks and 3 days from tomorrow", task("call", due="2026-12-11")),
    # A repeat begins on the day that the text names.
    ("Mar 15 birthday every year", task("birthday", due="2027-03-15", repeat="FREQ=YEARLY")),
    ("15 March mum's birthday yearly", task("mum's birthday", due="2027-03-15", repeat="FREQ=YEARLY")),
    ("friday drinks every week", task("drinks", due="2026-11-27", repeat="FREQ=WEEKLY")),
    # Ranges of weekdays.
    ("shop every tuesday through saturday at 8", task("shop", due="2026-11-24 08:00", repeat=TUE_TO_SAT)),
    ("gym every monday and every thursday", task("gym", due="2026-11-23", repeat="FREQ=WEEKLY;BYDAY=MO,TH")),
    ("shop every tue-sat", task("shop", due="2026-11-24", repeat=TUE_TO_SAT)),
    ("walk every fri to mon", task("walk", due="2026-11-23", repeat="FREQ=WEEKLY;BYDAY=MO,FR,SA,SU")),
    ("walk mondays to fridays", task("walk", due="2026-11-23", repeat=WEEKDAYS)),
    (
        "piano every thursday from april 1 until july 1",
        task("piano", due="2027-04-01", repeat="FREQ=WEEKLY;BYDAY=TH;UNTIL=20270701"),
    ),
    # Polite words are no part of the title.
    *(
        (text, task("call mum", due="2026-11-24"))
        for text in (
            *("remind me to call mum tomorrow", "Please remind me tomorrow to call mum, thanks!"),
            *("don't forget to call mum tomorrow", "I need to call mum tomorrow", "remember to call mum tomorrow"),
            *("could you please remind me to call mum tomorrow?", "call mum tomorrow, please"),
            *("add a new task to call mum tomorrow", "note to self: call mum tomorrow", "please call mum tomorrow"),
        )
    ),
    ("call Mei and Juli tomorrow", task("call Mei and Juli", due="2026-11-24")),
    ("remind me that the rent is due on friday", task("the rent is due", due="2026-11-27")),
    *(
        (text, task(text))
        for text in (
            *("remember the milk", "Please Please Me", "say please", "write a thank you", "remind mum to call"),
            *("todo", "remind me", "add task to board", "remind me when it rains"),
        )
    ),
    # Repeats.
    (
        "water the plants every day until 1 december",
        task("water the plants", due="2026-11-23", repeat="FREQ=DAILY;UNTIL=20261201"),
    ),
    ("until friday practise daily", task("practise", due="2026-11-23", repeat="FREQ=DAILY;UNTIL=20261127")),
    ("practise daily until christmas", task("practise", due="2026-11-23", repeat="FREQ=DAILY;UNTIL=20261225")),
    ("take pills every day for 5 days", task("take pills", due="2026-11-23", repeat="FREQ=DAILY;UNTIL=20261127")),
    ("take pills every day 5 times", task("take pills", due="2026-11-23", repeat="FREQ=DAILY;COUNT=5")),
    ("pay on the 1st and 15th of every month", task("pay", due="2026-12-01", repeat="FREQ=MONTHLY;BYMONTHDAY=1,15")),
    ("gym on mondays and thursdays at 6pm", task("gym", due="2026-11-23 18:00", repeat="FREQ=WEEKLY;BYDAY=MO,TH")),
    ("standup every weekday except friday", task("standup", due="2026-11-23", repeat="FREQ=WEEKLY;BYDAY=MO,TU,WE,TH")),
    ("bins every other thursday", task("bins", due="2026-11-26", repeat="FREQ=WEEKLY;INTERVAL=2;BYDAY=TH")),
    ("club every 2nd tuesday of the month", task("club", due="2026-12-08", repeat="FREQ=MONTHLY;BYDAY=2TU")),
    ("daily standup at 9:30", task("standup", due="2026-11-24 09:30", repeat="FREQ=DAILY")),
    (
        "physio mondays 9am until christmas",
        task("physio", due="2026-11-30 09:00", repeat="FREQ=WEEKLY;BYDAY=MO;UNTIL=20261225"),
    ),
    ("rent first of every month", task("rent", due="2026-12-01", repeat="FREQ=MONTHLY")),
    ("rent due 1st of each month", task("rent", due="2026-12-01", repeat="FREQ=MONTHLY")),
    *(
        (text, task("pay rent", due="2026-12-31" if "31" in text else "2026-12-01", repeat="FREQ=MONTHLY"))
        for text in (
            *("pay rent every month on 31", "pay rent every month on the 31st", "pay rent every month on day 31"),
            *("pay rent monthly on 31", "pay rent on day 31 of every month", "pay rent each month on the 31"),
            *("every month on 31 pay rent", "pay rent, every month on 31.", "pay rent once a month on 31"),
            *("pay rent monthly on the 1st", "pay rent on 1 of each month", "pay rent every month on the 1"),
        )
    ),
    ("pay rent every month on 31 #home", task("pay rent", due="2026-12-31", repeat="FREQ=MONTHLY", labels=("home",))),
    ("pay rent every month on 5 at 9am", task("pay rent", due="2026-12-05 09:00", repeat="FREQ=MONTHLY")),
    (
        "pay rent every month on 5 until june 5",
        task("pay rent", due="2026-12-05", repeat="FREQ=MONTHLY;UNTIL=20270605"),
    ),
    ("pay every month on 1 and 15", task("pay", due="2026-12-01", repeat="FREQ=MONTHLY;BYMONTHDAY=1,15")),
    ("pay rent every 2 months on the 15th", task("pay rent", due="2026-12-15", repeat="FREQ=MONTHLY;INTERVAL=2")),
    ("pay rent every other month on 15", task("pay rent", due="2026-12-15", repeat="FREQ=MONTHLY;INTERVAL=2")),
    ("pay tax every quarter on 15", task("pay tax", due="2026-12-15", repeat="FREQ=MONTHLY;INTERVAL=3")),
    ("pay tax quarterly on the 15th", task("pay tax", due="2026-12-15", repeat="FREQ=MONTHLY;INTERVAL=3")),
    ("call Ann every year on 3 May", task("call Ann", due="2027-05-03", repeat="FREQ=YEARLY")),
    ("call Ann on the 3rd of May every year", task("call Ann", due="2027-05-03", repeat="FREQ=YEARLY")),
    ("check every month on 5 guys", task("check on 5 guys", due="2026-11-23", repeat="FREQ=MONTHLY")),
    # Priorities and labels.
    *(
        (f"read #{label}", task("read", labels=(label,)))
        for label in ("\U0001f389", "c++", "1on1", "home/kitchen", "a.b", "\u65e5\u672c", "r&d")
    ),
    ("buy bread p1", task("buy bread", priority="high")),
    ("buy bread @work tomorrow !high", task("buy bread", due="2026-11-24", priority="high", labels=("work",))),
    ("clean tomorrow, label home", task("clean", due="2026-11-24", labels=("home",))),
    (
        "Christmas shopping on Dec 20 at 14:00, high priority, label family",
        task("Christmas shopping", due="2026-12-20 14:00", priority="high", labels=("family",)),
    ),
    ("urgent: fix the login today", task("fix the login", due="2026-11-23", priority="high")),
    ("fix the login, urgent", task("fix the login", priority="high")),
    *(
        (text, task("call mum", priority="high", labels=("family",)))
        for text in (
            *("call mum p1 #family !!", "call mum #family !!! p1", "#family !! p1 call mum", "!! #family p1 call mum"),
            *("call mum p1 #family\u2026", "call mum p1!! #family...", "call mum \u2014 p1 \u2014 #family."),
            *("call mum #family !!1", "call mum p1 ##family", "call mum p3 p1 #family", "call mum #family p1 #family"),
            "p1 . #family: call mum",
        )
    ),
    ("say hi!! p1", task("say hi!!", priority="high")),
    ("say hi !! tomorrow", task("say hi !!", due="2026-11-24")),
    ("who pays? #family !", task("who pays?", labels=("family",))),
    ("who pays #family ?", task("who pays?", labels=("family",))),
    ("wow!! look", task("wow!! look")),
    ("p1 #family !!", task("p1 #family !!")),
    ("high priority: call the lawyer tomorrow", task("call the lawyer", due="2026-11-24", priority="high")),
    # Words that only look like a date.
    *(
        (text, task(text))
        for text in (
            *("buy may flowers", "buy march on washington tickets", "read chapter 3", "call 911", "order 7 up"),
            *("add second hand books", "fix the sun roof", "plan the day after", "look at 3 houses", "meet at 5 guys"),
            *("sun cream for kids", "get some sun", "buy 1/2 kg flour", "support 24/7", "bake at 180 degrees"),
            *(
                "move the meeting from 1.5 to 2.5",
                "go to monday.com",
                "pick the second",
                "table for 4",
                "meet on the tenth floor",
                "not urgent: sort the photos",
                "sort the photos, non-urgent",
                "mark the mail as urgent",
                "sun-dried tomatoes",
                "reduce sugar by 5",
                "work 5 to 9",
            ),
        )
    ),
]


@pytest.mark.parametrize(("text", "wanted"), PHRASES, ids=[text for text, _ in PHRASES])
def test_phrase(text: str, wanted: dict[str, Any]) -> None:
    assert fields_of(read_task(text, NOW)) == wanted


UNREAD = [
    *(
        (f"pay {text}", text)
        for text in (
            *("half-yearly", "bi-monthly", "twice-weekly", "thrice-daily", "every 2 weeks and 3 days"),
            *("every 2 to 3 days", "in 5 to 10 minutes", "in 2 hours 15", "in a week and a half", "tomorrow/friday"),
            *("every monday or tuesday", "monday to friday", "today or tomorrow"),
            *("every monday unless it rains", "2026-12-01T14:30:00Z", "the friday after next"),
            *(
                "morgen um 9 Uhr",
                "demain \u00e0 15h",
                "ma\u00f1ana a las 5",
                "\u0437\u0430\u0432\u0442\u0440\u0430 \u0432 18:00",
            ),
            *(
                "ogni luned\u00ec alle 9",
                "\u660e\u5929\u4e0b\u5348\u4e09\u70b9",
                "um 15:00",
                "3 novembre",
            ),
        )
    ),
    ("pay 3. Mai um 9", "Mai um 9"),
    ("monday\u2013wednesday trip", "monday\u2013wednesday"),
    ("move the call to thursday", "thursday"),
    ("review a fortnight today", "a fortnight today"),
    ("dentist 12/05", "12/05"),
    ("dentist 1/12/2026", "1/12/2026"),
    ("dinner friday 5", "friday 5"),
    ("movie friday the 13th", "friday the 13th"),
    ("dentist wed 3rd dec at 9", "wed 3rd dec at 9"),
    ("pills twice a day", "twice a day"),
    ("dentist on 31 November at 3pm", "31 November at 3pm"),
    ("dentist at 25:00", "at 25:00"),
    ("plan the trip after Friday", "Friday"),
    ("swimming saturday or sunday", "saturday or sunday"),
    ("visit Ann monday and tuesday", "monday and tuesday"),
    ("move the meeting from monday to tuesday", "monday to tuesday"),
    ("dentist in december at 3pm", "in december at 3pm"),
    ("oil change in march", "in march"),
    ("collect suit in a few days", "in a few days"),
    ("collect suit sometime next week", "sometime next week"),
    ("collect suit this week", "this week"),
    ("stretch every hour", "every hour"),
    ("book club every second tuesday", "every second tuesday"),
    ("countdown at midnight", "at midnight"),
    ("parents evening thursday at half six", "thursday at half six"),
    ("call mom 5 pm est", "5 pm est"),
    ("holiday mon-fri", "mon-fri"),
    ("holiday monday to friday", "monday to friday"),
    ("ring Bob 8 tomorrow morning", "8 tomorrow morning"),
    ("take the pills at 8, 12 and 18", "at 8, 12 and 18"),
    ("do it any day but friday", "friday"),
    ("order the turkey the day before christmas", "the day before christmas"),
    ("clean the bath every other weekend", "every other weekend"),
    ("meet Bob tomorrow 1500", "tomorrow 1500"),
    ("call mum tomorrow 9", "tomorrow 9"),
    ("party at 3pm and at 5pm", "at 3pm and at 5pm"),
    ("pay on friday 2026-12-01", "on friday 2026-12-01"),
    ("call mum 6 in the morning tomorrow", "6 in the morning tomorrow"),
    ("call mum tomorrow or the day after", "tomorrow or the day after"),
    ("chase the invoice in 5 business days", "in 5 business days"),
    ("chase the invoice within 2 workdays", "within 2 workdays"),
    ("order a turkey by thanksgiving", "by thanksgiving"),
    ("yoga every friday until easter", "every friday until easter"),
    ("tidy up before new year", "before new year"),
    ("meet on the tenth", "on the tenth"),
    ("meet three fridays from now", "three fridays from now"),
    ("31 november", "31 november"),
    ("12/05: dentist", "12/05"),
    ("31 november call mum", "31 november"),
    ("dentist 12/05, bring the papers", "12/05"),
    ("dentist 31 november with Ann", "31 november"),
    ("dentist after 12/05", "12/05"),
    ("dentist 1/4", "1/4"),
    ("dentist 3rd", "3rd"),
    ("dentist 29 february 2027", "29 february 2027"),
    ("holiday june", "june"),
    ("pay rent every month on 32", "every month on 32"),
    ("pay rent every year on 31 april", "every year on 31 april"),
]


@pytest.mark.parametrize(("text", "unread"), UNREAD, ids=[text for text, _ in UNREAD])
def test_what_is_not_understood_stays_in_the_title_and_is_listed(text: str, unread: str) -> None:
    reading = read_task(text, NOW)
    assert (reading.title, reading.when, reading.unread) == (text, None, (unread,))


MARKS_WITHIN_WORDS = [
    *("email a#b", "learn C#", "close ABC-p1", "fix #12", "see #2027-118"),
    *("play F#minor", "see docs/#install", "buy cards,#party"),
    *("fix org/repo#12", "write to bob@work", "say hello!!1", "#a#b"),
]


@pytest.mark.parametrize("text", MARKS_WITHIN_WORDS)
def test_mark_within_a_word_is_no_label_and_no_priority(text: str) -> None:
    assert read_task(text, NOW) == ParsedTask(text)


# Without words that were clearly meant as a date.
TITLES = """
    sunday roast
    sunday roast ingredients
    read the Sunday Times
    saturday market
    friday night lights
    watch Friday Night Lights
    last friday night movie
    monday blues playlist
    listen to Blue Monday
    watch Super Sunday
    gifts for Black Friday
    good friday service
    the tuesday group
    wednesday addams costume
    slides for monday's meeting
    monday's call notes
    answer tomorrow's questions
    tomorrow never dies
    today show tickets
    may 4th be with you
    write the june report
    call April
    email June
    lunch with June
    plan christmas
    buy gifts for christmas
    book halloween costume
    call yesterday
    collect suit yesterday
    yesterday by the beatles
    file the receipts of last week
    review the photos from last weekend
    sort the mail of 3 weeks ago
    the 9am crowd
    Friday
    9am
    next week
    every day
    weekly
    weekly report
    monthly review notes
    daily planner
    nightly build
    hourly rate
    this week in tech
    midnight in paris
    watch midnight in paris
    half six nations tickets
    re: 5/6 numbers
    9/11 documentary
    watch part 1/2
    read chapters 5/6
    buy 1/2 kg flour
    support 24/7
    split the bill 50/50
    upgrade to python 3.11
    install ubuntu 24.04
    pay 25.99
    pin 0423
    2nd hand
    2nd draft of the essay
    buy 2nd hand
    buy 5th avenue tickets
    renew the 1st aid kit
    finish 2nd
    5th element
    check in 24 hours before the flight
    drop the bag because she travels on monday
    check whether the museum opens on monday
"""


@pytest.mark.parametrize("text", TITLES.strip().split("\n    "))
def test_ordinary_title_is_left_alone(text: str) -> None:
    assert read_task(text, NOW) == ParsedTask(text)


def test_time_is_no_date_beside_a_day_that_is_not_understood() -> None:
    reading = read_task("gig 11 Dec doors 7pm", NOW)
    assert (reading.title, reading.when, reading.unread) == ("gig 11 Dec doors 7pm", None, ("11 Dec", "7pm"))


def test_repeat_with_two_times_is_left_whole() -> None:
    text = "feed cat every day at 8am and 6pm"
    reading = read_task(text, NOW)
    assert (reading.title, reading.when, reading.unread) == (text, None, ("every day at 8am and 6pm",))


@pytest.mark.parametrize(
    ("text", "day_first", "month_first"),
    [
        ("dentist 12/05", "2027-05-12", "2026-12-05"),
        ("dentist 1/12/2026", "2026-12-01", None),  # 12 January has passed
        ("dentist on 3-4-2027", "2027-04-03", "2027-03-04"),
        ("dentist 27/11", "2026-11-27", "2026-11-27"),
        ("dentist 2026-12-01", "2026-12-01", "2026-12-01"),
    ],
)
def test_order_of_day_and_month(text: str, day_first: str, month_first: str | None) -> None:
    assert fields_of(read_task(text, NOW, "day-first")) == task("dentist", due=day_first)
    wanted = task("dentist", due=month_first) if month_first else task(text)
    assert fields_of(read_task(text, NOW, "month-first")) == wanted


@pytest.mark.parametrize("today", range(23, 30))
@pytest.mark.parametrize("hour", [6, 13, 22])
def test_phrases_on_every_day_of_a_week(today: int, hour: int) -> None:
    now = datetime(2026, 11, today, hour)
    monday, following = now.day - now.weekday(), 23 + 7

    def day_of(text: str) -> int:
        when = read_task(f"gym {text}", now).when
        assert when is not None
        return when.day.day if when.day.month == 11 else when.day.day + 30

    assert day_of("today") == today
    assert day_of("tomorrow") == today + 1
    assert day_of("friday") == (27 if today < 27 else 34)
    assert day_of("on sunday") == (29 if today < 29 else 36)
    assert day_of("monday") == following
    assert day_of("next week") == monday + 7
    assert day_of("this weekend") == max(28, today)
    assert day_of("next weekend") == 35
    assert day_of("end of the week") == 29
    assert day_of("wednesday next week") == 32
    assert day_of("at 12:30") == today + (hour > 12)
    assert day_of("every friday") == (27 if today <= 27 else 34)
    assert day_of("every friday at 12:30") == (27 if (today, hour) < (27, 12) else 34)
    assert day_of("every weekday") == (today if today < 28 else 30)
    assert day_of("in 3 days") == today + 3


def test_bare_hour_said_in_the_afternoon() -> None:
    afternoon = datetime(2026, 11, 23, 17, 0)
    assert fields_of(read_task("call mum at 7", afternoon)) == task("call mum", due="2026-11-23 19:00")
    assert fields_of(read_task("call mum at 7 tomorrow", afternoon)) == task("call mum", due="2026-11-24 07:00")


def test_without_dates() -> None:
    reading = read_task("watch the day after tomorrow #film !high", NOW, dates=False)
    assert fields_of(reading) == task("watch the day after tomorrow", priority="high", labels=("film",))
    assert reading.unread == ()


WORDS = """
    buy milk on by at the tomorrow friday sun sat 3rd 3pm 15:30 12/05 2026-12-01 every day mon wed and or , ( ) : -
    until for 5 times week before next last of november 31 p1 #home @work "quoted\u00a0tomorrow" label \u201cx\u201d
    \u00e9 \u0130 morning noon half past 6 in hours '
"""


@same_examples(500)
@given(
    st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join) | st.text(max_size=60),
    st.datetimes(datetime(2024, 1, 1), datetime(2028, 12, 31)),
)
def test_spans_lie_within_the_text_and_do_not_overlap(text: str, now: datetime) -> None:
    reading = read_task(text, now)
    end = 0
    for span in reading.spans:
        assert end <= span.start < span.end <= len(text)
        assert text[span.start : span.end] == span.text
        end = span.end
    assert reading.when is None or reading.when.day >= now.date()
    assert bool(reading.title.strip()) == bool(text.strip()) or not any(letter.isalnum() for letter in text)

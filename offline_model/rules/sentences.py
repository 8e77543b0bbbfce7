"""What the offline model says."""

REAL_MODEL = "For a real model set `CEREBRAS_API_KEY`, or `LLM_PROVIDER` and that provider's key, and start again."
ABOUT = f'I am the offline model and only keep tasks, by simple rules: say "help" for what I know. {REAL_MODEL}'
CANNOT = {
    "reminders": f'I cannot remind you at a time: say "add call mum on Friday" to keep a date. {REAL_MODEL}',
}
"""What is said in the place of what a task may have one day; the help names each."""
HELP = f"""I am the offline model: I follow simple rules and keep your tasks. You can say, for example:

- add buy milk and call mum
- add milk, eggs and bread to shopping
- add dentist tomorrow at 3pm / water the plants every Monday / move dentist to Friday / what's due today?
- move everything due today to tomorrow / snooze dentist by a week / skip the plants this week
- make dentist high priority / tag gym with health / stop repeating the plants
- what is on my list? / what's overdue? / show my work tasks / find milk / what did I do last week? / more
- the milk is done / I finished all the shopping / the milk is not done yet
- rename milk to oat milk / describe milk as two litres
- do task 3: for "write a shopping list for pancakes to shopping.md" or "count the words of notes.txt"
- delete the milk task / delete all done tasks / undo / bring back the milk

I have no {" and no ".join(CANNOT)}, and cannot talk about anything else.

{REAL_MODEL}"""
GREETING = 'Hello! I am the offline model: simple rules that keep your tasks. Say "add buy milk", or "help" for more.'
I_AM = 'I am the offline model: simple rules, neither a person nor a language model. Say "help" for what I know.'
NO_MEMORY = 'I cannot say what I did before: I know only what your list holds now. Say "show all" to see it.'
TOO_LONG = "That is more than I can read: keep a message below {limit:,} characters. I have done nothing."
WELCOME = "You are welcome."
BYE = "Goodbye."
ANSWER_IT = "Please choose one by its number, or say no."
NO_QUESTION = 'There is nothing to confirm. Tell me what to do, or say "help".'
NO_VERB = 'What shall I do with it? Say, for example, "complete milk" or "delete milk".'
FIRST_TIME = (
    "I do not know when you did it last, so it is due today for the first time; then it counts from when it is done."
)
TIME_IS_TEXT = "I did not understand the time: it stands in the words of the task."
OTHER_CLOCK = "I know the time of one place only, which is yours: say it by your own clock. I have done nothing."
NOTHING_RINGS = "Nothing rings at that time: it stands in the list as the date of the task."
CALENDAR_RINGS = (
    "Nothing here rings, but a calendar program that reads your calendar does, for what has a clock time; a phone "
    "needs an address that it can reach."
)
NO_REMINDER = "I cannot remind you at a time."
NO_BULK = 'I complete or delete only tasks that you name. Say, for example, "complete milk and bread".'
NO_SUBJECT = "Which task? Say words of its title."
NO_TITLE = 'What shall I add? Say, for example, "add buy milk".'
NO_NEW_VALUE = 'Say which task you mean and what it is to become, for example "rename milk to oat milk".'
NO_NEW_DATE = 'Which task, and to which day? Say, for example, "move dentist to Friday" or "snooze dentist by a week".'
NO_PRIORITY = 'Say which task and how much it matters, for example "make dentist high priority".'
NO_LABEL = 'Say which label, for example "tag gym with health".'
SAY_YES = 'Say "yes" to delete what is shown.'
SAY_YES_TO_COMPLETE = 'Shall I complete task {id}? Say "yes" to complete it.'
ONE_AT_A_TIME = 'I let an agent do one task at a time: say "do task 3", with its number.'
TOO_MANY = "That is more than I do at once: name at most {limit} tasks in one message. I have left that undone."
NO_MEMBERS = 'I found no open task for "{group}".'
NONE_CHANGED = "So I changed none of them."
NONE_DELETED = "So I deleted none of them."
CANCEL = 'Say "delete" and its name to take a task off the list, or "add cancel …" if you are to cancel something.'
LEFT_ALONE = "All right, I leave everything as it is."
# Listed as tasks are: no box is shown below an answer whose list names none.
MISSING = 'I found no {among} that matches "{phrase}". To see every task, say:\n\n- show all'
NOT_ALL_READ = (
    'Of many tasks with such words I found none that matches "{phrase}": say more of its title.\n\n- show all'
)
NOT_WITH_TOOLS = "I cannot do that here: the tool {tool} was not offered to me."
STOPPED = "I stop here: that took {steps} steps with tools, which is as many as I take for one message."
ADDED = "Added {count}."
LABELLED = 'Added {count} with the label "{value}".'
NOTED = f"{ADDED}\n\n{TIME_IS_TEXT}"
REMINDED = f"{NOTED} {NO_REMINDER}"
WITH_DATE = {NOTED: ADDED, REMINDED: f"{ADDED}\n\n{NOTHING_RINGS}"}
"""What is said instead when the time was understood."""
CHANGED = "Changed {count}."
RENAMED = "Renamed to {tasks}."
PRIORITY = "Changed {count} to {value} priority."
TAGGED = 'Put the label "{value}" on {count}.'
UNTAGGED = 'Took the label "{value}" off {count}.'
COMPLETED = "Completed {tasks}."
REOPENED = "Opened {tasks} again."
DELETED = "Deleted {tasks}."
DELETED_ALL = "Deleted {count}."
BROUGHT_BACK = "Brought {tasks} back."
TAKEN_BACK = "Took back the last change: {tasks}."
BY_TOOL = {"add_task": ADDED, "update_task": CHANGED, "complete_task": COMPLETED, "delete_task": DELETED}
UNDONE = {
    "add_task": "Took {tasks} off the list again.",
    "update_task": "Changed {tasks} back.",
    "complete_task": "Took that back: {tasks}.",
    "delete_task": BROUGHT_BACK,
}
NOTHING_TO_UNDO = "There is nothing to take back: I have changed nothing in this conversation."
NOTHING_DELETED = "There is nothing to bring back: you have deleted nothing in the last 30 days."
NOTHING_LEFT = "Nothing is left to do: you have no open tasks."
NOTHING_TODAY = 'Nothing is due today. Say "show my tasks" for all that are open.'
NONE_DONE = "You have not completed any task yet."
MORE = '; say "more" for the rest.'
NO_MORE = 'There is nothing more to show. Say "show all" to see every task.'

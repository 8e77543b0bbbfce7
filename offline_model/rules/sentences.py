"""What the offline model says."""

ABOUT = 'I am the offline model and follow simple rules. Say "help" to see what I can do.'
CANNOT = {
    "reminders": 'I can\'t send reminders yet. Say "add call mum on Friday" to add a task with a date.',
}
"""What is said in the place of what a task may have one day; the help names each."""
HELP = f"""I am the offline model. I follow simple rules and know only your tasks. You can say, for example:

- add buy milk and call mum
- add milk, eggs and bread to shopping
- add dentist tomorrow at 3pm / water the plants every Monday / move dentist to Friday / what's due today?
- move everything due today to tomorrow / snooze dentist by a week / skip the plants this week
- no, I meant Wednesday / mark them done / complete the first two
- make dentist high priority / tag gym with health / stop repeating the plants
- what is on my list? / what's overdue? / show my work tasks / find milk / what did I do last week? / more
- the milk is done / I finished all the shopping / the milk is not done yet
- rename milk to oat milk / describe milk as two litres
- do task 3: for "write a shopping list for pancakes to shopping.md" or "count the words of notes.txt"
- delete the milk task / delete all done tasks / undo / bring back the milk

I can't send {" or ".join(CANNOT)} yet, and I can't talk about anything else.

To talk to an AI model, set `CEREBRAS_API_KEY`, or `LLM_PROVIDER` and the key of that provider, and restart."""
GREETING = 'Hello! I am the offline model and keep your to-do list. Say "add buy milk", or "help" to see what I can do.'
NOT_DONE = "Not done."
I_AM = 'I am the offline model: simple rules, not a person and not an AI. Say "help" to see what I can do.'
NO_MEMORY = 'I don\'t remember what I did before. I only know your list as it is now. Say "show all" to see it.'
TOO_LONG = "Your message is too long for me, so I did nothing. Keep it below {limit:,} characters."
WELCOME = "You are welcome."
BYE = "Goodbye."
ANSWER_IT = "Please choose one by its number, or say no."
NO_QUESTION = 'There is nothing to confirm. Tell me what to do, or say "help".'
NO_VERB = 'What should I do with it? Say, for example, "complete milk" or "delete milk".'
FIRST_TIME = (
    "I don't know when you last did it, so it is due today. After that, the next date counts from the day you "
    "complete it."
)
NOT_UNDERSTOOD = "I did not understand {words} as a date, so I left it in the title."
OTHER_WEEKDAY = '"{words}" does not exist: {reason} I added nothing. Say which day you mean.'
OTHER_CLOCK = "I only know the time in your own time zone, so I did nothing. Say the time as your own clock shows it."
NO_REMINDER = "I can't send reminders yet."
DATE_ONLY = "I can't send reminders yet; the due date is on your list."
CALENDAR_REMINDS = (
    "I can't send reminders yet, but a calendar app that subscribes to your calendar link reminds you of tasks with a "
    "time."
)
NO_BULK = (
    'I can\'t do that to your whole list. Name the tasks by their titles, or a group such as "everything due today".'
)
NO_SUBJECT = "Which task do you mean? Say words from its title."
NO_TITLE = 'What shall I add? Say, for example, "add buy milk".'
NO_NEW_VALUE = 'Say which task you mean and what it should become, for example "rename milk to oat milk".'
NO_NEW_DATE = 'Which task, and to which day? Say, for example, "move dentist to Friday" or "snooze dentist by a week".'
NO_PRIORITY = 'Say which task and which priority, for example "make dentist high priority".'
NO_SORTING = (
    'I can\'t sort your list. Say "what is due this week?" to see tasks by date, or "what should I do first?" to see '
    "them by priority."
)
NO_LABEL = 'Say which label, for example "tag gym with health".'
SAY_YES = 'Say "yes" to delete what is shown.'
SAY_YES_TO_COMPLETE = 'Shall I complete task {id}? Say "yes" to complete it.'
ONE_AT_A_TIME = 'An agent can work on one task at a time. Say "do task 3", with the number of the task.'
TOO_MANY = "That is too much at once, so I did not do it. Name up to {limit} tasks in one message."
NO_MEMBERS = 'I found no open task for "{group}".'
NONE_CHANGED = "I changed nothing."
NONE_DELETED = "I deleted nothing."
CANCEL = 'Say "delete" and the title to delete a task, or "add cancel …" to add a task about cancelling something.'
LEFT_ALONE = "All right, I changed nothing."
# Listed as tasks are: no box is shown below an answer whose list names none.
MISSING = 'I found no {among} that matches "{phrase}". To see every task, say:\n\n- show all'
NOT_ALL_READ = (
    'Many tasks have such words, but I found none that matches "{phrase}". Say more of its title.\n\n- show all'
)
NOT_WITH_TOOLS = "I can't do that here, because the tool {tool} is not available."
STOPPED = "I stopped after {steps} steps, the most that I take for one message. Tell me what is still to do."
ADDED = "Added {count}."
LABELLED = 'Added {count} with the label "{value}".'
REMINDED = f"{ADDED}\n\n{NO_REMINDER}"
WITH_DATE = {REMINDED: f"{ADDED}\n\n{DATE_ONLY}"}
"""What is said instead when the time was understood."""
CHANGED = "Changed {count}."
RENAMED = "Renamed to {tasks}."
PRIORITY = "Changed {count} to {value} priority."
TAGGED = 'Added the label "{value}" to {count}.'
UNTAGGED = 'Removed the label "{value}" from {count}.'
COMPLETED = "Completed {tasks}."
REOPENED = "Reopened {tasks}."
DELETED = "Deleted {tasks}."
DELETED_ALL = "Deleted {count}."
BROUGHT_BACK = "Restored {tasks}."
TAKEN_BACK = "Undid the last change to {tasks}."
BY_TOOL = {"add_task": ADDED, "update_task": CHANGED, "complete_task": COMPLETED, "delete_task": DELETED}
UNDONE = {
    "add_task": "Removed {tasks} again.",
    "update_task": "Undid the change to {tasks}.",
    "complete_task": "Reopened {tasks}.",
    "delete_task": BROUGHT_BACK,
}
NOTHING_TO_UNDO = "There is nothing to undo. I have changed nothing in this conversation."
NOTHING_DELETED = "There is nothing to restore. You have deleted nothing in the last 30 days."
NOTHING_LEFT = "You have no open tasks."
NOTHING_TODAY = 'Nothing is due today. Say "show my tasks" to see all open tasks.'
NONE_DONE = "You have not completed any tasks yet."
MORE = '; say "more" for the rest.'
NO_MORE = 'There is nothing more to show. Say "show all" to see every task.'

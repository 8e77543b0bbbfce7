// @ts-check
import { counted } from "./words.js";
/** @import {View} from "./tasks/types" */

/** @param {number} count @param {string} one */
const number = (count, one) => `${counted(count)} ${count === 1 ? one : `${one}s`}`;

/** What the page says in English. What the list understands is in tasks/language; nothing of a person's is here. */
export const TEXTS = {
  name: "To-do assistant",
  tasks: "Tasks",
  chat: "Chat",
  tabs: "Shown",
  menu: "Menu",
  theme: { title: "Theme", system: "System", light: "Light", dark: "Dark" },
  remind: "Notify me of due tasks",
  remindRefused: "The browser does not let this page notify you. Its settings for this page can change that.",
  remindImpossible: "This browser lets no page notify you.",
  signOut: "Sign out",
  stillSignedIn: "You are still signed in: the server cannot be reached.",
  unreachable: "The server cannot be reached.",
  about: {
    title: "About this assistant",
    offline: "Offline model, no AI",
    offlineShort: "No AI",
    offlineMeans: "The offline model answers: plain rules, not an AI.",
    /** @param {string} name */
    model: (name) => `Answers come from the model ${name}.`,
    setUp: "Set up a model",
    setUpHow: "Write three lines into the file .env beside ./todo, and start it again:",
    setUpLines: "LLM_PROVIDER=cerebras\nLLM_API_KEY=your key\nLLM_MODEL=gpt-oss-120b",
    setUpElse:
      "openai, anthropic and ollama are other providers; ollama, a model on your own machine, needs no key. The file .env.example has the rest.",
    unchecked: "Nobody is checked here: whoever reaches this address is its one person.",
    /** @param {string | null} confinement */
    agents: (confinement) => `Agents can carry tasks out. What confines their commands: ${confinement === "none" ? "nothing, so you are asked about each" : (confinement ?? "nothing, so there are none")}.`,
    noAgents: "Agents are off.",
    checked: "Everybody signs in here, and sees only what is theirs.",
  },
  start: {
    greeting: "What is there to do?",
    placeholder: "Add, finish or ask about tasks",
    add: "Add call the bank today and buy milk",
    list: "What is on my list?",
    done: "What have I done?",
  },
  days: { today: "Today", yesterday: "Yesterday", thisWeek: "This week" },
  history: {
    title: "Conversations",
    search: "Search conversations",
    none: "There are no conversations yet.",
    notFound: "No conversation has this in its title.",
    more: "Show more",
    untitled: "Untitled",
    rename: "Rename",
    remove: "Delete",
    answered: "Being answered",
    titleField: "Title",
    askBefore: "Delete “",
    askAfter: "”? Its messages are gone then; your tasks stay.",
  },
  close: "Close",
  copy: "Copy",
  copied: "Copied.",
  save: "Save",
  cancel: "Cancel",
  dismiss: "Dismiss",
  tryAgain: "Try again",
  talk: {
    title: "Conversation",
    begin: "New conversation",
    gone: "That conversation is not there any more. This is a new one.",
    closed: "This conversation is closed.",
    older: "Show older",
    newest: "Newest",
    loading: "Loading…",
    you: "You",
    assistant: "Assistant",
    sources: "Sources",
    message: "Message",
    send: "Send",
    stop: "Stop",
    queue: "Queue",
    queueWhen: "Send after this answer",
    queued: "This message waits until the answer is done.",
    /** @param {number} length @param {number} longest */
    length: (length, longest) => `${counted(length)} of ${counted(longest)} characters`,
    answerAgain: "Answer again",
    good: "Good answer",
    poor: "Poor answer",
    copyCode: "Copy code",
    notCopied: "The browser did not let this page copy.",
    stopped: "The answer was stopped.",
    goOn: "Continue",
    goOnMessage: "Continue where you stopped.",
    noAnswer: "This message has no answer.",
    thinks: "Thinking",
    thinking: "Thinking…",
    working: "Working…",
    /** @param {number} seconds */
    thought: (seconds) => `Thought for ${seconds} s`,
    done: "Done",
    notDone: "Not done",
    image: "Generated image",
    imageComes: "An image is being made.",
    /** @param {number} count */
    selected: (count) => `${count} ${count === 1 ? "task" : "tasks"} selected`,
    /** @param {number} most */
    atMost: (most) => `(${most} at most)`,
    unselect: "Send without them",
    /** @param {number} count */
    named: (count) => `${count} tasks`,
    /** @param {string} [name] */
    step: (name = "unnamed") => `A step in the browser: ${name}`,
    /** @param {string} type */
    unknown: (type) => `This kind of item cannot be shown here: ${type}`,
    otherTab: "Being answered in another tab…",
    looking: "Looking whether the message arrived…",
    notSent: "This message was not sent.",
    wrong: "Something went wrong.",
    slow: "This is taking longer than usual…",
    lost: "The connection to the server is lost.",
    connectionLost: "Connection lost. Trying again…",
    connectionBack: "Connected again.",
    /** @param {number} status */
    status: (status) => `The server answered with status ${status}.`,
  },
  work: {
    /** @param {string} who */
    works: (who) => `${who}: working…`,
    /** @param {string} who */
    interrupted: (who) => `${who}: interrupted`,
    output: "Output",
    errors: "Errors",
    nothing: "No output.",
  },
  files: {
    title: "Files",
    add: "Add files",
    /** @param {number} bytes */
    size: (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`),
    /** @param {string} name */
    save: (name) => `Download ${name}`,
    /** @param {string} name */
    remove: (name) => `Delete ${name}`,
    /** @param {string} name */
    ask: (name) => `Delete ${name} for good?`,
    /** What is said with files alone. */
    look: "Look at the files I added.",
    /** @param {string} name */
    leave: (name) => `Leave out ${name}`,
    /** @param {string} size */
    tooLarge: (size) => `A file has at most ${size}.`,
    /** @param {string[]} names */
    said: (names) => `${names.length === 1 ? "File" : "Files"}: ${names.join(", ")}`,
  },
  delegate: "Let an agent do it",
  /** What is said then, as the assistant understands it. @param {number} id */
  doTask: (id) => `do task ${id}`,
  queue: {
    title: "Not read yet",
    sending: "Sending…",
    queued: "Waits until this answer is done.",
    next: "Is read next.",
    unsent: "Not sent.",
    sendNow: "Send now",
    sendAgain: "Send again",
    remove: "Remove",
  },
  versions: {
    title: "Versions",
    previous: "Previous version",
    next: "Next version",
    /** @param {number} number @param {number} count */
    place: (number, count) => `${number} of ${count}`,
    /** @param {number} number @param {number} count */
    number: (number, count) => `Version ${number} of ${count}`,
    begin: "Edit",
    edit: "Edit your message",
    field: "Your message",
  },
  card: {
    open: "Show in the list",
    title: "Card",
    list: "Task list",
    more: "Show more",
    done: "Done",
    /** @param {string} date */
    next: (date) => `next on ${date}`,
  },
  chats: {
    builtIn: "Built-in chat",
    builtInMeanwhile: "Built-in chat. OpenAI's widget is being loaded…",
    loading: "Loading OpenAI's widget…",
    widget: "OpenAI's ChatKit widget",
    useWidget: "Use OpenAI's widget",
    useBuiltIn: "Use the built-in chat",
    /** @param {string} reason */
    fallBack: (reason) => `OpenAI's widget could not be loaded (${reason}), so this is the built-in chat.`,
    /** Why not. */
    late: "too late",
    away: "it went away",
    empty: "it shows nothing",
    refused: "its domain check refused this address",
    unloaded: "its script could not be loaded",
    failed: "it failed",
    /** @param {number} seconds */
    slow: (seconds) => `it was not ready within ${seconds} seconds`,
  },
  calendar: {
    title: "Calendar",
    about:
      "A calendar program that subscribes to your address shows your dated tasks, and rings for those with a time. Whoever has the address can read them. A phone needs one that it can reach.",
    address: "Your address, which is shown only now",
    notCopied: "The browser does not let it be copied: select it and copy it yourself.",
    replaces: "It replaces any older one.",
    active: "You have an address. A new one replaces it.",
    none: "You have no address.",
    revoke: "Revoke",
    make: "Make an address",
    another: "Make a new address",
  },
  memory: {
    title: "Memory",
    about: "What you write here the assistant reads with every message: notes on you and how you like things. Nobody else writes it.",
    saved: "Saved.",
    /** @param {number} read @param {number} lines */
    tooLong: (read, lines) => `The assistant reads the first ${counted(read)} of ${number(lines, "line")}: the rest does not fit.`,
    changed: "It was changed elsewhere meanwhile. Your text is still here: saving it now replaces the other.",
    other: "What it says now",
  },
  signIn: {
    title: "Sign in to see your tasks.",
    how: ["Your identity provider's token is exchanged for a session at ", "; whoever runs this server connects the two."],
    token: "Token",
    refused: "This token is not valid here, or not any more.",
    enter: "Sign in",
  },
  spoken: {
    /** @param {string} parts */
    answer: (parts) => `Assistant: ${parts}`,
    ended: "The answer has ended.",
    done: "done",
    reopened: "open again",
    /** @param {number} count */
    more: (count) => `and ${counted(count)} more`,
  },
};

/** What the list of tasks says. */
export const LIST = {
  /** @param {number} count */
  tasks: (count) => number(count, "task"),
  views: /** @type {Record<View, string>} */ ({ today: "Today", upcoming: "Upcoming", all: "All", done: "Done", deleted: "Deleted" }),
  viewsName: "Views",
  add: "Add a task",
  addHint: "Add a task: “call mum friday 3pm #home”",
  addButton: "Add",
  notThis: "Leave it in the title",
  /** @param {string} day */
  nextOne: (day) => `next ${day}`,
  tooLong: "A title has at most 200 characters.",
  noTitle: "It needs a title, too.",
  search: "Search tasks",
  filter: "Filter",
  label: "Label",
  anyLabel: "Any label",
  priority: "Priority",
  anyPriority: "Any priority",
  priorities: { high: "High", medium: "Medium", low: "Low", none: "None" },
  clearFilter: "Clear",
  select: "Select tasks",
  endSelection: "End selection",
  /** @param {number} count */
  selected: (count) => `${counted(count)} selected`,
  complete: "Complete",
  move: "Move to…",
  moveOne: "Change the date",
  remove: "Delete",
  restore: "Restore",
  undo: "Undo",
  /** @param {string} title */
  tick: (title) => `Done: ${title}`,
  /** @param {string} title */
  selectOne: (title) => `Select ${title}`,
  /** @param {string} day */
  addOn: (day) => `Add a task for ${day}`,
  nothingOn: "Nothing planned",
  overdue: "Overdue",
  editing: { title: "Title", description: "Description", date: "Date", time: "Time", repeat: "Repeat", labels: "Labels" },
  descriptionHint: "Description",
  repeatHint: "every Monday",
  labelsHint: "home, work",
  repeatUnknown: "This repeat is not understood: try “every Monday” or “every 2 weeks”.",
  titleNeeded: "A task needs a title.",
  timeNeedsDate: "A time needs a date, too.",
  repeatNeedsDate: "A repeat needs a date, too.",
  moveIt: "Move",
  showIt: "Show",
  /** @param {string} title */
  movingOne: (title) => `When is “${title}” due?`,
  /** @param {number} count */
  movingMany: (count) => `Move ${number(count, "task")} to`,
  dateWords: "Date in words",
  dateWordsHint: "friday, in 3 days, 5 dec 3pm",
  pickDay: "Pick a day",
  noDate: "No date",
  nextWeek: "Next week",
  notUnderstood: "This is no date that the list knows: try “friday” or “in 3 days”.",
  /** @param {number} total */
  found: (total) => (total === 0 ? "No task fits." : `${number(total, "task")} found.`),
  loading: "Loading tasks…",
  lost: "The server cannot be reached. Trying again…",
  /** @param {number} count */
  unsaved: (count) => `${number(count, "change")} will be saved then.`,
  problem: "The list could not be read.",
  chartTitle: "done in the last four weeks",
  /** @param {string} sum @param {string} best @param {string} most @param {string} today */
  chart: (sum, best, most, today) => `Done in the last four weeks: ${sum}. Most on ${best}: ${most}. Today: ${today}.`,
  was: {
    added: "Added",
    completed: "Completed",
    reopened: "Open again",
    deleted: "Deleted",
    restored: "Restored",
    changed: "Changed",
    undone: "Taken back",
    /** @param {string} day */
    moved: (day) => `Moved to ${day}`,
    undated: "Date taken away",
  },
  empty: /** @type {Record<View, [string, string]>} */ ({
    today: ["Nothing is due today", "What is due today or overdue shows up here; the rest is under Upcoming and All."],
    upcoming: ["Nothing is coming up", "Add a task with a day, such as “dentist friday 3pm”."],
    all: ["No open tasks", "Write one above, or say it in the chat."],
    done: ["Nothing is done yet", "What you tick off is kept here."],
    deleted: ["Nothing was deleted", "Deleted tasks stay here for 30 days."],
  }),
  emptyFound: ["No task fits", "Other words, or fewer filters, may find it."],
};

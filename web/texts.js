// @ts-check
import { counted } from "./words.js";
/** @import {View} from "./tasks/types" */

/** @param {number} count @param {string} one */
const number = (count, one) => `${counted(count)} ${count === 1 ? one : `${one}s`}`;

/** The texts of the page. */
export const TEXTS = {
  name: "To-do assistant",
  tasks: "Tasks",
  chat: "Chat",
  tabs: "Tasks or chat",
  menu: "Menu",
  theme: { title: "Theme", system: "System", light: "Light", dark: "Dark" },
  remind: "Remind me while this page is open",
  remindDenied: "Notifications are blocked. Allow them for this page in your browser's settings.",
  remindImpossible: "This browser cannot show notifications for this page.",
  /** @param {number} used @param {number | null} limit */
  tokens: (used, limit) => `Tokens today: ${counted(used)}${limit === null ? "" : ` of ${counted(limit)}`}`,
  signOut: "Sign out",
  stillSignedIn: "Could not sign you out: the server is unreachable. Try again.",
  unreachable: "Cannot reach the server. Check your connection and try again.",
  about: {
    title: "About this assistant",
    offline: "Basic mode · Add AI",
    offlineShort: "Add AI",
    offlineMeans: "Basic mode (the offline model) follows simple rules and uses no AI. It understands short requests in English.",
    /** @param {string} name */
    model: (name) => `Answers come from the AI model ${name}.`,
    /** @param {string} name */
    limited: (name) => `Limited · ${name}`,
    limitedShort: "Limited",
    writesCalls: "This model does not call tools: it writes its calls as text. Answers can be slower and less exact.",
    setUp: "Add an AI model",
    setUpHow: "Add these lines to the file .env next to ./todo, then restart ./todo up:",
    setUpLines: "LLM_PROVIDER=cerebras\nLLM_API_KEY=your key\nLLM_MODEL=gpt-oss-120b",
    setUpElse:
      "Other providers are openai, anthropic and ollama. Ollama runs on your own machine and needs no key. All settings are in .env.example.",
    unchecked: "No sign-in: anyone who can open this page can see and change these tasks.",
    /** @param {string | null} confinement */
    agents: (confinement) => {
      if (!confinement) return "Agents can read and write files. They cannot run commands on this machine.";
      if (confinement === "none") return "Agents can work on tasks. Their commands run without a sandbox, so you are asked before each one.";
      return `Agents can work on tasks. Their commands run in a sandbox (${confinement}).`;
    },
    noAgents: "Agents are off.",
    checked: "Users sign in and see only their own tasks.",
  },
  start: {
    greeting: "What needs doing?",
    placeholder: "Add or ask about tasks",
    add: "Call the bank today and buy milk",
    list: "What is on my list?",
    done: "What did I finish this week?",
  },
  days: { today: "Today", yesterday: "Yesterday", thisWeek: "This week" },
  history: {
    title: "Conversations",
    search: "Search conversations",
    none: "No conversations yet.",
    notFound: "No conversation title matches.",
    more: "Show more",
    untitled: "Untitled",
    rename: "Rename",
    remove: "Delete",
    answered: "The assistant is answering",
    titleField: "Title",
    askBefore: "Delete “",
    askAfter: "”? Its messages will be deleted. Your tasks are kept.",
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
    gone: "That conversation no longer exists, so a new one was started.",
    closed: "This conversation is closed.",
    older: "Show older messages",
    newest: "Newest messages",
    loading: "Loading…",
    you: "You",
    assistant: "Assistant",
    sources: "Sources",
    message: "Message",
    send: "Send",
    stop: "Stop",
    queue: "Send next",
    queueWhen: "Send after this answer",
    queued: "Your message will be sent after this answer.",
    /** @param {number} length @param {number} longest */
    length: (length, longest) => `${counted(length)} of ${counted(longest)} characters`,
    /** @param {number} longest */
    tooLong: (longest) => `That text was not added: a message has at most ${counted(longest)} characters. Shorten it first.`,
    answerAgain: "Answer again",
    good: "Good answer",
    poor: "Poor answer",
    copyCode: "Copy code",
    notCopied: "Could not copy. Select the text and copy it yourself.",
    stopped: "You stopped this answer.",
    goOn: "Continue",
    goOnMessage: "Continue where you stopped.",
    noAnswer: "This message was not answered.",
    thinks: "Thinking",
    thinking: "Thinking…",
    working: "Working…",
    correcting: "Correcting this answer…",
    /** @param {number} seconds */
    clock: (seconds) => `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`,
    /** @param {number} seconds */
    thought: (seconds) => `Thought for ${seconds} s`,
    done: "Done",
    notDone: "Not done",
    image: "Generated image",
    imageComes: "Creating an image…",
    /** @param {number} count */
    selected: (count) => `${count} ${count === 1 ? "task" : "tasks"} selected`,
    /** @param {number} most */
    atMost: (most) => `(${most} at most)`,
    unselect: "Send without them",
    /** @param {number} count */
    named: (count) => `${count} tasks`,
    /** @param {string} [name] */
    step: (name = "no name") => `Browser step: ${name}`,
    /** @param {string} type */
    unknown: (type) => `This page cannot show this kind of message: ${type}`,
    otherTab: "The assistant is answering in another tab…",
    looking: "Checking whether your message was sent…",
    notSent: "Your message was not sent.",
    wrong: "Something went wrong. Try again.",
    slow: "This is taking longer than usual…",
    lost: "The connection was lost.",
    connectionLost: "Connection lost. Reconnecting…",
    connectionBack: "Connected again.",
    /** @param {number} status */
    status: (status) => `The server reported an error (status ${status}). Try again.`,
  },
  work: {
    /** @param {string} who */
    works: (who) => `${who}: working…`,
    /** @param {string} who */
    interrupted: (who) => `${who}: did not finish`,
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
    ask: (name) => `Delete ${name}? You cannot undo this.`,
    /** The message if only files are sent. */
    look: "Look at the files I added.",
    /** @param {string} name */
    leave: (name) => `Remove ${name}`,
    /** @param {string} size */
    tooLarge: (size) => `This file is too large. Files can have up to ${size}.`,
    /** @param {string[]} names */
    said: (names) => `${names.length === 1 ? "File" : "Files"}: ${names.join(", ")}`,
  },
  delegate: "Ask an agent to do it",
  /** The text that the assistant reads. @param {number} id */
  doTask: (id) => `do task ${id}`,
  queue: {
    title: "Waiting messages",
    sending: "Sending…",
    queued: "Will be sent after this answer.",
    next: "The assistant reads this next.",
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
    changes: "What this answer changed",
    list: "Task list",
    more: "Show more",
    done: "Done",
    /** @param {string} date */
    next: (date) => `next: ${date}`,
  },
  widget: {
    builtIn: "Built-in chat",
    loading: "Loading OpenAI's chat…",
    openai: "OpenAI's chat (ChatKit)",
    use: "Use OpenAI's chat",
    useBuiltIn: "Use the built-in chat",
    /** @param {string} reason */
    unavailable: (reason) => `OpenAI's chat is unavailable: ${reason}.`,
    /** Reasons. */
    away: "it was removed from the page",
    empty: "it stayed empty",
    notAllowed: "OpenAI does not allow this address",
    unloaded: "its script did not load",
    failed: "it failed",
    /** @param {number} seconds */
    slow: (seconds) => `it was not ready within ${seconds} seconds`,
  },
  calendar: {
    title: "Calendar",
    about:
      "Subscribe to your calendar link in Google, Apple or Outlook to see tasks with dates there, with reminders for those that have a time. Anyone with the link can read them. The calendar must be able to reach this server.",
    address: "Copy this link now. It won't be shown again.",
    notCopied: "Could not copy. Select the link and copy it yourself.",
    replaces: "Older links have stopped working.",
    active: "You have a link. If you create a new one, the old one stops working.",
    none: "You have no calendar link yet.",
    revoke: "Turn off the link",
    make: "Create a link",
    another: "Create a new link",
    ask: "Create a new link? Calendars that use the old link stop updating.",
    replace: "Replace the old link",
  },
  memory: {
    title: "Memory",
    about: "The assistant reads these notes before every answer: what it should know about you and how you like things. Only you can change them.",
    saved: "Saved.",
    /** @param {number} read @param {number} lines */
    tooLong: (read, lines) => `Too long: the assistant reads only the last ${counted(read)} of ${number(lines, "line")}.`,
    changed: "These notes were changed in another window. Saving now replaces that version with yours.",
    other: "The other version",
    unsaved: "Not saved yet.",
    discard: "Discard",
    kept: "Your changes to the memory are not saved yet. Open Memory to save or discard them.",
  },
  signIn: {
    title: "Sign in to see your tasks.",
    how: "Paste your access token. If you have none, ask the person who runs this server.",
    token: "Access token",
    rejected: "This token is not valid, or it has expired. Get a new one and try again.",
    enter: "Sign in",
  },
  spoken: {
    /** @param {string} parts */
    answer: (parts) => `Assistant: ${parts}`,
    ended: "The answer is complete.",
    done: "done",
    reopened: "reopened",
    /** @param {number} count */
    more: (count) => `and ${counted(count)} more`,
  },
};

/** The texts of the list of tasks. */
export const LIST = {
  /** @param {number} count */
  tasks: (count) => number(count, "task"),
  views: /** @type {Record<View, string>} */ ({ today: "Today", upcoming: "Upcoming", all: "All", done: "Done", deleted: "Deleted" }),
  viewsName: "Views",
  add: "Add a task",
  addHint: "Add a task: “call mum friday 3pm #home”",
  addButton: "Add",
  /** @param {string} title @param {string} reason */
  notAdded: (title, reason) => `“${title}” was not added. ${reason}`,
  aside: "Not added",
  editAgain: "Edit",
  notThis: "Not a date: keep it in the title",
  /** @param {string} day */
  nextOne: (day) => `next: ${day}`,
  /** @param {string} words */
  notADate: (words) => `“${words}” is not understood as a date.`,
  search: "Search tasks",
  filter: "Filter",
  label: "Label",
  anyLabel: "Any label",
  priority: "Priority",
  anyPriority: "Any priority",
  clearFilter: "Clear filters",
  select: "Select tasks",
  endSelection: "Stop selecting",
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
  moveIt: "Move",
  showIt: "Show",
  /** @param {string} title */
  movingOne: (title) => `When is “${title}” due?`,
  /** @param {number} count */
  movingMany: (count) => `Move ${number(count, "task")} to`,
  dateWords: "Type a date",
  dateWordsHint: "friday, in 3 days, 5 dec 3pm",
  pickDay: "Pick a day",
  noDate: "No date",
  nextWeek: "Next week",
  notUnderstood: "I don't recognise that date. Try “friday” or “in 3 days”.",
  /** @param {number} total */
  found: (total) => (total === 0 ? "No tasks match." : `${number(total, "task")} found.`),
  loading: "Loading tasks…",
  lost: "Cannot reach the server. Reconnecting…",
  /** @param {number} count */
  unsaved: (count) => `${number(count, "change")} will be saved once you are connected.`,
  problem: "Your tasks could not be loaded.",
  chartTitle: "done in the last four weeks",
  /** @param {string} sum @param {string} best @param {string} most @param {string} today */
  chart: (sum, best, most, today) => `Done in the last four weeks: ${sum}. Most on ${best}: ${most}. Today: ${today}.`,
  was: {
    added: "Added",
    completed: "Completed",
    reopened: "Reopened",
    deleted: "Deleted",
    restored: "Restored",
    changed: "Changed",
    undone: "Undone",
    /** @param {string} day */
    moved: (day) => `Moved to ${day}`,
    undated: "Date removed",
    /** @param {string} title */
    discarded: (title) => `Changes to “${title}” discarded.`,
  },
  empty: /** @type {Record<View, [string, string]>} */ ({
    today: ["Nothing is due today", "You're clear for today. Your other tasks are in Upcoming and All."],
    upcoming: ["Nothing is coming up", "Add a task with a date, such as “dentist friday 3pm”."],
    all: ["No open tasks", "Add one above, or ask the assistant."],
    done: ["Nothing done yet", "Completed tasks show up here."],
    deleted: ["Nothing deleted", "Deleted tasks stay here for 30 days."],
  }),
  emptyFound: ["No matches", "Try other words, clear the filters, or search in another view."],
};

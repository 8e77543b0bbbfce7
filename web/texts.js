// @ts-check
import { counted } from "./words.js";
/** @import {Sort, View} from "./tasks/types" */

/** @param {number} count @param {string} one */
const number = (count, one) => `${counted(count)} ${count === 1 ? one : `${one}s`}`;

/** The texts of the page. */
export const TEXTS = {
  name: "To-do assistant",
  tasks: "Tasks",
  foldAssistant: "Hide the assistant",
  showAssistant: "Show the assistant",
  backToTasks: "Back to the tasks",
  labels: "Labels",
  moreLabels: "More labels",
  fewerLabels: "Fewer labels",
  allConversations: "All conversations",
  /** @param {string | null} user */
  signedInAs: (user) => `Signed in as ${user}`,
  search: "Search tasks",
  menu: "Menu",
  theme: { title: "Theme", system: "System", light: "Light", dark: "Dark" },
  alerts: "Notifications",
  /** @param {number} used @param {number | null} limit */
  tokens: (used, limit) => `Tokens today: ${counted(used)}${limit === null ? "" : ` of ${counted(limit)}`}`,
  chatUnreachable: "The assistant cannot be loaded: the server does not respond. Trying again…",
  newVersion: "A new version is ready.",
  reload: "Reload",
  insecure: "Without https, this page cannot be used offline or notify you while it is closed. Open it by https or on localhost.",
  missing: { text: "There is nothing at this address.", link: "Go to your tasks" },
  signOut: "Sign out",
  stillSignedIn: "Could not sign you out: the server is unreachable. Try again.",
  signOutDialog: {
    title: "Sign out?",
    /** @param {string[]} parts @param {boolean} many */
    unsaved: (parts, many) => {
      const list = parts.length > 1 ? `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}` : (parts[0] ?? "nothing");
      return `${list[0].toUpperCase()}${list.slice(1)} ${many ? "are" : "is"} not saved yet.`;
    },
    kept: "What cannot be sent stays in this browser until you sign in again, unless you discard it.",
    send: "Send",
    sending: "Sending…",
    discard: "Discard",
    rejected: "Something was rejected. Cancel to see and change it, or discard it.",
    unreachable: "Not everything could be sent: the server does not answer. Check your connection and try again.",
  },
  notOpened: "This cannot be opened: the server cannot be reached, or has a new version. Try again, or reload the page.",
  unreachable: "Cannot reach the server. Check your connection and try again.",
  about: {
    title: "About this assistant",
    offline: "Basic mode · Add AI",
    offlineMeans: "Basic mode (the offline model) follows simple rules and uses no AI. It understands short requests in English.",
    /** @param {string} name */
    model: (name) => `Answers come from the AI model ${name}.`,
    /** @param {string} name */
    limited: (name) => `Limited · ${name}`,
    writesCalls: "This model does not call tools: it writes its calls as text. Answers can be slower and less exact.",
    setUp: "Add an AI model",
    setUpHow: "Add these lines to the file .env next to ./todo, then restart ./todo up:",
    setUpLines: "LLM_PROVIDER=cerebras\nLLM_API_KEY=your key\nLLM_MODEL=gpt-oss-120b",
    setUpElse:
      "Other providers are openai, anthropic and ollama. Ollama runs on your own machine and needs no key. All settings are in .env.example.",
    unchecked: "No sign-in: anyone who can open this page can see and change these tasks.",
    linked: "No sign-in on this computer: whoever uses it can see and change these tasks. So can the devices that you link.",
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
  discard: "Discard",
  dismiss: "Dismiss",
  tryAgain: "Try again",
  talk: {
    title: "Conversation",
    begin: "New conversation",
    gone: "That conversation no longer exists, so a new one was started.",
    older: "Show older messages",
    newest: "Newest messages",
    loading: "Loading…",
    shownLater: "This conversation is shown once the server can be reached.",
    you: "You",
    assistant: "Assistant",
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
    /** @param {number} count */
    selected: (count) => `${count} ${count === 1 ? "task" : "tasks"} selected`,
    /** @param {number} most */
    atMost: (most) => `(${most} at most)`,
    unselect: "Send without them",
    /** @param {number} count */
    named: (count) => `${count} tasks`,
    /** @param {string} type */
    unknown: (type) => `This page cannot show this kind of message: ${type}`,
    otherTab: "The assistant is answering in another tab…",
    notSentYet: "Not sent yet",
    later: "Your message will be sent once you are connected.",
    old: "Not sent for more than eight days",
    earlier: "Not sent before you signed in",
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
    cutOff: "The upload was cut off.",
    gone: "This file is no longer there.",
    again: "Attach again",
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
  schedules: {
    title: "Schedules",
    about: "The assistant does these by itself, at the times that you say. It asks you before it does what needs your approval.",
    none: "Nothing is scheduled yet.",
    label: "What shall it do, and when?",
    example: "every Friday at 16:00 summarise what I did",
    onlyIfNeeded: "Tell me only if something needs my attention",
    add: "Add",
    added: "Added.",
    /** @param {string} when @param {string} next */
    understood: (when, next) => `${when}, for the first time ${next}`,
    /** @param {string} when @param {string} next */
    next: (when, next) => `${when}, next ${next}`,
    /** @param {string} when */
    paused: (when) => `${when}. Paused.`,
    /** @param {string} when */
    ended: (when) => `${when}. Ended.`,
    onlyReports: "You hear of it only if something needs your attention.",
    /** By the outcome of the last time. @type {Record<string, (when: string) => string>} */
    last: {
      running: (when) => `Running since ${when}.`,
      waiting: (when) => `Waits for your approval since ${when}.`,
      completed: (when) => `Done ${when}.`,
      failed: (when) => `Failed ${when}.`,
      cancelled: (when) => `Stopped ${when}.`,
      interrupted: (when) => `Interrupted ${when}.`,
    },
    /** @param {string} when @param {string} reason */
    skipped: (when, reason) => `Skipped ${when}: ${reason}`,
    answers: "Open the answers",
    do: { pause: "Pause", resume: "Resume", run: "Run now", remove: "Delete" },
    /** @param {string} button @param {string} text */
    ofOne: (button, text) => `${button}: ${text}`,
    /** What was done. */
    did: { pause: "Paused.", resume: "Resumed.", run: "Started.", remove: "Deleted." },
  },
  devices: {
    menu: "Devices",
    title: "Where you are signed in",
    current: "This browser",
    /** @param {string} when @param {string} begun */
    lastUsed: (when, begun) => `Last used ${when}, signed in ${begun}`,
    end: "End",
    /** @param {string} name @param {string} when @param {string} begun */
    endOne: (name, when, begun) => `End: ${name}, last used ${when}, signed in ${begun}`,
    endOthers: "End all others",
    /** Where nobody signs in, all others are all. */
    endAll: "End all",
    none: "No other device is linked.",
    ended: "Ended.",
  },
  accessTokens: {
    title: "Access tokens",
    about: "With a token, a program can do on your behalf what you choose here: a script, an MCP client, or a calendar, as its password.",
    made: "Copy this token now. It won't be shown again.",
    notCopied: "Could not copy. Select the token and copy it yourself.",
    name: "What is it for?",
    example: "Notebook",
    scopes: "It may",
    allows: {
      chat: "talk to the assistant, which can change your tasks",
      tasks: "read and change your tasks",
      "tasks:read": "read your tasks",
    },
    noScope: "Choose what the token may do.",
    expiry: "It expires in",
    /** @param {number} days */
    days: (days) => (days % 365 ? number(days, "day") : number(days / 365, "year")),
    make: "Make a token",
    neverUsed: "Never used.",
    /** @param {string} when */
    lastUsed: (when) => `Last used ${when}.`,
    /** @param {string} day */
    expires: (day) => `Expires ${day}.`,
    end: "End",
    /** @param {string} name */
    endOne: (name) => `End: ${name}`,
    ended: "Ended.",
  },
  profile: {
    title: "Profile",
    name: "Name",
    zone: "Time zone",
    /** @param {string | null} device */
    about: (device) => `Your calendar and programs use this time zone${device ? `. This device is in ${device}.` : "."}`,
    saved: "Saved.",
    /** @param {string} device @param {string} stored */
    differs: (device, stored) => `This device is in ${device}, and your time zone is ${stored}.`,
    /** @param {string} zone */
    use: (zone) => `Use ${zone}`,
    /** @param {string} zone */
    keep: (zone) => `Keep ${zone}`,
    /** @param {string} zone */
    nowIn: (zone) => `Your time zone is ${zone} now.`,
  },
  phone: {
    menu: "Use on my phone",
    title: "Use on my phone",
    scan: "Scan this code with your phone's camera, or open the address there. Then press the button that it shows.",
    qrCode: "QR code of the address below",
    address: "Address",
    making: "Making a link…",
    /** @param {string} time */
    until: (time) => `It works once, until ${time}. Whoever opens it first can see and change your tasks.`,
    another: "Make a new link",
    notCopied: "Could not copy. Select the address and copy it yourself.",
    overHttps: "This address has https: on the phone the page also works offline, notifies you while it is closed and can be installed as an app.",
    overHttp:
      "This address has no https. The tasks cross your network unencrypted, so use it only in a network that you trust. These do not work on the phone:",
    withoutHttps: ["the page without a connection", "notifications while it is closed", "installing it as an app", "buttons that copy"],
    how: "“On your phone” in the documents tells how to get https.",
  },
  takenLink: {
    title: "Use your tasks on this device?",
    about: "This browser then stays signed in as whoever made the link. Agree only on a device of your own.",
    agree: "Use my tasks here",
    refuse: "Not now",
    notLinked: "This device is not linked",
    notLinkedHow: "On the computer that has your tasks, choose “Use on my phone” in the menu, and open the new link here.",
  },
  clients: {
    menu: "Programs",
    title: "Programs that you have allowed",
    none: "None. A program that wants to use your tasks asks you on this page.",
    /** @param {string} address */
    address: (address) => `Answers went to ${address}`,
    /** @param {string} when @param {string} allowed */
    lastUsed: (when, allowed) => `Last used ${when}, allowed ${allowed}`,
    end: "End",
    /** @param {string} name @param {string} when @param {string} allowed */
    endOne: (name, when, allowed) => `End: ${name}, last used ${when}, allowed ${allowed}`,
    ended: "Ended.",
    /** What a program may do, by scope. @type {Record<string, string>} */
    scopes: { "tasks:read": "Read your tasks", tasks: "Add, change, complete and delete your tasks" },
  },
  authorize: {
    ask: "Allow a program to use your tasks?",
    calls: "It calls itself:",
    /** @param {string} host */
    proven: (host) => `It is a program of ${host}.`,
    unproven: "This server cannot check that name.",
    may: "It wants to:",
    /** @param {string} address */
    goes: (address) =>
      ["localhost", "127.0.0.1", "::1"].includes(address)
        ? "Your answer goes to a program on the device in front of you."
        : address.endsWith(":")
          ? `Your answer goes to the app that opens ${address} links on this device.`
          : `Your answer goes to ${address}.`,
    careful: "Allow it only if you have just connected this program yourself.",
    /** @param {string} user */
    as: (user) => `You are signed in as ${user}.`,
    later: "You can end it at any time: in the menu of the page, under Programs.",
    allow: "Allow",
    deny: "Don't allow",
    back: "Go back to the program",
    cannot: "This program cannot be connected.",
    again: "Try again",
    tasks: "Go to your tasks",
    done: "Done. Go back to the program; you can close this page.",
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
    checking: "Signing in…",
    /** @param {string} provider */
    at: (provider) => `Sign in with ${provider}`,
    leads: "You sign in there and come back here.",
    proxy: "The server in front of this one signs you in. If that does not help, ask the person who runs it.",
  },
  passwords: {
    name: "Name",
    password: "Password",
    show: "Show the password",
    ask: "If you have no account, or have forgotten your password, ask the person who runs this server.",
    rule: "At least 8 characters. Longer is better: a few words that do not belong together.",
    first: "Make the first account",
    firstAbout: "This makes the first account of this server. Choose a name and a password.",
    make: "Make the account",
    haveAccount: "Sign in with an account",
    menu: "Change password",
    change: "Change your password",
    changeAbout: "Your other devices are signed out. Access tokens end, and programs that you have allowed must ask again.",
    old: "Old password",
    new: "New password",
    save: "Change",
    changed: "Your password is changed. Other devices, access tokens and programs are signed out.",
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

/** The keys of the page. */
export const KEYS = {
  title: "Keys",
  key: "Key",
  what: "What it does",
  or: "or",
  then: "then",
  does: {
    add: "Add a task",
    search: "Search tasks",
    assistant: "Write to the assistant",
    today: "Show Today",
    upcoming: "Show Upcoming",
    all: "Show All",
    done: "Show Done",
    undo: "Undo the last change, also the assistant's",
    redo: "Redo what was undone",
    close: "Close what is open: editor, selection or message; leave the field for a new task",
    keys: "Show all keys",
    next: "Go to the next task",
    previous: "Go to the task before",
    first: "Go to the first task",
    last: "Go to the last task",
    open: "Open the task",
    complete: "Complete the task and go to the next, or reopen it",
    high: "Priority high",
    medium: "Priority medium",
    low: "Priority low",
    none: "No priority",
    date: "Change the date",
    label: "Change the labels",
    later: "Move to the next day",
    earlier: "Move to the day before",
    remove: "Delete the task",
    select: "Select the task",
    selectNext: "Select the next task, too",
    selectPrevious: "Select the task before, too",
    selectAll: "Select all tasks of the view",
  },
  about: "Keys count outside text fields. They act on the task with the focus, or else on the selected tasks.",
  single: "Keys of a single character",
};

/** The texts of the list of tasks. */
export const LIST = {
  /** @param {number} count */
  tasks: (count) => number(count, "task"),
  views: /** @type {Record<View, string>} */ ({ today: "Today", upcoming: "Upcoming", all: "All", done: "Done", deleted: "Deleted" }),
  add: "Add a task",
  addHint: "Add a task: “call mum friday 3pm #home”",
  addButton: "Add",
  /** @param {string} title @param {string} reason */
  notAdded: (title, reason) => `“${title}” was not added. ${reason}`,
  aside: "Not added",
  editAgain: "Edit",
  /** @param {string} title */
  keptDraft: (title) => `Not saved, as you typed it before you signed in: changes to “${title}”.`,
  notThis: "Not a date: keep it in the title",
  /** @param {string} day */
  nextOne: (day) => `next: ${day}`,
  /** @param {string} words */
  unread: (words) => `“${words}” is not understood.`,
  dateHint: "Write it like “5 dec” or “friday”.",
  filter: "Filter",
  label: "Label",
  anyLabel: "Any label",
  priority: "Priority",
  anyPriority: "Any priority",
  clearFilters: "Clear filters",
  /** @param {string} filter */
  clearFilter: (filter) => `Remove the filter ${filter}`,
  sort: "Sort by",
  sorts: /** @type {Record<Sort, string>} */ ({ date: "Date", priority: "Priority", title: "Title", added: "Date added" }),
  select: "Select tasks",
  endSelection: "Stop selecting",
  /** @param {number} count */
  selected: (count) => `${counted(count)} selected`,
  complete: "Complete",
  reopen: "Reopen",
  move: "Move to…",
  more: "More actions",
  editing: "Edit the task",
  otherDay: "Another day…",
  selectIt: "Select",
  moveOverdue: "Move all to today",
  moveOne: "Change the date",
  remove: "Delete",
  restore: "Restore",
  undo: "Undo",
  redo: "Redo",
  nothingToUndo: "There is nothing left to undo. Earlier changes are in Done and Deleted.",
  nothingToRedo: "There is nothing to redo: nothing was undone, or something was changed since.",
  undoOffline: "The server cannot be reached, so nothing was undone. Try again once you are connected.",
  undoNext: "Undo again to undo the change before it.",
  redoNext: "Redo again to redo the change before it.",
  /** @param {string} named @param {number} more */
  andMore: (named, more) => `${named} and ${counted(more)} more`,
  labels: "Labels",
  labelsHint: "home, work",
  knownLabels: "Your labels",
  /** @param {string} title */
  labelsOf: (title) => `Labels of “${title}”`,
  /** @param {number} count */
  moreLabels: (count) => `Add labels to ${number(count, "task")}`,
  /** @param {string} title */
  tick: (title) => `Done: ${title}`,
  /** @param {string} title */
  selectOne: (title) => `Select ${title}`,
  /** @param {string} day */
  addOn: (day) => `Add a task for ${day}`,
  nothingOn: "Nothing planned",
  hasDescription: "Has a description",
  overdue: "Overdue",
  later: "Later",
  earlier: "Earlier",
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
  shownLater: "This list is shown once the server can be reached.",
  lost: "Cannot reach the server. Reconnecting…",
  notSaved: "Not saved yet",
  oldChanges: "Not saved for more than a week",
  earlierChanges: "Not saved before you signed in",
  send: "Send",
  /** Says what a request does. @param {{operation: string, ids?: number[], fields?: Record<string, unknown>}} request */
  describeRequest: ({ operation, ids = [], fields = {} }) => {
    const which = `${ids.length === 1 ? "task" : "tasks"} ${ids.map((id) => (id > 0 ? `#${id}` : "(new)")).join(", ")}`;
    const what = Object.entries(fields).map(([name, value]) => `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`);
    if (operation === "add") return `Add a task (${what.join(", ")}).`;
    if (operation === "change") return fields.undo ? `Restore ${which}.` : `Change ${which} (${what.join(", ")}).`;
    if (operation === "delete") return `Delete ${which}.`;
    return operation === "undo" ? "Undo or redo a change." : "Move all overdue tasks to today.";
  },
  sendAgain: "Send again",
  discard: "Discard",
  changedElsewhere: "Changed elsewhere:",
  keepMine: "Keep mine",
  takeTheirs: "Take theirs",
  deletedElsewhere: "This task was deleted elsewhere.",
  restoreAndSave: "Restore and save",
  /** @param {number} count */
  unsaved: (count) => `${number(count, "change")} will be saved once you are connected.`,
  problem: "Your tasks could not be loaded.",
  searchTooLong: "A search can have up to 20 words and 200 characters.",
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
    redone: "Redone",
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
  /** @param {string} when */
  snoozedUntil: (when) => `snoozed until ${when}`,
  /** Why a reminder does not reach the user; the first is what the assistant says, too. */
  reminders: {
    off: "To be reminded, switch on Notifications in the menu.",
    noChannel: "To be reminded while this page is closed, add a channel under Notifications in the menu.",
    open: "Notifications",
  },
  /** @param {number} id */
  noTask: (id) => `There is no task ${id}. It may have been deleted for good.`,
  goToday: "Go to Today",
  emptyFound: ["No matches", "Try other words, clear the filters, or search in another view."],
};

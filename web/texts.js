// @ts-check

/** What the page says in English around the list and the chat; a person's own texts are not here. */
export const TEXTS = {
  name: "To-do assistant",
  tasks: "Tasks",
  chat: "Chat",
  tabs: "Shown",
  menu: "Menu",
  theme: { title: "Theme", system: "System", light: "Light", dark: "Dark" },
  remind: "Notify me of due tasks",
  remindRefused: "The browser does not let this page notify you. Its settings for this page can change that.",
  calendar: "Calendar",
  signOut: "Sign out",
  stillSignedIn: "You are still signed in: the server cannot be reached.",
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
    checked: "Everybody signs in here, and sees only what is theirs.",
  },
  start: {
    greeting: "What is there to do?",
    placeholder: "Add, finish or ask about tasks",
    add: "Add call the bank and buy milk",
    list: "What is on my list?",
    done: "What have I done?",
  },
  days: { today: "Today", yesterday: "Yesterday", thisWeek: "This week" },
  history: {
    title: "Conversations",
    close: "Close",
    search: "Search conversations",
    none: "There are no conversations yet.",
    notFound: "No conversation has this in its title.",
    more: "Show more",
    untitled: "Untitled",
    rename: "Rename",
    remove: "Delete",
    answered: "Being answered",
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
  },
};

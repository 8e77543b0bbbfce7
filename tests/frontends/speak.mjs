// Lets the AI SDK's own chat (which is what its `useChat` is made of) speak to an address, and assistant-ui's decoder read
// every response beside it. Takes the address, headers and a list of actions, and writes what is seen after each of them.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { packages, ai, api, headers, body, actions } = JSON.parse(process.argv[2]);
const found = createRequire(`${packages}/`);
const load = (name) => import(pathToFileURL(found.resolve(name)).href);
const { AbstractChat, DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses } = await load(ai);
const { AssistantMessageAccumulator, UIMessageStreamDecoder } = await load("assistant-stream");

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => void (this.messages = [...this.messages, message]);
  popMessage = () => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (index, message) => void (this.messages = this.messages.with(index, structuredClone(message)));
  snapshot = (value) => structuredClone(value);
}

class Chat extends AbstractChat {
  constructor(options) {
    super({ ...options, state: new State() });
  }
}

let seen;
let release; // the address at which the response that is read, and that the model holds, is let go on

async function readBeside(stream) {
  try {
    const data = [];
    const decoder = new UIMessageStreamDecoder({ onData: (part) => data.push(part) });
    let message;
    for await (const one of stream.pipeThrough(decoder).pipeThrough(new AssistantMessageAccumulator())) message = one;
    seen.assistant = { content: message.content, status: message.status, data };
  } catch (error) {
    seen.assistant = { error: error.message };
  }
}

async function fetchBoth(address, options) {
  const response = await fetch(address, options);
  seen.http = response.status;
  seen.sent = options.body && JSON.parse(options.body);
  if (response.status !== 200) return response;
  if (release) await fetch(release, { method: "POST" });
  const [one, other] = response.body.tee();
  seen.reading = readBeside(other);
  return new Response(one, response);
}

const chat = new Chat({
  transport: new DefaultChatTransport({ api, headers, body, fetch: fetchBoth }),
  sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
});
const asked = () =>
  chat.messages.flatMap((one) => one.parts.filter((part) => part.state === "approval-requested"));
const idle = async () => {
  while (chat.status === "submitted" || chat.status === "streaming") await new Promise((go) => setTimeout(go, 10));
};

const results = [];
for (const action of actions) {
  seen = {};
  release = action.release;
  if ("say" in action) await chat.sendMessage({ text: action.say });
  if ("regenerate" in action) await chat.regenerate();
  if ("decide" in action) {
    for (const part of asked()) {
      await chat.addToolApprovalResponse({ id: part.approval.id, approved: action.decide, reason: action.reason });
    }
    await new Promise((go) => setTimeout(go, 50)); // it is sent without being waited for
    await idle();
  }
  if ("leave" in action) {
    const said = chat.sendMessage({ text: action.leave });
    while (!chat.messages.at(-1)?.parts.some((part) => part.type === "text" && part.text && chat.messages.at(-1).role === "assistant"))
      await new Promise((go) => setTimeout(go, 10));
    await chat.stop();
    await said;
  }
  if ("resume" in action) await chat.resumeStream();
  await seen.reading;
  const { http, sent, assistant } = seen;
  results.push({ messages: chat.messages, status: chat.status, error: chat.error?.message, http, sent, assistant });
}
process.stdout.write(JSON.stringify(results));

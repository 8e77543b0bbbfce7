// Stands in for OpenAI's script: an element that speaks the protocol of @openai/chatkit 1.x with the server and the page,
// and shows only as much as the tests look at.
customElements.define(
  "openai-chatkit",
  class extends HTMLElement {
    #options;
    #threadId = null;
    #items = new Map();

    connectedCallback() {
      window.loaded = (window.loaded ?? 0) + 1;
    }

    setOptions(options) {
      window.given = options;
      const isFirst = !this.#options;
      this.#options = options;
      if (isFirst) void this.#begin(options);
    }

    async setThreadId(threadId) {
      this.#threadId = threadId;
      this.#items.clear();
      if (threadId !== null) {
        const thread = await this.#ask("threads.get_by_id", { thread_id: threadId });
        for (const item of thread.items.data) this.#items.set(item.id, item);
      }
      this.#draw();
      this.#emit("chatkit.thread.change", { threadId });
    }

    async sendUserMessage({ text, newThread = false }) {
      const input = { content: [{ type: "input_text", text }], attachments: [], inference_options: {} };
      if (newThread || this.#threadId === null) await this.#stream("threads.create", { input });
      else await this.#stream("threads.add_user_message", { thread_id: this.#threadId, input });
    }

    async #begin({ initialThread }) {
      const form = document.createElement("form");
      const box = Object.assign(document.createElement("input"), { ariaLabel: "Message" });
      const log = Object.assign(document.createElement("div"), { role: "log" });
      form.append(box);
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        void this.sendUserMessage({ text: box.value });
      });
      this.append(Object.assign(document.createElement("p"), { textContent: "OpenAI's widget" }), log, form);
      Object.assign(this.style, { display: "block", height: "300px" });
      if (initialThread) await this.setThreadId(initialThread).catch(() => this.setThreadId(null));
      this.#emit("chatkit.ready");
    }

    async #request(type, params) {
      const { url, fetch } = this.#options.api;
      const body = JSON.stringify({ type, params });
      const response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body });
      if (!response.ok) {
        const error = Object.assign(new Error(await response.text()), { name: "HttpError", status: response.status });
        this.#emit("chatkit.error", { error });
        throw error;
      }
      return response;
    }

    async #ask(type, params) {
      return (await this.#request(type, params)).json();
    }

    async #stream(type, params) {
      this.#emit("chatkit.response.start");
      const response = await this.#request(type, params);
      let buffer = "";
      for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
        const frames = (buffer + chunk).split("\n\n");
        buffer = frames.pop();
        for (const frame of frames) {
          const data = frame.split("\n").filter((line) => line.startsWith("data: "));
          if (data.length) this.#receive(JSON.parse(data.map((line) => line.slice(6)).join("\n")));
        }
      }
      this.#emit("chatkit.response.end");
    }

    #receive(event) {
      switch (event.type) {
        case "thread.created":
          this.#threadId = event.thread.id;
          this.#emit("chatkit.thread.change", { threadId: event.thread.id });
          break;
        case "thread.item.added":
        case "thread.item.done":
        case "thread.item.replaced":
          this.#items.set(event.item.id, event.item);
          break;
        case "thread.item.removed":
          this.#items.delete(event.item_id);
          break;
        case "thread.item.updated":
          this.#update(this.#items.get(event.item_id), event.update);
          break;
        case "client_effect":
          this.#emit("chatkit.effect", { name: event.name, data: event.data });
      }
      this.#draw();
    }

    #update(item, update) {
      if (update.type === "assistant_message.content_part.added") item.content[update.content_index] = update.content;
      if (update.type === "assistant_message.content_part.text_delta") item.content[update.content_index].text += update.delta;
    }

    #draw() {
      const lines = [...this.#items.values()].flatMap((item) => {
        if (item.type === "widget") return item.copy_text ?? "";
        return (item.content ?? []).map(({ text }) => text);
      });
      const shown = lines.map((line) => Object.assign(document.createElement("p"), { textContent: line }));
      this.querySelector("[role=log]").replaceChildren(...shown);
    }

    #emit(name, detail = {}) {
      this.dispatchEvent(new CustomEvent(name, { detail }));
    }
  },
);

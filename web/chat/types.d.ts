/** The part of ChatKit's protocol that this element reads. The server's definition: `chatkit.types` of openai-chatkit. */

/** A tag, which names a task, has its id. */
export type Content = { type: string; text: string; id?: string; data?: object; interactive?: boolean };

export type Task = {
  type: string;
  title?: string;
  content?: string;
  status_indicator?: "none" | "loading" | "complete";
  icon?: string;
};
export type Workflow = {
  type: string;
  tasks: Task[];
  summary?: { title?: string; duration?: number } | null;
  expanded?: boolean;
};

export type Action = { type: string; payload?: Record<string, unknown>; handler?: string };
/** What confirms or cancels a card. */
export type CardAction = { label: string; action: Action };
export type Widget = { type: string; key?: string; children?: Widget | Widget[]; [property: string]: unknown };

export type Feedback = "positive" | "negative";

/** One item of a conversation: which of the optional parts it has depends on its type. */
export type Item = {
  id: string;
  type: string;
  thread_id?: string;
  created_at?: string;
  content?: Content[];
  quoted_text?: string;
  widget?: Widget;
  copy_text?: string;
  /** The user's rating. */
  feedback?: Feedback | undefined;
  /** Of a message that was edited or answered again: which of how many is shown, and the interactions beside it. */
  versions?: { number: number; count: number; previous?: string; next?: string };
  workflow?: Workflow;
  task?: Task;
  /** Of a notice: what the user can do about it. */
  actions?: ("continue" | "retry")[];
};

/** A part of a message in the run API. */
export type Part = { type: "text"; text: string } | { type: "task"; task_id: number; title?: string | null };
/** A message that the assistant has not read yet, as the run API has it: queued while its interaction runs, else unsent. */
export type UnreadMessage = {
  input_id: string;
  interaction_id: string;
  parts: Part[];
  mode: "steer" | "follow_up";
  is_queued: boolean;
  created_at: string;
};
/** The same as it is shown; `at` is when it was written, in ms. */
export type Unread = { id: string; interaction: string; text: string; at: number; state: "queued" | "next" | "unsent" };
export type Thread = {
  id: string;
  title?: string | null;
  created_at: string;
  /** The interaction that answers in it now, of the run API. */
  answering?: string | null | undefined;
};
export type Page<T> = {
  data: T[];
  has_more: boolean;
  after?: string | null;
  /** Of a conversation's items: the run that was running when they were read. */
  answering?: string;
};

export type Update =
  | { type: "assistant_message.content_part.added"; content_index: number; content: Content }
  | { type: "assistant_message.content_part.done"; content_index: number; content: Content }
  | { type: "assistant_message.content_part.text_delta"; content_index: number; delta: string }
  | { type: "workflow.task.added"; task_index: number; task: Task }
  | { type: "workflow.task.updated"; task_index: number; task: Task };

export type ThreadEvent =
  | { type: "thread.created" | "thread.updated"; thread: Thread }
  | { type: "thread.item.added" | "thread.item.done" | "thread.item.replaced"; item: Item }
  | { type: "thread.item.updated"; item_id: string; update: Update }
  | { type: "thread.item.removed"; item_id: string }
  | { type: "progress_update"; icon?: string; text: string }
  | { type: "client_effect"; name: string; data?: Record<string, unknown> }
  | { type: "notice"; message: string }
  | { type: "error"; code?: string; message?: string; allow_retry?: boolean };

export type Progress = { text: string; done: boolean; since: number };

/** What "Try again" does. */
export type Retry = "answer" | "send" | "load" | null;

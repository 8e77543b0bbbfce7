/** The part of ChatKit's protocol that this element reads. The server's definition: `chatkit.types` of openai-chatkit. */

export type Source = { type: string; title: string; url?: string; filename?: string };
export type Annotation = { type: string; source: Source };
/** A tag, which names a task, has its id. */
export type Content = { type: string; text: string; annotations?: Annotation[]; id?: string; data?: object; interactive?: boolean };

export type Task = {
  type: string;
  title?: string;
  content?: string;
  status_indicator?: "none" | "loading" | "complete";
  queries?: string[];
  sources?: Source[];
  icon?: string;
};
export type Workflow = {
  type: string;
  tasks: Task[];
  summary?: { title?: string; duration?: number } | null;
  expanded?: boolean;
};

export type Action = { type: string; payload?: Record<string, unknown>; handler?: string; streaming?: boolean };
/** What confirms or cancels a card. */
export type CardAction = { label: string; action: Action };
export type Widget = { type: string; id?: string; key?: string; children?: Widget | Widget[]; [property: string]: unknown };

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
  image?: { id: string; url: string };
  inputs?: { question: string; answer?: { values: string[]; skipped: boolean } }[];
  name?: string;
  status?: string;
};

export type Status = { type: "active" | "locked" | "closed"; reason?: string };
/** A part of a message in the run API. */
export type Part = { type: "text"; text: string } | { type: "task"; task_id: number; title?: string | null };
/** A message that the assistant has not read yet, as the run API has it: queued while its interaction runs, else unsent. */
export type UnreadMessage = {
  input_id: string;
  interaction_id: string;
  parts: Part[];
  mode: "steer" | "follow_up";
  is_queued: boolean;
};
/** The same as it is shown. It has an interaction once it is sent. */
export type Unread = { id: string; interaction?: string; text: string; state: "sending" | "queued" | "next" | "unsent" };
export type Thread = {
  id: string;
  title?: string | null;
  created_at: string;
  status?: Status;
  /** The interaction that answers in it now, of the run API. */
  answering?: string | null | undefined;
};
export type Page<T> = { data: T[]; has_more: boolean; after?: string | null };

export type Update =
  | { type: "assistant_message.content_part.added"; content_index: number; content: Content }
  | { type: "assistant_message.content_part.done"; content_index: number; content: Content }
  | { type: "assistant_message.content_part.text_delta"; content_index: number; delta: string }
  | {
      type: "assistant_message.content_part.annotation_added";
      content_index: number;
      annotation_index: number;
      annotation: Annotation;
    }
  | { type: "widget.streaming_text.value_delta"; component_id: string; delta: string; done: boolean }
  | { type: "widget.component.updated"; component_id: string; component: Widget }
  | { type: "widget.root.updated"; widget: Widget }
  | { type: "workflow.task.added"; task_index: number; task: Task }
  | { type: "workflow.task.updated"; task_index: number; task: Task }
  | { type: "generated_image.updated"; image: { id: string; url: string } };

export type ThreadEvent =
  | { type: "thread.created" | "thread.updated"; thread: Thread }
  | { type: "thread.item.added" | "thread.item.done" | "thread.item.replaced"; item: Item }
  | { type: "thread.item.updated"; item_id: string; update: Update }
  | { type: "thread.item.removed"; item_id: string }
  | { type: "stream_options"; stream_options: { allow_cancel: boolean } }
  | { type: "progress_update"; icon?: string; text: string }
  | { type: "client_effect"; name: string; data?: Record<string, unknown> }
  | { type: "notice"; level: "info" | "warning" | "danger"; message: string; title?: string }
  | { type: "error"; code?: string; message?: string; allow_retry?: boolean };

export type Progress = { text: string; done: boolean; since: number };

/** What "Try again" does. */
export type Retry = "answer" | "send" | "load" | null;

/** The callbacks of a conversation. */
export type ConversationOwner = {
  /** Something is to be drawn again. */
  changed: () => void;
  /** It has an id now. */
  created: (thread: Thread) => void;
  /** Its title or status may be new. */
  described: (thread: Thread) => void;
  /** An answer runs that nobody here reads. */
  running: () => void;
  /** A turn begins or has ended. */
  answering: (answering: boolean) => void;
  /** A message is in the conversation. */
  stored: () => void;
  /** A text of the running answer was withdrawn. */
  withdrawn: () => void;
  /** A message was not stored: its text goes back to the user. */
  returned: (text: string) => void;
  /** An event of the element. */
  emit: (name: string, detail: Record<string, unknown>) => void;
};

/** The callbacks of a queue: its conversation. */
export type QueueOwner = {
  changed: () => void;
  /** A message was not sent: its text goes back to the user. */
  returned: (text: string) => void;
  /** Whether the conversation has this item. */
  has: (id: string) => boolean;
  /** The interaction that answers here, once it is known and is not `ended`; null once nothing is answered any more. */
  interaction: (ended?: string) => Promise<string | null>;
  /** Send a message that came too late to be queued. */
  send: (text: string) => Promise<void>;
};

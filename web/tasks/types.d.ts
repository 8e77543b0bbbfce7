/** A task as `/tasks` returns it. */
export interface Task {
  id: number;
  title: string;
  description: string;
  status: "pending" | "completed" | "deleted";
  /** A day like "2026-11-27", where the user is. */
  due: string | null;
  /** A clock time like "15:00". */
  time: string | null;
  priority: "high" | "medium" | "low" | null;
  labels: string[];
  /** A rule of RFC 5545. */
  repeat: string | null;
  /** Minutes before its time; null: as the user has set. */
  remind: number | "none" | null;
  /** Instants. */
  completed: string | null;
  deleted: string | null;
  /** When its notification comes again; the response to a change does not have it. */
  snoozed_until?: string | null;
}

/** A day and a clock time where the user is. */
export interface Moment {
  day: string;
  time: string;
}

/** A date, which may have a time. */
export interface When {
  day: string;
  time: string | null;
}

/** What the server understands of a text. */
export interface TaskPreview extends Pick<Task, "title" | "due" | "time" | "repeat" | "remind" | "priority" | "labels" | "remind"> {
  spans: { start: number; end: number; kind: "date" | "time" | "repeat" | "priority" | "label" | "unread"; text: string; reason: string }[];
}

export type View = "today" | "upcoming" | "all" | "done" | "deleted";

/** How the tasks of a view are sorted; by "date", "done" and "deleted" begin with the newest. */
export type Sort = "date" | "priority" | "title" | "added";

/** Filters of a list; an empty text is none. */
export interface Filter {
  query: string;
  label: string;
  priority: "" | "high" | "medium" | "low" | "none";
}

/** Where the user is in the list. */
export interface ListPlace {
  /** Null: the view that contains the task, else Today. */
  view: View | null;
  filter: Filter;
  /** The task in the editor. */
  task: number | null;
}

/** How many tasks were completed on a day. */
export interface DoneOnDay {
  day: string;
  done: number;
}

/** How many tasks a section of a view has: a day, or "overdue", "today", "coming", "undated", "all", "later" or "earlier". */
export interface SectionCount {
  key: string;
  count: number;
}

/** A page of a view. */
export interface TaskPage {
  view: View;
  /** The user's wall clock, like "2026-11-23T11:20". */
  now: string;
  time_zone: string;
  total: number;
  sections: SectionCount[];
  tasks: Task[];
  /** The newest change that it contains. */
  last: number;
  days?: DoneOnDay[];
}

export interface Changes {
  last: number;
  task_ids: number[];
  /** There are too many to list. */
  more: boolean;
}

/** The response to a change. */
export interface Changed {
  tasks: Task[];
  /** What undoes it. */
  batch: string;
  /** Of an added text, what looks like a date and is no date of the task. */
  not_understood?: string[];
}

/** The changes of a click or of an answer, which are undone together. */
export interface Batch {
  batch: string;
  /** A redo undoes an undo. */
  kind: "change" | "undo" | "redo";
  undone: boolean;
  /** Of the first tasks. */
  titles: string[];
  /** How many tasks it changed. */
  count: number;
}

/** The body of a change: values that the task tools take, such as "none". */
export type Fields = { [name in keyof Task]?: unknown } & {
  /** Back to what it was before its last change. */
  undo?: true;
  add_labels?: string[];
  also?: number[];
};

/** A part of a list, under a heading if it has a title. */
export interface Section {
  key: string;
  title: string;
  /** Beside the title, in quieter letters. */
  date: string;
  /** A task that is not loaded is null. */
  tasks: (Task | null)[];
  /** The day that it stands for, where tasks can be moved to it. */
  day: string | null;
  tone?: "danger";
}

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
  /** Instants. */
  completed: string | null;
  deleted: string | null;
}

/** A day and a clock time where the user is. */
export interface Moment {
  day: string;
  time: string;
}

/** A date, and the rule by which it repeats. */
export interface When {
  day: string;
  time: string | null;
  repeat: string | null;
}

/** What the server understands of a text. */
export interface TaskPreview extends Pick<Task, "title" | "due" | "time" | "repeat" | "priority" | "labels"> {
  spans: { start: number; end: number; kind: "date" | "time" | "repeat" | "priority" | "label" | "unread"; text: string; reason: string }[];
}

export type View = "today" | "upcoming" | "all" | "done" | "deleted";

/** Filters of a list; an empty text is none. */
export interface Filter {
  query: string;
  label: string;
  priority: "" | "high" | "medium" | "low" | "none";
}

/** How many tasks were completed on a day. */
export interface DoneOnDay {
  day: string;
  done: number;
}

/** A page of a view. */
export interface TaskPage {
  view: View;
  /** The user's wall clock, like "2026-11-23T11:20". */
  now: string;
  time_zone: string;
  total: number;
  tasks: Task[];
  next_cursor: string | null;
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
  not_found?: number[];
  /** What undoes it. */
  batch: string;
  /** Of an added text, what looks like a date and is no date of the task. */
  not_understood?: string[];
}

/** The body of a change: values that the task tools take, such as "none". */
export type Fields = { [name in keyof Task]?: unknown } & {
  /** Back to what it was before its last change. */
  undo?: true;
  also?: number[];
};

/** A part of a list under a heading of its own. */
export interface Section {
  key: string;
  title: string;
  /** Beside the title, in quieter letters. */
  date: string;
  tasks: Task[];
  /** The day that it stands for, where tasks can be moved to it. */
  day: string | null;
  tone?: "danger";
}

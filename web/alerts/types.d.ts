/** What can be sent where. */
export interface Channel {
  id: number;
  kind: string;
  name: string;
  /** Where it sends, without what is secret. */
  target: string;
  state: "on" | "off";
  problem: { code: string; message: string } | null;
  /** Whether it says what it has shown. */
  confirms: boolean;
  this_device: boolean;
  last_sent_at: string | null;
  last_shown_at: string | null;
}

/** What `GET /alerts/settings` responds. */
export interface Settings {
  on: boolean;
  /** Minutes before the time of a task. */
  remind: number | "none";
  /** A clock time like "08:00". */
  digest_time: string | null;
  quiet_from: string | null;
  quiet_until: string | null;
  push_key: string;
  channels: Channel[];
  kinds: { kind: string; name: string; possible: boolean; why_not: string | null }[];
}

/** An alert of `GET /alerts`. */
export interface RecentAlert {
  key: string;
  kind: string;
  tasks: number[];
  alert_at: string;
  late: boolean;
  state: string;
  deliveries: { channel: string; kind: string; state: string; at: string; problem?: { message: string } | null }[];
}

/** An alert that an open page shows, as it is pushed. */
export interface Alert {
  key: string;
  kind: string;
  title: string;
  body: string;
  url: string;
  task: number | null;
  proof: string | null;
  late: boolean;
  actions: boolean;
}

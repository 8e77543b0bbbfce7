// @ts-check
import { timeWords } from "../chat/days.js";
import { leadTimeWords } from "../words.js";
/** @import {Settings} from "./types" */

/** The texts of the dialog about notifications. */
export const ALERTS = {
  title: "Notifications",
  on: "Notify me of what is due",
  about: "You are notified of a task with a time when it is due, and of tasks with only a day in one morning overview.",
  off: "No notifications are sent while this is off.",
  saved: "Saved.",
  channels: {
    title: "Channels",
    about: "Each notification goes to the first of these. The next one is used only if that fails, or if a device does not show it.",
    none: "None yet: notifications are shown only while this page is open.",
    this: "this device",
    on: "On",
    off: "Off",
    /** @param {string} problem */
    stopped: (problem) => `Switched off. ${problem}`,
    /** @param {string} when */
    shown: (when) => `last shown ${when}`,
    /** @param {string} when */
    sent: (when) => `last sent ${when}`,
    test: "Send a test",
    up: "Move up",
    turnOn: "Turn on",
    turnOff: "Turn off",
    remove: "Remove",
    testing: "Sending a test…",
    moved: "Moved.",
    removed: "Removed.",
  },
  others: {
    title: "Other channels",
    add: "Add",
    added: "Added. Send a test to see whether it arrives.",
    leaves: "The titles of your tasks then leave this server.",
  },
  /** @type {Record<string, string>} */
  kinds: { push: "Push", ntfy: "ntfy", webhook: "Webhook", email: "E-mail" },
  when: {
    title: "When",
    remind: "Reminder of a task with a time",
    never: "Never",
    digest: "Morning overview at",
    digestHint: "Empty: no overview.",
    quietFrom: "Quiet from",
    quietUntil: "Quiet until",
    quietHint: "What is due in quiet hours comes in one message at their end. Empty: none.",
    quietHalf: "Quiet hours need both times, or none.",
  },
  recent: {
    title: "Recent",
    none: "There were no notifications yet.",
    /** @type {Record<string, string>} */
    kinds: { digest: "Morning overview", held: "What was due in quiet hours", several: "Several tasks at once", schedule: "Schedule", test: "Test", task: "Tasks" },
    /** @param {number} id */
    task: (id) => `Task ${id}`,
    late: "late",
    /** What became of an alert that nothing has been sent of. @type {Record<string, string>} */
    states: {
      pending: "waiting to be sent",
      collected: "waits a few seconds for others",
      held: "held until the quiet hours end",
      merged: "in the message after the quiet hours",
      shown: "shown on this page",
      expired: "not sent: it was too late",
      failed: "not sent: no channel worked",
      sent: "sent",
    },
    /** @type {Record<string, (name: string, when: string, problem: string) => string>} */
    deliveries: {
      sending: (name) => `being sent to ${name}`,
      accepted: (name, when) => `sent to ${name} ${when}, not confirmed`,
      shown: (name, when) => `shown on ${name} ${when}`,
      gave_up: (name, when) => `not shown on ${name} by ${when}`,
      failed: (name, _, problem) => `failed: ${name}${problem ? `. ${problem}` : ""}`,
    },
  },
};

/** How long before its time a task usually reminds, in minutes. */
const REMINDERS = [0, 5, 10, 15, 30, 60, 120, 1440, 2880, 10080];

/** Returns the choices of a default reminder. @param {Settings["remind"]} chosen @returns {[value: string, text: string][]} */
export function reminderChoices(chosen) {
  const all = [...new Set([...REMINDERS, chosen === "none" ? 0 : chosen])].sort((one, other) => one - other);
  return [...all.map((minutes) => /** @type {[string, string]} */ ([String(minutes), leadTimeWords(minutes)])), ["none", ALERTS.when.never]];
}

/** @param {string} instant */
export const when = (instant) => timeWords(new Date(instant));

// @ts-check

/** The texts about notifications on this device: the page loads them after the list, those of the dialog with the dialog. */
export const DEVICE = {
  title: "This device",
  name: "This browser",
  add: "Notify me on this device",
  adding: "Asking this browser…",
  added: "This device gets notifications now, also while this page is closed.",
  has: "This device gets notifications, also while this page is closed.",
  open: "While this page is open, it shows what is due by itself.",
  denied: "Notifications of this page are blocked. Allow them in the settings that your browser has for this site, then open this dialog again.",
  insecure:
    "This page is open without https, so nothing can reach this device while the page is closed. Open it by https or on localhost: “On your phone” in the documents tells how.",
  homeScreen:
    "On an iPhone or iPad, only an app on the home screen gets notifications. Choose Share in Safari, then “Add to Home Screen”, and open this dialog there.",
  unsupported: "This browser cannot receive notifications while the page is closed. Use another browser, or one of the other channels below.",
  noWorker: "This page is not ready for notifications yet. Reload it, then try again.",
  noService: "This browser's push service could not be reached. Check your connection and try again, or use one of the other channels below.",
};

/** The texts of what an open page shows by itself. */
export const IN_PAGE = {
  title: "New notifications",
  done: "Done",
  snooze: "In 10 minutes",
  open: "Open",
  dismiss: "Dismiss",
};

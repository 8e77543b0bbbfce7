// @ts-check
/** What the user opens, drags and types in the list: loaded once it is shown, because it is not needed before. */
export { findReminderProblem } from "./reminders.js";
export { perform } from "./commands.js";
export { Dragging } from "./drag.js";
export { Swiping } from "./swipe.js";
export { editingView } from "./views/editing.js";
export { askForLabels } from "./views/labels.js";
export { menuView } from "./views/menu.js";
export { moveView } from "./views/move.js";

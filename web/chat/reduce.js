// @ts-check
/** @import {Content, Item, ThreadEvent, Update} from "./types" */

/**
 * Returns the items after an event. Items are not changed in place; other events change nothing.
 * @param {readonly Item[]} items
 * @param {ThreadEvent} event
 * @returns {readonly Item[]}
 */
export function reduce(items, event) {
  switch (event.type) {
    case "thread.item.added":
    case "thread.item.done":
      return items.some(({ id }) => id === event.item.id) ? replace(items, event.item) : [...items, event.item];
    case "thread.item.replaced":
      return replace(items, event.item);
    case "thread.item.removed":
      return items.filter(({ id }) => id !== event.item_id);
    case "thread.item.updated":
      return items.map((item) => (item.id === event.item_id ? update(item, event.update) : item));
    default:
      return items;
  }
}

/** @param {readonly Item[]} items @param {Item} item */
function replace(items, item) {
  return items.map((old) => (old.id === item.id ? item : old));
}

/** @param {Item} item @param {Update} change @returns {Item} */
function update(item, change) {
  switch (change.type) {
    case "assistant_message.content_part.added":
    case "assistant_message.content_part.done":
      return withPart(item, change.content_index, () => change.content);
    case "assistant_message.content_part.text_delta":
      return withPart(item, change.content_index, (part) => ({ ...part, text: part.text + change.delta }));
    case "workflow.task.added":
    case "workflow.task.updated": {
      const workflow = item.workflow ?? { type: "custom", tasks: [] };
      return { ...item, workflow: { ...workflow, tasks: at(workflow.tasks, change.task_index, change.task) } };
    }
    default:
      return item; // an unknown update
  }
}

/** @param {Item} item @param {number} index @param {(part: Content) => Content} change @returns {Item} */
function withPart(item, index, change) {
  const content = item.content ?? [];
  return { ...item, content: at(content, index, change(content[index] ?? { type: "output_text", text: "" })) };
}

/** @template T @param {readonly T[]} list @param {number} index @param {T} value @returns {T[]} */
function at(list, index, value) {
  const copy = [...list];
  copy[index] = value;
  return copy;
}

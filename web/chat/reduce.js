// @ts-check
/** @import {Content, Item, ThreadEvent, Update, Widget} from "./types" */

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
    case "assistant_message.content_part.annotation_added":
      return withPart(item, change.content_index, (part) => ({
        ...part,
        annotations: at(part.annotations ?? [], change.annotation_index, change.annotation),
      }));
    case "widget.root.updated":
      return { ...item, widget: change.widget };
    case "widget.component.updated":
      return withComponent(item, change.component_id, () => change.component);
    case "widget.streaming_text.value_delta":
      return withComponent(item, change.component_id, (component) => ({
        ...component,
        value: `${component.value ?? ""}${change.delta}`,
        streaming: !change.done,
      }));
    case "workflow.task.added":
    case "workflow.task.updated": {
      const workflow = item.workflow ?? { type: "custom", tasks: [] };
      return { ...item, workflow: { ...workflow, tasks: at(workflow.tasks, change.task_index, change.task) } };
    }
    case "generated_image.updated":
      return { ...item, image: change.image };
    default:
      return item; // an unknown update
  }
}

/** @param {Item} item @param {number} index @param {(part: Content) => Content} change @returns {Item} */
function withPart(item, index, change) {
  const content = item.content ?? [];
  return { ...item, content: at(content, index, change(content[index] ?? { type: "output_text", text: "" })) };
}

/** @param {Item} item @param {string} id @param {(component: Widget) => Widget} change @returns {Item} */
function withComponent(item, id, change) {
  return item.widget ? { ...item, widget: inTree(item.widget, id, change) } : item;
}

/** @param {Widget} node @param {string} id @param {(component: Widget) => Widget} change @returns {Widget} */
function inTree(node, id, change) {
  if (node.id === id) return change(node);
  const { children } = node;
  if (!children) return node;
  return {
    ...node,
    children: Array.isArray(children) ? children.map((child) => inTree(child, id, change)) : inTree(children, id, change),
  };
}

/** @template T @param {readonly T[]} list @param {number} index @param {T} value @returns {T[]} */
function at(list, index, value) {
  const copy = [...list];
  copy[index] = value;
  return copy;
}

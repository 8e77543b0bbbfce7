// @ts-check
/** The page with OpenAI's widget; its address names no conversation. */
export const WIDGET = "/widget";
const CONVERSATION = /^\/c\/thr_[0-9a-f]{32}$/;

/** Returns the id of the conversation in the address bar, whether it exists or not. */
export const conversationHere = () => /^\/c\/([^/]+)$/.exec(location.pathname)?.[1] ?? null;

/** Puts the open conversation into the address bar. @param {string | null} id @param {{instead?: boolean}} [how] instead of the entry before */
export function nameConversation(id, { instead = false } = {}) {
  const path = id === null ? "/" : `/c/${id}`;
  if (location.pathname === WIDGET || path === location.pathname || (id !== null && !CONVERSATION.test(path))) return;
  if (instead) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
}

// @ts-check
/** The page with OpenAI's widget; its address names no conversation. */
export const WIDGET = "/widget";
const CONVERSATION = /^\/c\/thr_[0-9a-f]{32}$/;

/** The conversation that the address in the address bar names, whether it is there or not; nothing else there does. */
export const conversationHere = () => /^\/c\/([^/]+)$/.exec(location.pathname)?.[1] ?? null;

/** Let the address name the open conversation. @param {string | null} id @param {{instead?: boolean}} [how] instead of the entry before */
export function nameConversation(id, { instead = false } = {}) {
  const path = id === null ? "/" : `/c/${id}`;
  if (location.pathname === WIDGET || path === location.pathname || (id !== null && !CONVERSATION.test(path))) return;
  if (instead) history.replaceState(null, "", path);
  else history.pushState(null, "", path);
}

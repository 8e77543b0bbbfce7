// @ts-check
// Runs before the first drawing, so that a chosen theme and layout do not replace the others visibly. It also sends the first
// requests, which web/http.js takes over: over a slow connection, the modules are here long after the responses.
{
  /** @param {string} key */
  const stored = (key) => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // storage is blocked: the system's theme, the usual layout
    }
  };
  const { dataset, style } = document.documentElement;
  dataset.theme = stored("todo-theme") ?? "system";
  dataset.pane = stored("todo.pane") === "chat" && innerWidth < 700 ? "chat" : "tasks";
  dataset.assistant = stored("todo-assistant") ?? "open";
  if (stored("todo.thread")) style.setProperty("--assistant", stored("todo-assistant-width") ?? "clamp(23.75rem, 30vw, 30rem)");

  /** What a browser names that cannot find its time zone, or that only knows its offset (+03:00); the server knows neither. */
  const NO_ZONE = /^(Etc\/Unknown|[^A-Z].*)?$/;

  /** @param {string | null} userId */
  const headersOf = (userId) => {
    const headers = new Headers();
    const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
    if (!NO_ZONE.test(timeZone ?? "")) headers.set("X-Time-Zone", timeZone);
    if (userId !== null) headers.set("X-Expected-User", encodeURIComponent(userId));
    return headers;
  };

  /** @param {Response} response @returns {Promise<string>} */
  const userOf = async (response) => {
    if (!response.ok) throw new Error("nobody is signed in");
    return (await response.clone().json()).user_id;
  };

  /** Returns the code of a link for this device, which leaves the address bar at once; null if the address has none. */
  const takeLink = () => {
    const [, code = null] = /^#link=([\w-]+)$/.exec(location.hash) ?? [];
    if (code !== null) history.replaceState(history.state, "", location.pathname + location.search);
    return code;
  };

  const session = fetch("session", { cache: "no-store" });
  /** @type {Early} */
  const early = { headersOf, link: takeLink(), takeLink, user: stored("todo.person"), session, page: null, worker: navigator.serviceWorker?.controller ?? null };
  const whoever = early.user === null ? session.then(userOf) : Promise.resolve(early.user);
  /** @param {string} user */
  const load = (user) => {
    early.user = user;
    return fetch(firstPage, { cache: "no-store", headers: headersOf(user) });
  };
  const view = location.pathname.slice(new URL(document.baseURI).pathname.length) || "today";
  const firstPage = `tasks?view=${view}&sort=${stored(`todo.sort.${view}`) ?? "date"}&limit=100`; // as in web/tasks/data/api.js
  if (["today", "upcoming", "all"].includes(view) && !location.search) early.page = { path: firstPage, response: whoever.then(load) };
  for (const request of [session, whoever, early.page?.response]) request?.catch(() => {}); // who takes it finds out
  window.early = early;
}

/** What early.js has asked for before the modules are here. Each response is for the first one who takes it. */
interface Early {
  /** The headers of each request: the time zone, and the user, in whose session alone it does something. */
  headersOf: (userId: string | null) => Headers;
  /** The code of a link for this device, until it is offered to the user. */
  link: string | null;
  /** Removes such a code from the address, and returns it. */
  takeLink: () => string | null;
  /** Of whom the page of the list is. */
  user: string | null;
  session: Promise<Response> | null;
  page: { path: string; response: Promise<Response> } | null;
  /** The service worker that has opened the page. */
  worker: ServiceWorker | null;
}

interface Window {
  early: Early;
}

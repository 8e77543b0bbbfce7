// @ts-check

/** What reads sentences and dates, once something is written. @type {typeof import("./sentence.js") & typeof import("./when.js") | undefined} */
export let grammar;
/** @type {Promise<boolean> | undefined} */
let loading;

/** Whether it could be loaded. */
export const loadGrammar = () =>
  (loading ??= Promise.all([import("./sentence.js"), import("./when.js")]).then(
    ([sentence, when]) => Boolean((grammar = { ...sentence, ...when })),
    () => Boolean((loading = undefined)), // what is written next tries again
  ));

// @ts-check
// Runs before the first drawing, so that a chosen theme does not replace the other one visibly.
try {
  document.documentElement.dataset.theme = localStorage.getItem("todo-theme") ?? "system";
} catch {
  // storage is blocked: the system's theme
}

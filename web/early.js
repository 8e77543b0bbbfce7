// @ts-check
// Runs before anything is drawn, so that a theme that was chosen does not come after the other one.
try {
  document.documentElement.dataset.theme = localStorage.getItem("todo-theme") ?? "system";
} catch {
  // storage is blocked: the system's theme
}

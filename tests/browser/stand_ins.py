"""What stands in the place of the page's parts: OpenAI's element, and the list of tasks."""

from pathlib import Path
from typing import Any

from playwright.async_api import Page

SCRIPT = "https://cdn.platform.openai.com/deployments/chatkit/chatkit.js"
WIDGET = (Path(__file__).parent / "chatkit_stand_in.js").read_text()
LIST = """
window.refreshed = 0;
customElements.define('todo-tasks', class extends HTMLElement {
  loaded = Promise.resolve();
  place = {view: 'today', filter: {query: '', label: '', priority: ''}, task: null};
  connectedCallback() {
    const row = (_, n) => Object.assign(document.createElement("p"), {textContent: `Row ${n}`});
    const rows = Array.from({length: 60}, row);
    const scroller = Object.assign(document.createElement('div'), {tabIndex: 0});
    Object.assign(scroller.style, {height: '100%', overflow: 'auto'});
    scroller.append(...rows);
    this.append(scroller);
  }
  refresh() {
    window.refreshed += 1;
  }
  setPlace({task}) {
    window.shown = task;
  }
});
const define = customElements.define.bind(customElements);
customElements.define = (name, ...rest) => name === 'todo-tasks' ? undefined : define(name, ...rest);
"""


def serving(body: str) -> Any:
    """Lets OpenAI's address answer with this script."""

    async def prepare(page: Page) -> None:
        await page.route(SCRIPT, lambda route: route.fulfill(body=body, content_type="text/javascript"))

    return prepare


async def with_list(page: Page) -> None:
    await page.add_init_script(LIST)


async def with_list_and_widget(page: Page) -> None:
    await with_list(page)
    await serving(WIDGET)(page)

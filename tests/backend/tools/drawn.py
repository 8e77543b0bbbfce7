"""Widgets as they are drawn, and what one reads in them."""

from chatkit.types import WidgetItem

from backend.conversation import rows
from backend.conversation.items import Json, Widget
from backend.tools import widgets


def drawn(root: Json) -> Widget:
    """As ChatKit's types let it through, and as it is stored."""
    shown = rows.as_shown("thr_1", widgets.item(root))
    assert isinstance(shown, WidgetItem)
    return rows.widget(shown)


def parts(component: Json) -> list[Json]:
    """The components without others in them, in order."""
    if "children" not in component:
        return [component]
    return [part for child in component["children"] for part in parts(child)]


def words(shown: Widget) -> list[str]:
    """What stands in it, and the names of its icons; the button that each row has is left out."""
    told = [part for part in parts(shown.root) if part["type"] != "Button" or "label" in part]
    return [part.get("label") or part.get("value") or part.get("name") or "" for part in told]

"""The list that a card shows, in the text of clients that show no cards."""

from collections.abc import Iterable

from backend.conversation.items import Message, Said, Widget
from backend.tools.progress import TaskViews
from backend.turn.log import Answered, Called, Done, Event


class TaskListText:
    """Reads the events of a run; when it shows the card of a list, the text is made of the tools' outputs."""

    def __init__(self) -> None:
        self._begin_answer()

    def _begin_answer(self) -> None:
        self._views = TaskViews()
        self._arguments: dict[str, str] = {}
        self._answer: list[str] = []

    def read(self, event: Event) -> str:
        """The list, if this event shows its card and the answer does not name all of its tasks; else nothing."""
        match event:
            case Done(item=Said()):
                self._begin_answer()
            case Called(call_id=call_id, arguments=arguments):
                self._arguments[call_id] = arguments
            case Answered(call_id=call_id, tool=tool, output=output):
                self._views.take_in(tool, self._arguments.pop(call_id, ""), output)
            case Done(item=Message(text=text)):
                self._answer.append(text)
            case Done(item=Widget(root={"type": "ListView"})):
                return self._views.text("\n".join(self._answer))
            case _:
                pass
        return ""


def last_list(events: Iterable[Event]) -> str:
    """The list of a run's last answer."""
    lists, text = TaskListText(), ""
    for event in events:
        text = lists.read(event) or ("" if isinstance(event, Done) and isinstance(event.item, Said) else text)
    return text

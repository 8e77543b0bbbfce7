"""Replacing the one place in a file that has a text."""

from workspace.files import diffs, writing
from workspace.files.folder import Answer, Folder
from workspace.refusals import NothingToEdit, OldTextNotFound, OldTextNotUnique


def edit(folder: Folder, path: str, old_text: str, new_text: str) -> Answer:
    if not old_text or old_text == new_text:
        raise NothingToEdit
    before = writing.text_of(folder, path)
    if "\r\n" in before and "\r\n" not in old_text:  # lines are shown without their ends
        old_text, new_text = (text.replace("\n", "\r\n") for text in (old_text, new_text))
    times = _times(before, old_text)
    if times == 0:
        raise OldTextNotFound(path=path)
    if times > 1:
        raise OldTextNotUnique(path=path, times=times)
    after = before.replace(old_text, new_text)
    data = writing.checked(after, path)
    writing.put_bytes(folder, path, data)
    details = {"path": path, "bytes": len(data), "diff": diffs.between(before, after, path)}
    return Answer(f"Edited {path}: {len(data):,} bytes now.", details)


def _times(text: str, part: str) -> int:
    """In how many places a text has a part; they may overlap."""
    times, at = 0, text.find(part)
    while at != -1:
        times, at = times + 1, text.find(part, at + 1)
    return times

"""Writes and edits text files in the form that they have: encoding, byte order mark and line ends."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from workspace.errors import ContentTooLarge, FileNotText, NothingToEdit, PathNotFound
from workspace.files import opening, reading
from workspace.files.diff import render_diff
from workspace.files.folder import Folder
from workspace.files.incoming import write_bytes
from workspace.files.text_form import (
    BOM,
    TextForm,
    adapt_line_ends,
    describe_change,
    describe_encoding,
    find_line_end,
    is_text,
    read_form,
)
from workspace.files.text_match import describe_signs, find_once, get_folded_line_end, replace_text
from workspace.results import CallResult

MAX_BYTES = 1_000_000


class _StoredText(NamedTuple):
    text: str
    """Without its byte order mark; the beginning of a text that is too large."""
    form: TextForm
    size: int

    @property
    def is_whole(self) -> bool:
        return self.size <= MAX_BYTES


def write_file(folder: Folder, path: str, content: str, *, append: bool = False) -> CallResult:
    try:
        stored = _read_stored(folder, path)
    except PathNotFound:
        data = _encode(content, "content")
        write_bytes(folder, path, data)
        text = f"Created {path}: {len(data):,} bytes."
        return _create_result(text, path, "", content, created=True)
    if append:
        return _append(folder, path, stored, content)
    line_end = stored.form.line_ends[0] if stored.form.line_ends else None
    after = adapt_line_ends(content.removeprefix(BOM), line_end)
    has_bom = stored.form.has_bom or content.startswith(BOM)
    data = _encode(after, "content", has_bom=has_bom)
    replaced = write_bytes(folder, path, data)
    before, form = stored.form, replace(read_form(after), has_bom=has_bom)
    if not stored.is_whole:
        before = replace(before, ends_last_line=form.ends_last_line)
    kept = form.describe() if (BOM * has_bom + after) != content else ""
    notes = [*([f"Kept: {kept}."] if kept else []), *describe_change(before, form), *_describe_links(replaced)]
    text = f"{'Created' if replaced is None else 'Replaced'} {path}: {len(data):,} bytes."
    shown = stored.text if stored.is_whole else None
    return _create_result(text, path, shown, after, notes, size=len(data), created=replaced is None)


def _append(folder: Folder, path: str, stored: _StoredText, content: str) -> CallResult:
    before = _require_whole(stored, path)
    added = adapt_line_ends(content, find_line_end(before, len(before), len(before)))
    after = before + added
    data = _encode(after, path, has_bom=stored.form.has_bom)
    replaced = write_bytes(folder, path, data)
    form, notes = stored.form, list[str]()
    if not form.ends_last_line and added:
        notes.append("Its last line had no line end, so what was added continues that line.")
        form = replace(form, ends_last_line=read_form(after).ends_last_line)
    notes += [*([f"Kept: {form.describe()}."] if added != content else []), *_describe_result(form, after, replaced)]
    lines = after.count("\n")
    text = f"Added {len(added.encode()):,} bytes to {path}: {len(data):,} bytes and {lines:,} lines now."
    return _create_result(text, path, before, after, notes, size=len(data), appended=True)


def edit_file(folder: Folder, path: str, old_text: str, new_text: str) -> CallResult:
    if not old_text or old_text == new_text:
        raise NothingToEdit
    stored = _read_stored(folder, path)
    before = _require_whole(stored, path)
    if "\r\n" in old_text and "\r\n" not in before:  # a model that writes CRLF everywhere
        old_text, new_text = old_text.replace("\r\n", "\n"), new_text.replace("\r\n", "\n")
    start, end = find_once(before, old_text, path)
    there = before[start:end]
    adapt = partial(adapt_line_ends, line_end=find_line_end(before, start, end))
    new = replace_text(there, old_text, new_text, adapt=adapt, line_end=get_folded_line_end(before))
    after = before[:start] + new + before[end:]
    data = _encode(after, path, has_bom=stored.form.has_bom)
    replaced = write_bytes(folder, path, data)
    signs = describe_signs(there, old_text)
    notes = [f"Other signs were matched: {signs}. They stay where new_text repeats old_text."] if signs else []
    notes += _describe_result(stored.form, after, replaced)
    return _create_result(f"Edited {path}: {len(data):,} bytes now.", path, before, after, notes, size=len(data))


def delete(folder: Folder, path: str) -> None:
    with opening.open_file(folder.descriptor, path):
        *above, name = opening.split_path(path)
    with opening.open_directory(folder.descriptor, above) as at, opening.translate_errors(at, name, path):
        os.unlink(name, dir_fd=at)


def _read_stored(folder: Folder, path: str) -> _StoredText:
    """Raises `FileNotText` if the file, or the beginning of a large one, is not UTF-8."""
    with opening.open_file(folder.descriptor, path) as opened:
        data = opened.file.read(MAX_BYTES)
        size = max(len(data), opened.size)
    if not is_text(data, is_whole=size <= MAX_BYTES):
        raise FileNotText(path=path, encoding=describe_encoding(data), size=size, type=reading.guess_type(path))
    text = data.decode(errors="ignore")  # only the last character of a large file is cut
    return _StoredText(text.removeprefix(BOM), read_form(text), size)


def _require_whole(stored: _StoredText, path: str) -> str:
    if not stored.is_whole:
        raise ContentTooLarge(what=path, size=stored.size, most=MAX_BYTES, instead="change it with a command")
    return stored.text


def _encode(text: str, what: str, *, has_bom: bool = False) -> bytes:
    data = (BOM * has_bom + text).encode()
    if len(data) > MAX_BYTES:
        instead = "write it in parts with a command"
        raise ContentTooLarge(what=what, size=len(data), most=MAX_BYTES, instead=instead)
    return data


def _describe_result(before: TextForm, after: str, replaced: os.stat_result | None) -> Iterator[str]:
    yield from describe_change(before, replace(read_form(after), has_bom=before.has_bom))
    yield from _describe_links(replaced)


def _describe_links(replaced: os.stat_result | None) -> Iterator[str]:
    if replaced and (others := replaced.st_nlink - 1) > 0:
        names = "another name" if others == 1 else f"{others:,} other names"
        yield f"The file has {names} (hard links), where the old content stays: only this path was changed."


def _create_result(
    text: str, path: str, before: str | None, after: str, notes: list[str] | None = None, **more: Any
) -> CallResult:
    size = more.pop("size", None) or len(after.encode())
    details = {"path": path, **more, "bytes": size, "diff": render_diff(before, after, path)}
    return CallResult(" ".join([text, *(notes or [])]), details | ({"notes": notes} if notes else {}))

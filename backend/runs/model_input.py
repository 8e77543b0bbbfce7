"""What the model of a run reads: its conversation or assignment, the user's memory, and the notes of a directory."""

from backend.context.memory import render_directory, render_directory_notes, render_memory
from backend.context.render import render_records
from backend.context.schedules import render_results
from backend.context.window import Window, choose_window
from backend.conversations.records import Entry, Run, Timeline
from backend.conversations.schedule_results import load_results
from backend.runs.outcomes import RunError
from backend.runs.sub_agents import add_results, render_history
from backend.tools.run_context import RunContext, RunSubAgent
from backend.tools.workspace.tools import WorkspaceTools
from common.database import Database


def create_context(
    run: Run,
    history: Timeline,
    *,
    message: Entry | None,
    parent: RunContext | None,
    workspace: WorkspaceTools | None,
    run_sub_agent: RunSubAgent,
    tokens: int,
) -> RunContext:
    """The history of a sub-agent's run has neither the memory nor the directory: its `parent` has them."""
    time_zone = (message.details or {}).get("time_zone") if message else None
    folder = workspace.folder_of(run.conversation_id, run.agent) if workspace else ""
    memory, directory = (parent.memory, parent.directory) if parent else (history.memory, history.directory)
    if workspace is None:
        directory = None
    elif folder != run.conversation_id:  # an agent that may send data elsewhere reads neither
        memory, directory = "", None
    notes = render_memory(memory, tokens=tokens).notes
    if directory and not run.is_sub_agent:
        notes += render_directory(directory)
    return RunContext(run, run_sub_agent, time_zone, folder, directory, memory, notes)


async def prepare_folder(context: RunContext, workspace: WorkspaceTools | None, *, is_new: bool, tokens: int) -> str:
    """Gives a new sub-agent with a folder of its own the uploads; returns the notes of the directory in which it works.

    Raises `RunError` if no conversation can work in directories any more.
    """
    run, folder, directory = context.run, context.folder, context.directory
    if workspace is None or not run.is_sub_agent:
        return ""
    if is_new and folder != run.conversation_id:
        await workspace.give_uploads(run.conversation_id, folder, user_id=run.user_id)
    if directory is None:
        return ""
    if not workspace.has_owner:
        raise RunError("no_directories")
    notes = await workspace.read_notes(folder, directory, user_id=run.user_id)
    return render_directory_notes(*notes, tokens=tokens) if notes else ""


async def choose_history(database: Database, run: Run, history: Timeline, *, notes: str, tokens: int) -> Window:
    if run.is_sub_agent:
        return Window(render_records(render_history(run, history, notes=notes)), head=1)  # its assignment stays
    if run.schedule_id is not None:  # it reads the last results, however long its conversation is
        results = render_results(await load_results(database, run))
        return Window(render_records(history.of_run(run.id)), results, head=1)
    await add_results(database, run.user_id, history)
    return choose_window(history, tokens=tokens)

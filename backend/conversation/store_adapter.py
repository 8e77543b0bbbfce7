"""ChatKit's Store over PostgreSQL, and what a turn needs beside it: fenced writes and the whole history."""

import logging
from collections.abc import Callable, Iterable, Sequence

import psycopg
import sqlalchemy
from chatkit.store import Store, StoreItemType
from chatkit.types import Attachment, Page, ThreadItem, ThreadMetadata, WidgetItem
from sqlalchemy import ColumnElement, Text, and_, delete, literal, literal_column, union_all, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlmodel import col, select
from sqlmodel.ext.asyncio.session import AsyncSession
from sqlmodel.sql.expression import SelectOfScalar

from backend.conversation import reading, rows, statements
from backend.conversation.acting import Acting
from backend.conversation.items import Hidden, Summarised, Widget
from backend.conversation.models import Conversation, Message, Run
from backend.conversation.reading import COVERED, SUMMARISED, LeftOut, Recent
from backend.conversation.rows import VISIBLE, Storable, StoredItem, from_item, to_item, to_thread
from backend.conversation.runs import branches, events, inbox, leases
from backend.conversation.runs.inbox import Input
from backend.conversation.runs.leases import CONVERSATION_LOCKED, CONVERSATIONS
from backend.conversation.statements import LOAD_CONVERSATION, SentPage
from backend.errors import LeaseLost, NotFound
from service.database import Pipeline, new_id, pipelined, transaction

logger = logging.getLogger(__name__)

_WIDGET = literal_column("'widget'")  # in words, as the partial index has it
_REDRAWN = 20  # widgets at the end of a thread that follow a change of their tasks
_PREFIXES: dict[StoreItemType, str] = {
    "thread": "thr",
    "message": "msg",
    "tool_call": "tc",
    "workflow": "wf",
    "task": "tsk",
    "attachment": "atc",
    "sdk_hidden_context": "shcx",
}


class PostgresStore(Store[Acting]):
    """Threads are `conversations`, items are `messages`; what was never yours is not found."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.engine = engine

    def generate_thread_id(self, context: Acting) -> str:
        return new_id("thr")

    def generate_item_id(self, item_type: StoreItemType, thread: ThreadMetadata, context: Acting) -> str:
        return new_id(_PREFIXES[item_type])

    # Threads

    async def load_thread(self, thread_id: str, context: Acting) -> ThreadMetadata:
        async with pipelined(self.engine, context.user_id) as pipeline:
            found = await pipeline.send(LOAD_CONVERSATION, conversation=thread_id, owner=context.user_id)
        row = await found.fetchone()
        if row is None:
            raise NotFound
        return to_thread(row)

    async def open_thread(
        self, thread_id: str, limit: int, context: Acting
    ) -> tuple[ThreadMetadata, Page[ThreadItem], list[Input]]:
        """A thread, its first page, and what was said to it that was not read yet, in order; one round trip."""
        async with pipelined(self.engine, context.user_id) as pipeline:
            found = await pipeline.send(LOAD_CONVERSATION, conversation=thread_id, owner=context.user_id)
            waiting = await inbox.send_waiting(pipeline, thread_id, user_id=context.user_id)
            sent = await _send_page(pipeline, thread_id, None, limit, "asc", context)
        row = await found.fetchone()
        if row is None:
            raise NotFound
        return to_thread(row), await _page_of(sent, limit), await inbox.waiting(waiting)

    async def save_thread(self, thread: ThreadMetadata, context: Acting) -> None:
        """Save the metadata; never the items, which a `Thread` may carry."""
        values = {
            "title": thread.title,
            "status": thread.status.model_dump(mode="json"),
            "allowed_image_domains": thread.allowed_image_domains,
            "details": thread.metadata,
        }
        statement = update(Conversation).where(_own_thread(thread.id, context)).values(values)
        async with transaction(self.engine, context.user_id) as session:
            found = (await session.exec(statement.returning(col(Conversation.id)))).first()
            await _fence(session, context)  # after it: the conversation is locked before its runs
            if found is None:
                raise NotFound

    async def load_threads(
        self, limit: int, after: str | None, order: str, context: Acting, *, titled: str = ""
    ) -> Page[ThreadMetadata]:
        """`titled`: only those whose title has these letters, large or small."""
        owned = CONVERSATIONS.c.user_id == context.user_id
        key = CONVERSATIONS.c.id
        query = sqlalchemy.select(CONVERSATIONS, leases.ANSWERING_IN_EACH.label("answering")).where(owned)
        query = query.limit(limit + 1)
        if titled:
            query = query.where(CONVERSATIONS.c.title.icontains(titled, autoescape=True))
        query = query.order_by(key.desc() if order == "desc" else key.asc())
        async with transaction(self.engine, context.user_id) as session:
            connection = await session.connection()
            if after is not None:
                if (await connection.execute(sqlalchemy.select(key).where(owned, key == after))).first() is None:
                    raise NotFound
                query = query.where(key < after if order == "desc" else key > after)
            found = (await connection.execute(query)).mappings().all()
        more = len(found) > limit
        threads = [to_thread(dict(row)) for row in found[:limit]]
        return Page(data=threads, has_more=more, after=threads[-1].id if more else None)

    async def delete_thread(self, thread_id: str, context: Acting) -> None:
        async with transaction(self.engine, context.user_id) as session:
            where = {"conversation": thread_id, "owner": context.user_id}
            await (await session.connection()).execute(CONVERSATION_LOCKED, where)
            await leases.cancel(session, user_id=context.user_id, conversation_id=thread_id)
            runs = (await session.exec(_followed_runs(thread_id, context))).all()
            statement = delete(Conversation).where(_own_thread(thread_id, context)).returning(col(Conversation.id))
            if (await session.exec(statement)).first() is None:
                raise NotFound
            await events.forget(session, runs, user_id=context.user_id)

    # Items

    async def load_thread_items(
        self, thread_id: str, after: str | None, limit: int, order: str, context: Acting
    ) -> Page[ThreadItem]:
        """Visible items in the order of writing: a full page, or what fits into its bytes. `after` is any item's id."""
        async with pipelined(self.engine, context.user_id) as pipeline:
            sent = await _send_page(pipeline, thread_id, after, limit, order, context)
        return await _page_of(sent, limit)

    async def load_item(self, thread_id: str, item_id: str, context: Acting) -> ThreadItem:
        shown = select(Message).where(_shown_item(thread_id, item_id, context))
        async with transaction(self.engine, context.user_id) as session:
            row = (await session.exec(shown)).first()
        item = to_item(row) if row is not None else None
        if item is None:
            raise NotFound
        return item

    async def add_thread_item(self, thread_id: str, item: ThreadItem, context: Acting) -> None:
        await self.write(thread_id, [item], context)

    async def save_item(self, thread_id: str, item: ThreadItem, context: Acting) -> None:
        await self.write(thread_id, [item], context)

    async def delete_thread_item(self, thread_id: str, item_id: str, context: Acting) -> None:
        """Take an item out of the thread; its row stays, marked with the run that replaced it."""
        mark = context.run_id or "removed"
        statement = update(Message).where(_in_thread(thread_id, context), col(Message.id) == item_id)
        async with transaction(self.engine, context.user_id) as session:
            await _fence(session, context)
            await session.exec(statement.values(superseded_by=mark))

    async def write(self, thread_id: str, items: Sequence[Storable], context: Acting) -> None:
        """Insert items, or bring those already there up to date, in one transaction.

        Raises `LeaseLost` for a turn that was taken over, `NotFound` for a conversation of somebody else.
        """
        try:
            async with pipelined(self.engine, context.user_id) as pipeline:
                written = await statements.send_items(pipeline, thread_id, items, context)
        except IntegrityError as error:
            if isinstance(error.orig, psycopg.errors.ForeignKeyViolation):
                raise NotFound from None  # no such conversation of theirs
            raise
        if written.rowcount < len(items):
            raise LeaseLost

    async def redraw(
        self,
        thread_id: str,
        redrawn: Callable[[Widget], Widget | None],
        context: Acting,
        *,
        sender: str | None = None,
        note: Hidden | None = None,
    ) -> list[Widget]:
        """Replace widgets by what `redrawn` makes of them, if anything, and add the note; returns the new ones.

        Looks at the newest of the thread and at the one named `sender`. Two at once go one after the other.
        """
        shown = and_(_in_thread(thread_id, context), col(Message.kind) == _WIDGET, col(Message.superseded_by).is_(None))
        newest = select(Message.id).where(shown).order_by(col(Message.seq).desc()).limit(_REDRAWN).subquery()
        wanted = union_all(select(newest.c.id), select(literal(sender, Text)))
        found = select(Message).where(shown, col(Message.id).in_(wanted))
        after: list[Widget] = []
        async with transaction(self.engine, context.user_id) as session:
            await session.exec(_shared(thread_id, context))
            await _fence(session, context)
            if note is not None:
                await session.exec(insert(Message).values(from_item(thread_id, note, context)))
            for row in (await session.exec(found.order_by(col(Message.seq)).with_for_update())).all():
                before = to_item(row)
                if isinstance(before, WidgetItem) and (item := redrawn(rows.widget(before))) is not None:
                    changed = update(Message).where(_in_thread(thread_id, context), col(Message.id) == row.id)
                    await session.exec(changed.values(item=from_item(thread_id, item, context)["item"]))
                    after.append(item)
        return after

    async def history(self, thread_id: str, context: Acting, *, newest: int = reading.MOST) -> Recent:
        """What still counts, hidden rows too: everything after the last summary, the `newest` rows at most."""
        async with pipelined(self.engine, context.user_id) as pipeline:
            sent = await reading.send_recent(pipeline, thread_id, user_id=context.user_id, most=newest)
        return await sent.recent()

    async def left_out(self, thread_id: str, context: Acting, *, up_to: int, oldest: int = reading.MOST) -> LeftOut:
        """What a next summary is made of: the `oldest` rows after the last one, up to a `seq`."""
        async with pipelined(self.engine, context.user_id) as pipeline:
            sent = await reading.send_left_out(pipeline, thread_id, user_id=context.user_id, up_to=up_to, most=oldest)
        return await sent.left_out()

    async def add_summary(
        self, thread_id: str, text: str, *, covers: int, context: Acting, line: Summarised | None = None
    ) -> bool:
        """Keep a summary of all rows up to a `seq`, and the line that tells of it or what that says by now.

        Returns False where those rows were replaced meanwhile, or one covers them already. It belongs to the run of the
        context, after which it was made: it is replaced with that run's rows, and not kept once they are. It needs no
        lease.
        """
        content = {"kind": "summary", "text": text, "covers": covers}
        if line is not None:
            content |= {"line": line.id, "messages": line.messages}
        item = Hidden(id=new_id("sum"), content=content)
        counts = select(Message.id).where(_in_thread(thread_id, context), col(Message.superseded_by).is_(None))
        last = counts.where(col(Message.seq) == covers).with_for_update()
        known = counts.where(col(Message.kind) == SUMMARISED, covers <= COVERED)
        newest = select(Message.run_id, Message.superseded_by).where(_in_thread(thread_id, context))
        recent = newest.order_by(col(Message.seq).desc()).limit(reading.MOST).subquery()
        replaced = select(recent.c.run_id).where(
            recent.c.run_id == context.run_id, recent.c.superseded_by.not_in(["removed", context.run_id or ""])
        )
        async with transaction(self.engine, context.user_id) as session:
            # Two jobs that summarise the same rows wait for each other here, so that the second sees the first's; and
            # who replaces the rows waits, so that it replaces the summary, too, or has replaced the rows before.
            await session.exec(_shared(thread_id, context))
            if (await session.exec(last)).first() is None:
                return False
            if any([(await session.exec(found)).first() for found in (known, replaced)]):
                return False
            for row in [from_item(thread_id, one, context) for one in (line, item) if one is not None]:
                written = insert(Message).values(row)
                at = ["user_id", "conversation_id", "id"]
                await session.exec(written.on_conflict_do_update(index_elements=at, set_={"item": row["item"]}))
        return True

    async def save_feedback(
        self, thread_id: str, item_ids: Iterable[str], feedback: str | None, context: Acting
    ) -> None:
        """Keep the feedback on all of the items, or, when one is not there, on none; None takes it back."""
        wanted = set(item_ids)
        statement = (
            update(Message)
            .where(
                _in_thread(thread_id, context),
                col(Message.id).in_(wanted),
                col(Message.kind).in_(VISIBLE),
                col(Message.superseded_by).is_(None),
            )
            .values(feedback=feedback)
            .returning(col(Message.id))
        )
        async with transaction(self.engine, context.user_id) as session:
            await session.exec(_shared(thread_id, context))
            if len((await session.exec(statement)).all()) != len(wanted):
                raise NotFound

    # Attachments: the product has none, so no id is ever known

    async def save_attachment(self, attachment: Attachment, context: Acting) -> None:
        raise NotFound

    async def load_attachment(self, attachment_id: str, context: Acting) -> Attachment:
        raise NotFound

    async def delete_attachment(self, attachment_id: str, context: Acting) -> None:
        raise NotFound


def _own_thread(thread_id: str, context: Acting) -> ColumnElement[bool]:
    return and_(col(Conversation.id) == thread_id, col(Conversation.user_id) == context.user_id)


def _shared(thread_id: str, context: Acting) -> SelectOfScalar[str]:
    """Locks the conversation, before several of its messages: no other path is shown until the transaction's end.

    Two who lock messages in another order than each other could wait for each other.
    """
    return select(Conversation.id).where(_own_thread(thread_id, context)).with_for_update(read=True)


def _followed_runs(thread_id: str, context: Acting) -> SelectOfScalar[str]:
    mine = (col(Run.conversation_id) == thread_id, col(Run.user_id) == context.user_id)
    return select(Run.id).where(*mine, col(Run.followed))


def _in_thread(thread_id: str, context: Acting) -> ColumnElement[bool]:
    return and_(col(Message.conversation_id) == thread_id, col(Message.user_id) == context.user_id)


async def _send_page(
    pipeline: Pipeline, thread_id: str, after: str | None, limit: int, order: str, context: Acting
) -> SentPage:
    newest_first = order == "desc"
    return await statements.send_page(
        pipeline, thread_id, user_id=context.user_id, most=limit + 1, newest_first=newest_first, after=after
    )


async def _page_of(sent: SentPage, limit: int) -> Page[ThreadItem]:
    """Raises `NotFound` where the item that the page comes after is not there."""
    if sent.after is not None and await sent.after.fetchone() is None:
        raise NotFound
    found = await sent.rows.fetchall()
    page = [(StoredItem(*(row[name] for name in StoredItem._fields)), row["versions"]) for row in found[:limit]]
    read = [to_item(row, branches.versions(versions, row.id)) for row, versions in page]
    more = bool(found) and found[0]["found"] > len(page)
    after = page[-1][0].id if more else None
    return Page(data=[item for item in read if item is not None], has_more=more, after=after)


def _shown_item(thread_id: str, item_id: str, context: Acting) -> ColumnElement[bool]:
    return and_(
        _in_thread(thread_id, context),
        col(Message.id) == item_id,
        col(Message.kind).in_(VISIBLE),
        col(Message.superseded_by).is_(None),
    )


async def _fence(session: AsyncSession, context: Acting) -> None:
    """A turn that was taken over writes nothing: it must hold its lease to the end of this transaction."""
    if context.run_id is not None:
        await leases.hold(session, context.run_id, user_id=context.user_id)

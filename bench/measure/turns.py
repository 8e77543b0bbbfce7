"""A turn: the person's message, a tool call, the answer."""

from functools import partial

from bench.compared import Compared, Side, cpu_ms, first_ms, in_turns, p50_ms, p99_ms, paired, rate, with_cpu
from bench.drivers import load
from bench.drivers.load import joined
from bench.rows import Row
from bench.stage import Stage

FLOOR, LIMIT, PRODUCT = "Agents SDK", "bare client", "product"
SHORT, LONG = 20, 420  # tokens of an answer


async def turns(stage: Stage, callers: int) -> list[Row]:
    scale = stage.scale
    done = await in_turns(scale.rounds, _sides(stage, "add milk", callers, scale.seconds))
    many = f"{callers} conversation" + "s" * (callers > 1)
    return [
        done.row(f"turn p50, {many}", "ms", p50_ms, PRODUCT, FLOOR),
        done.row(f"turn p99, {many}", "ms", p99_ms, PRODUCT, FLOOR),
        *([_tail(done, f"turn p99, {many}, to its p50")] if callers > 1 else []),
        done.row(f"CPU of a turn, {many}", "ms", cpu_ms, PRODUCT, FLOOR),
        done.row(f"turns a second, {many}", "/s", rate, PRODUCT, FLOOR),
        done.row(f"turns a second, {many}, to the limit", "/s", rate, PRODUCT, LIMIT),
        *([done.row("first event", "ms", first_ms, PRODUCT, LIMIT)] if callers == 1 else []),
    ]


async def chats(stage: Stage) -> list[Row]:
    """A turn at `/chat`, answered whole and as a stream, beside the same turn in ChatKit's protocol."""
    threads, ours = stage.threads, (stage.backend.pid, stage.mcp.pid)
    says = {
        PRODUCT: stage.chat.turns(threads, "add milk"),
        "/chat": lambda: stage.chat.ask(next(threads), "add milk"),
        "/chat/stream": lambda: stage.chat.stream(next(threads), "add milk"),
    }
    seconds = stage.scale.seconds / 2
    sides = {name: with_cpu(partial(load.run, say, callers=1, seconds=seconds), ours) for name, say in says.items()}
    done = await in_turns(stage.scale.rounds, sides)
    return [
        *(done.row(f"turn p50 at {name}", "ms", p50_ms, name, PRODUCT) for name in ("/chat", "/chat/stream")),
        *(done.row(f"CPU of a turn at {name}", "ms", cpu_ms, name, PRODUCT) for name in ("/chat", "/chat/stream")),
    ]


def _tail(done: Compared, name: str) -> Row:
    everything = joined(done.loads[PRODUCT])
    p50, p99 = p50_ms(everything), p99_ms(everything)
    return Row(name, p99, "ms", p50, "its p50", p99 / p50)


async def tokens(stage: Stage) -> list[Row]:
    """What one more token of an answer costs: long answers less short ones, taken in turns."""
    rounds, seconds = stage.scale.rounds, stage.scale.seconds / 2
    short = _sides(stage, f"say {SHORT}", 1, seconds)
    long = _sides(stage, f"say {LONG}", 1, seconds)
    sides = {f"{name} {size}": side for size, of in ((SHORT, short), (LONG, long)) for name, side in of.items()}
    done = await in_turns(rounds, sides)
    cost = {name: _per_token_us(done, name) for name in (PRODUCT, FLOOR, LIMIT)}
    return [
        paired("a streamed token", "µs", cost[PRODUCT], cost[LIMIT], LIMIT),
        paired("a streamed token, to the floor", "µs", cost[PRODUCT], cost[FLOOR], FLOOR),
    ]


def _per_token_us(done: Compared, name: str) -> list[float]:
    short, long = (done.figures(f"{name} {size}", p50_ms) for size in (SHORT, LONG))
    return [(more - less) * 1000 / (LONG - SHORT) for less, more in zip(short, long, strict=True)]


def _sides(stage: Stage, text: str, callers: int, seconds: float) -> dict[str, Side]:
    say = stage.chat.turns(stage.threads, text)
    ours = (stage.backend.pid, stage.mcp.pid)
    return {
        PRODUCT: with_cpu(partial(load.run, say, callers=callers, seconds=seconds), ours),
        FLOOR: with_cpu(partial(stage.floor.run, text, callers=callers, seconds=seconds), [stage.floor.pid]),
        LIMIT: partial(stage.limit.run, text, callers=callers, seconds=seconds),
    }

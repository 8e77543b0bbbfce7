"""A run from its message to its outcome: executed in one process, recorded in rows, followed from any process.

Of a process: `RunService` is what APIs call, `Executor` has the trees of runs that the process executes, `Streams` lets
readers follow runs. Of a tree: `LiveRun`, with its `RunStream`. Of a run: `Execution` is the loop and the hooks of the
SDK, `Recorder` stores and publishes, and `RunContext` is what tools know.
"""

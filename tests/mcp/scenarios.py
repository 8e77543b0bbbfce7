"""The scenarios of the MCP conformance suite, for each protocol version: what must pass, and what does not apply.

The suite drives a server of its own with tools, prompts and resources of fixed names. Where this server has none, a
scenario says nothing of it, even one that passes: an empty list is a valid list, an unknown tool is an error.
"""

from tests.mcp.wire import LEGACY, MODERN

# How many checks each of them makes, so that one which makes fewer is noticed.
MUST_PASS: dict[str, dict[str, int]] = {
    LEGACY: {
        "server-initialize": 2,
        "ping": 2,
        "tools-list": 3,
        "dns-rebinding-protection": 2,
    },
    MODERN: {
        "server-stateless": 22,
        "tools-list": 4,
        "caching": 7,
        "dns-rebinding-protection": 2,
        "http-header-validation": 14,
        "server-sse-multiple-streams": 1,
    },
}

# Checks of those scenarios that call for one of the suite's own tools, or for prompts.
NEED_A_FIXTURE: dict[str, set[str]] = {
    "server-stateless": {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-server-declares-prompts-in-discover",
    },
}

_IN_BOTH: dict[str, set[str]] = {
    "no prompts": {
        "prompts-list",
        "prompts-get-simple",
        "prompts-get-with-args",
        "prompts-get-embedded-resource",
        "prompts-get-with-image",
    },
    "no resources": {"resources-list", "resources-read-text", "resources-read-binary", "resources-templates-read"},
    "nothing to complete: no prompts and no resource templates": {"completion-complete"},
    "the tools answer with text and structured content, not with images, sound or resources": {
        "tools-call-image",
        "tools-call-audio",
        "tools-call-embedded-resource",
        "tools-call-mixed-content",
    },
    "the tools answer at once and tell no progress": {"tools-call-with-progress"},
    "calls the suite's own tools; our tests call ours": {
        "tools-call-simple-text",
        "tools-call-error",
        "json-schema-2020-12",
    },
}

DOES_NOT_APPLY: dict[str, dict[str, set[str]]] = {
    LEGACY: {
        **_IN_BOTH,
        "no resources": _IN_BOTH["no resources"] | {"resources-subscribe", "resources-unsubscribe"},
        "no log messages to the client": {"logging-set-level", "tools-call-with-logging"},
        "the server asks the client nothing back: no sampling, no elicitation": {
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        },
        "no sessions and no streams: each request is answered with one JSON message": {
            "server-session-lifecycle",
            "server-sse-multiple-streams",
            "server-sse-polling",
        },
    },
    MODERN: {
        **_IN_BOTH,
        "no resources": _IN_BOTH["no resources"] | {"sep-2164-resource-not-found"},
        "no tool takes a parameter from a header": {"http-custom-header-server-validation"},
        "the server asks the client nothing back: no tool needs input": {
            "input-required-result-basic-elicitation",
            "input-required-result-basic-sampling",
            "input-required-result-basic-list-roots",
            "input-required-result-request-state",
            "input-required-result-multiple-input-requests",
            "input-required-result-multi-round",
            "input-required-result-missing-input-response",
            "input-required-result-non-tool-request",
            "input-required-result-result-type",
            "input-required-result-unsupported-methods",
            "input-required-result-tampered-state",
            "input-required-result-capability-check",
            "input-required-result-ignore-extra-params",
            "input-required-result-validate-input",
        },
        "the tasks extension (long-running tool calls) is not offered": {
            "tasks-lifecycle",
            "tasks-capability-negotiation",
            "tasks-wire-fields",
            "tasks-request-state-removal",
            "tasks-mrtr-input",
            "tasks-request-headers",
            "tasks-dispatch-and-envelope",
            "tasks-status-notifications",
            "tasks-required-task-error",
            "tasks-mrtr-composition",
        },
    },
}

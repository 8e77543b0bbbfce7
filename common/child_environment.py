"""What `./todo up` gives its parts of the environment: each what it reads, and nothing else of the person's.

Standard library only: `./todo` answers before packages.
"""

import re
from collections.abc import Mapping

RENAMED = {
    "LIMIT_TURNS_PER_MINUTE": "LIMIT_RUNS_PER_MINUTE",
    "LIMIT_TURNS_PER_DAY": "LIMIT_RUNS_PER_DAY",
    "LIMIT_TURNS_AT_ONCE": "LIMIT_RUNS_AT_ONCE",
    "LIMIT_RUNNING_TURNS": "LIMIT_RUNNING_RUNS",
    "LIMIT_TURN_SECONDS": "LIMIT_RUN_SECONDS",
}
"""Settings of the backend that had another name in version 0.1.0, which is read until the next release."""

_PROCESS = r"PATH|HOME|USER|LOGNAME|TMPDIR|TZ|LANG|LANGUAGE|LC_\w+|PYTHON\w+|LD_\w+|DYLD_\w+|MALLOC_\w+"
_DATABASE = r"DATABASE_URL|PG\w+|PSYCOPG_\w+|KRB5\w+"
_LIMITS = r"LIMIT_(CONNECTIONS|HEADERS|HEADER_BYTES|REQUEST_BYTES)|(READ|WRITE|IDLE)_TIMEOUT_SECONDS"
_REQUESTS = r"(HTTP|HTTPS|ALL|NO)_PROXY|SSL_CERT_\w+|\w+_CA_BUNDLE|OTEL_\w+"
_STANCE = r"ALLOWED_(HOSTS|ORIGINS)|TRUSTED_PROXIES|DRAIN_SECONDS|AUTH_MODE"
_ANY = rf"{_PROCESS}|{_LIMITS}|LOG_\w+|OTEL_EXPORTER_OTLP_ENDPOINT|{_STANCE}"
_SERVICE = (
    rf"{_ANY}|{_DATABASE}|LISTEN_DATABASE_URL|DATABASE_PREPARED|{_REQUESTS}|MCP_URL"
    r"|TIME_ZONE|TEST_NOW|MCP_TOKEN_SECRET|AUTH_(NONE_BEYOND_LOOPBACK|JWT_SECRET|JWKS_URL|JWKS_MAX_AGE_SECONDS|ISSUER)"
)
_READ = {
    "backend": rf"{_SERVICE}|BACKEND_\w+|MCP_(INTERNAL_URL|RESEND_SECONDS)|AUTH_AUDIENCE|CHATKIT_\w+"
    r"|LLM_\w+|(CEREBRAS|ANTHROPIC|GEMINI|GROQ|MISTRAL|OPENROUTER)_API_KEY|OPENAI_\w+|OFFLINE_URL"
    r"|APPROVALS|HISTORY_TOKENS|AGENTS|AGENT_MODEL_TURNS|MCP_SERVERS_FILE|WORKSPACE_(URL|TOKEN_SECRET)|LIMIT_(AGENT_RUNS|FILE_BYTES)"
    r"|LIMIT_(RUNS_PER_MINUTE|RUNS_PER_DAY|RUNS_AT_ONCE|LAG_SECONDS|RUN_SECONDS|RUNNING_RUNS|CONVERSATIONS)"
    r"|LIMIT_(REQUESTS_PER_MINUTE|MESSAGE_CHARS|ANSWER_CHARS|CALENDAR_READS_PER_MINUTE)"
    rf"|TOOL_WAIT_SECONDS|{'|'.join(RENAMED)}",
    "mcp_server": rf"{_SERVICE}|MCP_(HOST|PORT|WORKERS)"
    r"|LIMIT_(TOOL_CALLS_PER_MINUTE|TASKS|CHANGES_PER_DAY)|KEEP_CHANGES_DAYS",
    "workspace": rf"{_ANY}|WORKSPACE_\w+|LIMIT_(FILE_BYTES|(FOLDER|PERSON)_(BYTES|FILES)|COMMANDS)|KEEP_FOLDERS_DAYS",
    "migrations": rf"{_PROCESS}|{_DATABASE}|MIGRATION_DATABASE_URL|BACKUP_DIR|DUMP_MADE",
    "offline_model": rf"{_PROCESS}|{_LIMITS}|OFFLINE_(HOST|PORT|TOKEN_DELAY|SCRIPTED)",
}
PARTS = (*_READ,)
_PLAIN = re.compile(_PROCESS, re.IGNORECASE)  # of every program's
_PATTERNS = {part: re.compile(names, re.IGNORECASE) for part, names in _READ.items()}


def to(part: str, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of the environment that a part reads, whether by itself or by what it is made of."""
    return {name: value for name, value in environment.items() if _PATTERNS[part].fullmatch(name)}


def is_setting(name: str) -> bool:
    """Whether it is one of a part's own variables, secrets among them."""
    return not _PLAIN.fullmatch(name) and any(pattern.fullmatch(name) for pattern in _PATTERNS.values())

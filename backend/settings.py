import re
from collections.abc import Callable
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from common import ISSUER
from common.environment import CONFIG, CommaSeparated, require
from common.mail import is_email_address, read_sender, read_smtp_url
from common.server.private_address import is_private
from common.settings import (
    WRONG_ISSUER,
    HttpUrl,
    PageSettings,
    Secret,
    ServiceSettings,
    SignInSettings,
    is_address,
    is_loopback,
    limit_per_user,
)

ProviderName = Literal[
    "cerebras",
    "openai",
    "anthropic",
    "gemini",
    "groq",
    "mistral",
    "openrouter",
    "ollama",
    "vllm",
    "lmstudio",
    "llamacpp",
    "offline",
    "custom",
]
ToolCalls = Literal["streamed", "whole", "text"]
Roles = Literal["any", "alternate"]
ModelApi = Literal["responses", "chat"]
EmptyText = Literal["null", "empty", "missing"]
ReplayForm = Literal["all", "none", "reasoning_content", "extra_content"]
SHUTDOWN_SECONDS = 15.0
"""How long a process that ends may take to store the outcomes of its runs; after that others do."""


_FILE = re.compile(r"/chats/[^/]+/files/")
_CHATS, _CONVERSATION = ("/chat", "/chat/stream"), 4  # there all that was said so far comes with each message


def _is_key(key: SecretStr) -> bool:
    return key.get_secret_value().isascii() and key.get_secret_value().isprintable()


ModelKey = Annotated[
    SecretStr, require(_is_key, "has a character that no key has, such as a typographic quote: copy it again")
]


DeviceHost = Annotated[
    str,
    require(
        lambda host: host in ("auto", "off") or is_private(host),
        "must be auto, off, or a private address of this machine, such as 192.168.1.20",
    ),
]


class AddressSettings(PageSettings, SignInSettings):
    """Where the backend is, and whether people sign in there."""

    backend_host: str = "127.0.0.1"
    """The addresses and ports of the services. 127.0.0.1, ::1 and localhost each mean both loopback addresses.
    ./todo up uses the ports, but always serves this machine only.
    """
    publish: Annotated[str, require(is_address, "must be an address of this machine, such as 0.0.0.0")] | None = None
    """For Docker: PUBLISH=0.0.0.0 lets other machines in your network reach the page, at any address of this machine.
    It needs an AUTH_MODE with sign-in. Default: 127.0.0.1, for this machine only.
    """

    @property
    def is_published(self) -> bool:
        return self.publish is not None and not is_loopback(self.publish)

    @property
    def path(self) -> str:
        """The path below which a proxy serves the backend, such as /todo; empty if it has a host of its own."""
        return urlsplit(self.backend_url or "").path


def _is_header_name(name: str) -> bool:
    return re.fullmatch("[A-Za-z0-9-]+", name) is not None


HeaderName = Annotated[str, require(_is_header_name, "must be the name of a header: letters, digits and hyphens")]


class ProviderSettings(AddressSettings):
    """How users sign in elsewhere: at an identity provider, or at a reverse proxy."""

    oidc_issuer: HttpUrl | None = None
    """For AUTH_MODE=oidc. OIDC_ISSUER is the address of the provider exactly as it names itself; below it is
    /.well-known/openid-configuration. Register this server there as a client, with /session/callback below the address
    of the page as its redirect URI. Without OIDC_CLIENT_SECRET it is a public client, with PKCE alone.
    """
    oidc_client_id: str | None = None
    oidc_client_secret: SecretStr | None = None
    oidc_allowed: CommaSeparated = ()
    """Which of the provider's users may use this server, separated by commas; one match is enough. claim=value: such as
    groups=household. email_domain=example.com: with a verified e-mail address there. *, alone: everybody whom the
    provider signs in. Without it, a service with AUTH_MODE=oidc does not start.
    """
    oidc_scopes: str = "openid profile email"
    """What the provider is asked for, separated by spaces; some send groups only with the scope groups. offline_access
    is added where the provider offers it.
    """
    oidc_name: str | None = None
    """What the button calls the provider: Sign in with …. Default: the host of OIDC_ISSUER."""
    proxy_user_header: HeaderName = "Remote-User"
    """For AUTH_MODE=proxy. The headers in which the proxy names the signed-in user, and how the page calls that user.
    They count only from TRUSTED_PROXIES, which must be set and must not be *. The proxy must remove such headers from
    requests of clients.
    """
    proxy_name_header: HeaderName = "Remote-Name"
    proxy_sign_out_url: HttpUrl | None = None
    """Where the page goes after a sign-out, to be signed out at the proxy. Default: it stays."""

    @property
    def provider_name(self) -> str:
        return self.oidc_name or urlsplit(self.oidc_issuer or "").hostname or ""

    def find_oidc_problem(self) -> str | None:
        """Returns why users cannot sign in at the provider, as a sentence."""
        for name in ("oidc_issuer", "oidc_client_id", "oidc_allowed"):
            if not getattr(self, name):
                return f"AUTH_MODE=oidc needs {name.upper()}. See .env.example for what it means."
        address = urlsplit(self.oidc_issuer or "")
        if address.scheme != "https" and not is_loopback(address.hostname or ""):
            return "OIDC_ISSUER must be an https address, or tokens and codes could be read on the way."
        if address.query or address.fragment:
            return "OIDC_ISSUER must be an address without ? and #."
        if "openid" not in self.oidc_scopes.split():
            return "OIDC_SCOPES must contain openid."
        if "*" in self.oidc_allowed and len(self.oidc_allowed) > 1:
            return "OIDC_ALLOWED=* lets everybody in, so it must stand alone."
        for rule in self.oidc_allowed:
            claim, _, value = rule.partition("=")
            if rule != "*" and not (claim.strip() and value.strip()):
                return "OIDC_ALLOWED must be * or parts such as groups=household and email_domain=example.com."
        return None


class ServersSettings(BaseSettings):
    """Where the other MCP servers are written down."""

    model_config = CONFIG

    mcp_servers_file: Path | None = None
    """A file that lists other MCP servers, in the format of docs/agents.md. Agents may use their tools after you
    approve them. Default for ./todo: the file mcp.json in the folder of .env, if there is one.
    """


class ApprovalSettings(BaseSettings):
    """What needs the user's approval."""

    model_config = CONFIG

    approvals: CommaSeparated = ("bulk", "agents", "connectors")
    """What needs the user's approval, separated by commas: names of tools, such as delete_task, and these words.

    bulk: deleting more than ten tasks in one answer. agents: starting an agent. connectors: tools of other MCP servers,
    unless mcp.json says that the server is read-only. always: every tool call, also of agents. none, alone: nothing.

    With WORKSPACE_CONFINEMENT=none each program of an agent always needs approval. An undo never does.
    """


class TokenLimitSettings(AddressSettings):
    """How many model tokens users may use."""

    limit_tokens_per_day: int | None = limit_per_user(5_000_000)
    """The most model tokens, input and output, that a user may use on a day (UTC): those of answers, agents, titles and
    summaries, as the provider counts them, else four characters a token. Default with sign-in: 5000000, about a
    thousand messages.
    """


def _lists_origins(entries: tuple[str, ...]) -> bool:
    # Not at the top: every command waits for the settings to be read.
    from common.web_origins import AllowedOrigins

    return not entries or _can_read(AllowedOrigins, entries)


def _can_read(read: Callable[[Any], object], text: Any) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _is_recipient(entry: str) -> bool:
    if "*" in entry:
        return entry == "*"
    return is_email_address(f"all{entry}" if entry.startswith("@") else entry)


def _is_contact(text: str) -> bool:
    return text.isascii() and text.isprintable() and re.fullmatch(r"mailto:\S+@\S+|https://\S+", text) is not None


class ChannelSettings(PageSettings):
    """How notifications leave this server, and where to."""

    alert_contact: (
        Annotated[str, require(_is_contact, "must be mailto: with an e-mail address, or an https address")] | None
    ) = None
    """Notifications. ALERT_CONTACT is where the push services of browsers can reach whoever runs this server, such as
    mailto:you@example.com. They get it with each notification. Apple's push service, for iPhones and Safari, demands
    one that exists. Default: BACKEND_URL, if it begins with https.
    """
    alert_hosts: Annotated[
        CommaSeparated,
        require(_lists_origins, "must list hosts such as ntfy.sh or http://192.168.1.5:8080, separated by commas"),
    ] = ()
    """The hosts to which ntfy and webhooks may send, separated by commas: ntfy.sh means https://ntfy.sh, and others are
    written as http://192.168.1.5:8080. A name whose address is this machine's own is never used; list localhost or the
    address itself. Default: none, so that users cannot add ntfy or webhooks.
    """
    smtp_url: (
        Annotated[
            SecretStr,
            require(
                lambda url: _can_read(read_smtp_url, url.get_secret_value()),
                "must be smtps://USER:PASSWORD@HOST or smtp://USER:PASSWORD@HOST:PORT",
            ),
        ]
        | None
    ) = None
    """The mail server that sends notifications by e-mail. smtps://USER:PASSWORD@HOST uses TLS (port 465), smtp://… uses
    STARTTLS (port 587); @ and / in user and password are written as %40 and %2F. TLS is left out only for a server on
    this machine, or with ?tls=off at the end. Without USER:PASSWORD@ there is no login.
    """
    smtp_from: (
        Annotated[str, require(lambda text: _can_read(read_sender, text), "must be such as To-dos <todo@example.com>")]
        | None
    ) = None
    """Who sends these e-mails, such as To-dos <todo@example.com>."""
    smtp_recipients: Annotated[
        CommaSeparated,
        require(lambda entries: all(map(_is_recipient, entries)), "must list addresses, @example.com, or *"),
    ] = ()
    """Who may get them, separated by commas: addresses, @example.com for everybody there, or * for everybody. Otherwise
    any user could send e-mail to strangers in your name.
    """

    @property
    def push_contact(self) -> str | None:
        """The contact that push services get (RFC 8292: `sub`)."""
        if self.alert_contact is not None:
            return self.alert_contact
        address = urlsplit(self.backend_url or "")
        return self.backend_url if address.scheme == "https" and not is_loopback(address.hostname or "") else None

    def find_smtp_problem(self) -> str | None:
        """Returns which setting of e-mail is missing, as a sentence."""
        if self.smtp_url is None or (self.smtp_from and self.smtp_recipients):
            return None
        return "SMTP_URL needs SMTP_FROM and SMTP_RECIPIENTS. See .env.example for what they mean."


class ModelSettings(BaseSettings):
    """Which model answers, and what it is sent."""

    model_config = CONFIG

    llm_provider: ProviderName | None = None
    """The model. LLM_PROVIDER is cerebras, openai, anthropic, gemini, mistral, groq, openrouter, ollama, vllm,
    lmstudio, llamacpp, offline or custom. custom and vllm need LLM_BASE_URL and LLM_MODEL, lmstudio needs LLM_MODEL.
    Default: Cerebras if CEREBRAS_API_KEY or LLM_API_KEY is set; else, with ./todo up only, a model of Ollama on this
    machine (at OLLAMA_HOST; LLM_MODEL chooses which); else the offline model.
    """
    llm_base_url: HttpUrl | None = None
    llm_api_key: ModelKey | None = None
    llm_model: str | None = None
    llm_models: CommaSeparated = ()
    """Other models that users may choose for an answer (./todo chat --model), separated by commas. Default: none."""
    llm_temperature: float = Field(default=0.7, ge=0, le=2)
    """The temperature is not sent to models that do not accept one."""
    llm_max_tokens: int = Field(default=1000, ge=1)
    """The most tokens in one response of the model, reasoning included: for the assistant, and for agents, which write
    files. Default for agents: 8000, or 4000 with ollama, vllm, lmstudio, llamacpp, groq and custom, whose models may
    have a small context.
    """
    llm_agent_max_tokens: int | None = Field(default=None, ge=1)
    llm_first_token_seconds: float = Field(default=300, gt=0)
    """How many seconds to wait for the first token of an answer (a model on your own machine may need minutes), and for
    each further one. After that the answer ends with an error, without a retry. A server that is loading its model is
    waited for as long as for a first token. LIMIT_RUN_SECONDS also ends an answer.
    """
    llm_silence_seconds: float = Field(default=120, gt=0)
    limit_answer_chars: int = Field(default=400_000, ge=1_000)
    """The most characters in one response of a model, reasoning and tool calls included. For each of these characters
    its server may send about 6 bytes in one event and about 100 bytes in all. A longer response ends with an error.
    """
    llm_tool_calls: ToolCalls | None = None
    """How the model makes tool calls. streamed: the normal way. whole: without streaming, for providers that lose
    streamed tool calls; an answer then appears only when it is complete. text: for models without tool calls; the tools
    are described in the prompt, and the calls are read from the model's text. Default: streamed; text for a model
    whose server says that it has no tool calls, or that twice writes a call as text or claims a change without one.
    """
    llm_roles: Roles | None = None
    """Whether messages of the user and of the assistant must alternate, as the chat templates of Mistral and Gemma
    demand: any or alternate. Default: alternate for mistral, vllm, lmstudio, llamacpp and custom, any for the
    others.
    """
    llm_api: ModelApi | None = None
    """Which of OpenAI's APIs the model is asked by: responses or chat (chat completions). Default: responses for
    openai's models that call tools only there while they reason (GPT-5.4 and newer, codex and pro models), chat for
    the others.
    """
    llm_replay: ReplayForm | None = None
    """What a server gets back of what it sent beside a tool call, such as its reasoning and signatures. all: each field
    as it came. none: nothing. reasoning_content: the reasoning in this field, also that of answers without calls, and a
    blank in turns of another model. extra_content: all, and a filler for this field in turns of another model. Default:
    extra_content for gemini, none for groq, all for the others; another form is tried when a server rejects one.
    """
    llm_empty_text: EmptyText | None = None
    """What is sent for the text of a message that has tool calls alone: null, empty or missing. Default: empty for
    ollama, null for the others; another form is tried when a server rejects one.
    """
    llm_omit: CommaSeparated = ()
    """Optional fields that the model's server rejects, separated by commas: stream_options, temperature, max_tokens,
    max_completion_tokens, reasoning_effort; in the Responses API also reasoning_summary and encrypted_reasoning. They
    are not sent. Default: stream_options for mistral, none for the others.
    """
    history_tokens: int | None = Field(default=None, ge=1_000)
    """How many tokens of a conversation are sent to the model, at least 1000; older messages are summarised. Default:
    16000 for cerebras, openrouter and mistral, 32000 for openai, anthropic and gemini, 128000 for offline, 8000 for the
    others.
    """
    cerebras_api_key: ModelKey | None = None
    """The keys of the providers."""
    openai_api_key: ModelKey | None = None
    anthropic_api_key: ModelKey | None = None
    gemini_api_key: ModelKey | None = None
    mistral_api_key: ModelKey | None = None
    groq_api_key: ModelKey | None = None
    openrouter_api_key: ModelKey | None = None
    offline_url: HttpUrl = "http://127.0.0.1:8002/v1"
    """The address at which the backend reaches the offline model, if no other model is set."""


class BackendSettings(
    ProviderSettings,
    TokenLimitSettings,
    ServersSettings,
    ApprovalSettings,
    ChannelSettings,
    ModelSettings,
    ServiceSettings,
):
    """The backend's configuration; every field is an environment variable of the same name."""

    prefix: ClassVar[str] = "BACKEND"

    backend_workers: int = Field(default=1, ge=1, le=64)
    """The number of processes of each service on its one port; each process uses one core. Each opens up to 11
    connections to the database, each backend process two more. PostgreSQL's default limit (max_connections) is 100.
    """
    mcp_internal_url: HttpUrl | None = None
    """The address at which the backend reaches the MCP server, if it is not MCP_URL."""

    agents: Literal["auto", "on", "off"] = "auto"
    """The workspace stores users' files and runs the agents' commands. WORKSPACE_URL is the address at which the
    backend reaches it, and the audience of its tokens; both services use WORKSPACE_TOKEN_SECRET for these.
    WORKSPACE_DIR is a directory that only the workspace's account may enter. ./todo up and Docker set all of these.

    AGENTS=auto: agents work if the workspace has a sandbox for their commands. on: without a sandbox they work too, but
    only with files. off: no agents; ./todo up then starts no workspace.
    """
    workspace_url: HttpUrl | None = None
    workspace_token_secret: Secret | None = None
    limit_agent_runs: int | None = limit_per_user(50)
    """How many agents a user may start in a day. Default with sign-in: 50."""
    agent_model_turns: int = Field(default=30, ge=1)
    """How many requests to the model the agents of one message may make together."""

    auth_audience: str | None = None

    owner_secret: Secret | None = None
    """The secret with which the owner of this machine's directories begins and continues conversations that work in
    one (./todo chat --here). ./todo up makes it, in a file that only its user can read; it needs AUTH_MODE=none.
    """

    device_host: DeviceHost | None = None
    """The private address at which linked devices reach the page with AUTH_MODE=none, at the port of the page: auto
    (that of the default route), an address of this machine, or off. Nothing listens there unless there is a link for a
    device, or a linked device, nor if BACKEND_URL names a proxy. AUTH_NONE_BEYOND_LOOPBACK turns it off: then there are
    no linked devices. Default: off, or with ./todo up auto.
    """

    date_order: Literal["day-first", "month-first"] | None = None  # as `english.DateOrder`, without its grammar
    """The order of day and month in a date such as 12/05 that is typed into the list of tasks or said to the offline
    model: day-first or month-first. Without it such a date is not understood and stays in the title.
    """

    limit_runs_per_minute: int | None = limit_per_user(60)
    """Limits for each user. Default without sign-in: no limits. With sign-in: 60 answers a minute, 1000 a day, 4 at
    once; 5000 conversations; 600 requests a minute, 10 for the calendar; 600 tool calls a minute, and four times as
    many requests of any kind to the MCP server; 10000 tasks, 5000 changes of tasks a day. Each process counts requests
    and tool calls by itself.
    """
    limit_running_runs: int | None = limit_per_user(4)
    limit_runs_at_once: int = Field(
        # A run's reader holds one connection, and a fifth is for other requests.
        default_factory=lambda given: max(1, given["limit_connections"] * 4 // 5),
        ge=1,
    )
    """Overload limits for each backend process, all users together. LIMIT_RUNS_AT_ONCE: answers at the same time
    (default: four fifths of LIMIT_CONNECTIONS). LIMIT_LAG_SECONDS: how late its event loop may be, for most of half a
    second, before it starts no more answers. Further messages are rejected at once, with the time to try again:
    docs/speed.md.
    """
    limit_lag_seconds: float = Field(default=0.02, gt=0)
    limit_run_seconds: float = Field(default=600, gt=0)
    """The most seconds that an answer may take. It continues when the page is closed."""
    limit_runs_per_day: int | None = limit_per_user(1_000)
    limit_conversations: int | None = limit_per_user(5_000)
    limit_requests_per_minute: int | None = limit_per_user(600)
    limit_calendar_reads_per_minute: int | None = limit_per_user(10)
    idempotency_days: int = Field(default=8, ge=1)
    """How many days a message or other request that is sent again with the same idempotency key is recognised."""
    limit_message_chars: int = Field(default=8_000, ge=1)
    """The most characters in one message."""
    limit_file_bytes: int = Field(default=10_000_000, ge=1)
    """Limits of the workspace: bytes of one uploaded file; bytes and files of a folder (each conversation has one);
    bytes and files of all folders of a user (default with sign-in: 1 GB and 100000; without: no limit);
    commands that a user may run at once.
    """

    chatkit_widget: Literal["auto", "on", "off"] = "auto"
    """Whether there is a page /widget with OpenAI's ChatKit widget, whose script the browser loads from OpenAI. auto:
    on localhost, which needs no key, and wherever CHATKIT_DOMAIN_KEY is set (a key from OpenAI's platform for your host
    name). on: always. off: never.
    """
    chatkit_domain_key: str | None = None

    mcp_resend_seconds: float = Field(default=20.0, gt=0)
    """Times in seconds: how long a tool call is retried while the MCP server cannot be reached; how long Stop waits for
    a tool.
    """
    tool_wait_seconds: float = Field(default=10.0, gt=0)

    def max_body_bytes(self, method: str, path: str) -> int:
        """Returns how many bytes the body of a request may have.

        An uploaded file has a limit of its own; at `/chat`, where each message comes with the conversation so far, the
        limit is four times the usual one.
        """
        path = path.removeprefix(self.path)
        if method == "PUT" and _FILE.match(path):
            return self.limit_file_bytes
        return super().max_body_bytes(method, path) * (_CONVERSATION if path in _CHATS else 1)

    def find_problem(self) -> str | None:
        """Returns a sentence about settings that do not fit together; None if they do."""
        if self.is_published and not self.signs_in:
            return (
                "With AUTH_MODE=none there is no sign-in, so other machines must not reach the page at PUBLISH="
                f"{self.publish}: set AUTH_MODE=password, or remove PUBLISH."
            )
        if self.owner_secret is not None and self.signs_in:
            return "OWNER_SECRET is allowed only with AUTH_MODE=none."
        if self.has_workspace and self.workspace_token_secret is None:
            return (
                "WORKSPACE_URL needs WORKSPACE_TOKEN_SECRET, with the same value in both services. Or set AGENTS=off."
            )
        others = self.mcp_token_secret, self.auth_jwt_secret, self.owner_secret
        if self.workspace_token_secret is not None and self.workspace_token_secret in others:
            return "WORKSPACE_TOKEN_SECRET must differ from the other secrets. Make one with `openssl rand -hex 32`."
        if problem := self.find_smtp_problem():
            return problem
        return super().find_problem()

    @property
    def links_devices(self) -> bool:
        """Whether devices of the local network can be linked although there is no sign-in."""
        is_on = self.device_host not in (None, "off") and self.mcp_token_secret is not None
        return is_on and self.serves_this_machine_only

    @property
    def listens_for_devices(self) -> bool:
        """Whether linked devices are served at the private address, and not by a proxy at BACKEND_URL."""
        host = urlsplit(self.backend_url or "http://localhost").hostname
        return self.links_devices and is_loopback(host or "")

    @property
    def has_sessions(self) -> bool:
        return self.signs_in or self.links_devices

    @property
    def has_workspace(self) -> bool:
        return self.agents != "off" and self.workspace_url is not None

    def find_token_problem(self) -> str | None:
        """Returns a sentence about invalid settings of sign-in; None if they are valid."""
        if self.mcp_token_secret is None:
            return f"AUTH_MODE={self.auth_mode} needs MCP_TOKEN_SECRET."
        match self.auth_mode:
            case "jwt":
                return self._find_provider_problem()
            case "oidc":
                return self.find_oidc_problem()
            case "proxy":
                return self._find_proxy_problem()
            case _:
                return None

    def _find_proxy_problem(self) -> str | None:
        if "trusted_proxies" not in self.model_fields_set or not self.trusted_proxies:
            return "AUTH_MODE=proxy needs TRUSTED_PROXIES, the addresses of the proxies that may say who the user is."
        if any(one == "*" or ip_network(one).prefixlen == 0 for one in self.trusted_proxies):
            return "With AUTH_MODE=proxy, TRUSTED_PROXIES must name the proxies: else everybody could be any user."
        if self.proxy_user_header.lower() == self.proxy_name_header.lower():
            return "PROXY_USER_HEADER and PROXY_NAME_HEADER must differ."
        return None

    def _find_provider_problem(self) -> str | None:
        if bool(self.auth_jwt_secret) == bool(self.auth_jwks_url):
            return "AUTH_MODE=jwt needs either AUTH_JWT_SECRET or AUTH_JWKS_URL to check tokens."
        for name in ("auth_issuer", "auth_audience"):
            if not getattr(self, name):
                return f"AUTH_MODE=jwt needs {name.upper()}."
        if self.auth_issuer == ISSUER:
            return WRONG_ISSUER
        if self.auth_audience == self.mcp_url:
            return "AUTH_AUDIENCE must differ from MCP_URL, or tokens for one service would work at the other."
        if self.auth_jwt_secret == self.mcp_token_secret:
            return "AUTH_JWT_SECRET and MCP_TOKEN_SECRET must differ. Make the second with `openssl rand -hex 32`."
        return None

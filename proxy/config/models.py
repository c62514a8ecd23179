"""The data model of the configuration file. `schemas/config.json` is generated from it.

The model validates each value by itself; the `judge_...` functions of the other modules compare values with one
another. The text below a field, here, in choices.py and in traffic.py, is its description in the schema. `schema.py`
reads it from these files.
"""

from __future__ import annotations

from dataclasses import field
from typing import Annotated, Literal

from dragoman.adapters.json_structure import VALUE_LIMIT

from .choices import EmulationChoice, PolicyChoice
from .client_keys import Key
from .config_model import ConfigModel
from .rules import Bounds, SecretText
from .traffic import Breaker, Count, Pool, Price, RateLimits, Retries, Timeouts
from .values import (
    NO_BOOL,
    BaseUrl,
    Bytes,
    HeaderName,
    HeaderValue,
    HostName,
    Label,
    LitellmArgument,
    ModelName,
    ModelPattern,
    Origin,
    ProxyUrl,
    Seconds,
    Secret,
    UpstreamModel,
    Vendor,
    Version,
)
from .vocabulary import AddressName, DialectName, ProfileName, ProtocolName

__all__ = [
    "Config",
    "Drain",
    "Key",
    "Limits",
    "Model",
    "OAuth",
    "Provider",
    "Server",
    "ServerLimits",
    "Store",
    "TargetChoice",
    "Tls",
]

Text = Annotated[str, Bounds(min_length=1)]


class Drain(ConfigModel):
    delay: Seconds = 0.1
    """How long to go on accepting connections after the signal to stop, while `/ready` already says no."""
    timeout: Seconds = 300.0
    """How long running exchanges may go on after that."""


class ServerLimits(ConfigModel):
    connections: Count = 10_000
    """The most connections of clients at one time; further ones are answered 503 and closed."""
    in_flight: Count = 5_000
    """The most requests that are served at one time; new ones get 503. Keys with `priority: low` get it when four
    fifths are reached."""
    large_requests: Count = 256
    """The most large requests that may wait to be read, because they are read one after the other; new ones get 503.
    Large is more than 64 KiB, or 256 KiB if nothing else about a request needs more than a plain one."""
    memory: Bytes | None = None
    """The memory of the process above which new requests get 503. Default: nine tenths of the container's limit, if
    there is one."""


class Server(ConfigModel):
    host: Text = "127.0.0.1"
    """The address to listen on. An address that other machines can reach needs `keys`."""
    port: Annotated[int, Bounds(ge=0, le=65535), NO_BOOL] = 8080
    """The port to listen on; 0 takes a free one."""
    default_model: ModelName | None = None
    """The model for requests that name none, as Azure clients may send."""
    profiles: dict[DialectName, ProfileName] = field(default_factory=dict)
    """In which profile each dialect is served. Default: {served profile}."""
    body_limit: Bytes = 32 * 1024 * 1024
    """The largest request body, after decompression."""
    header_timeout: Seconds = 10.0
    """How long a client may take to send a request's headers."""
    body_timeout: Seconds = 30.0
    """How long a client may take to send a request's body."""
    write_stall: Seconds = 30.0
    """How long a client may take to read 32 kB of its reply before the connection is closed."""
    hold_headers: Seconds = 15.0
    """How long the headers of a streamed reply wait for the provider's first event."""
    keep_alive: Seconds | None = 15.0
    """How long a stream of Responses may be silent before a comment, or one of Messages before a ping event, keeps load
    balancers from closing it; null: for ever. Streams of the other protocols get no comments, because some of their
    clients cannot parse them."""
    drain: Drain = Drain()
    """How the server stops."""
    value_limit: Annotated[int, Bounds(ge=1000), NO_BOOL] = VALUE_LIMIT
    """The most values of a request: its objects, arrays, strings and keys, and a sixth of its commas. At most 32
    times as many characters may be escaped."""
    allowed_hosts: list[HostName] = field(default_factory=list)
    """Without keys: names, in addition to localhost and IP addresses, that clients may use for the proxy."""
    allowed_origins: list[Origin] = field(default_factory=list)
    """Origins whose pages may use the proxy in a browser, as `https://app.example.com`; `*` means all, and needs
    `keys`."""
    tracing: bool = False
    """Whether exchanges are traced and measured with OpenTelemetry, and sent over OTLP to where the environment says:
    OTEL_EXPORTER_OTLP_ENDPOINT and the other variables of its SDK. It needs the extra `otel`."""
    target_header: bool = False
    """Whether answers name the target that they come from, in the header `x-dragoman-target: provider/model`."""
    limits: ServerLimits = ServerLimits()
    """How much the server takes on at one time."""
    reload: Literal["signal", "watch", "off"] = "signal"
    """When the configuration is read again: at SIGHUP; watch, also when one of its files changes; off, never."""
    admin_port: Annotated[int, Bounds(ge=0, le=65535), NO_BOOL] | None = None
    """The port of a listener of its own for /metrics and health; 0 takes a free one. Default: there is none."""
    admin_host: Text = "127.0.0.1"
    """The address of that listener. One that other machines can reach needs `admin_key`."""
    admin_key: Secret | None = None
    """What its clients send, as `Authorization: Bearer KEY`. Write `${NAME}`, not the key."""
    inspect: Literal["off", "heads", "bodies"] = "off"
    """What the page keeps of each exchange: off keeps a line for the list, heads also request lines, status lines and
    headers, bodies everything. It is kept in memory only, and secrets are masked when it is shown."""
    inspect_bytes: Bytes = 64 * 1024 * 1024
    """The memory for that; beyond it the oldest exchanges go."""


class Store(ConfigModel):
    """Where responses are stored, so that clients can continue and retrieve them."""

    kind: Literal["sqlite", "memory", "none"] = "sqlite"
    """sqlite: in a file that several processes can share; memory: until the process ends; none: nowhere."""
    path: Text | None = None
    """The file of the kind sqlite. Relative paths are relative to the configuration file's folder. Default:
    dragoman/responses.db in $XDG_STATE_HOME, or in ~/.local/state if that is not set."""
    retention: Seconds = 720 * 3600.0
    """How long a response is stored."""
    max_size: Bytes = 1024**3
    """The largest size of all responses together; beyond it the oldest are deleted."""
    max_response: Bytes = 32 * 1024**2
    """The largest response to store, its input included; at most `max_size`."""
    max_chain: Bytes = 64 * 1024**2
    """The largest size of a conversation that `previous_response_id` can continue."""


class Tls(ConfigModel):
    ca: Text | None = None
    """A PEM file with the authorities to trust. Relative paths are relative to the configuration file's folder."""
    cert: Text | None = None
    """A PEM file with the client certificate to present to the provider."""
    key: Text | None = None
    """A PEM file with the private key of `cert`, unless the file of `cert` contains it."""


class OAuth(
    ConfigModel,
    schema={"if": {"required": ["client_secret_file"]}, "then": {}, "else": {"required": ["client_secret"]}},
):
    """OAuth 2.0 client credentials."""

    token_url: BaseUrl
    """The token endpoint: `https://login.microsoftonline.com/TENANT/oauth2/v2.0/token`, or a Databricks workspace's
    `/oidc/v1/token`."""
    client_id: Text
    """The application's, or service principal's, id."""
    client_secret: Secret | None = None
    """Its secret. Write `${NAME}`, not the secret."""
    client_secret_file: Text | None = None
    """A file with the secret, instead of `client_secret`; dragoman reads it for every token."""
    scope: Text | None = None
    """The scope to request: Azure `https://cognitiveservices.azure.com/.default` or `https://ml.azure.com/.default`,
    Databricks `all-apis`."""
    audience: Text | None = None
    """The audience to request, for endpoints that need one."""
    auth_style: Literal["body", "basic"] = "body"
    """Where to send id and secret: in the form, or in the header Authorization."""
    ca: Text | None = None
    """A PEM file with the authorities to trust for `token_url`. Default: `tls` of the provider if both have the
    same address, else the system's authorities."""


class Limits(ConfigModel):
    max_tokens: Count | None = None
    """The most tokens that the provider generates for one request."""
    inputs: Count | None = None
    """The most inputs that the provider embeds in one call; a request with more becomes several calls."""


class Provider(
    ConfigModel,
    schema={"if": {"required": ["engine"]}, "then": {}, "else": {"required": ["dialect", "base_url"]}},
):
    engine: Literal["local", "litellm"] | None = None
    """What answers instead of an address: local, an ONNX model on this machine (it needs the extra `local` or `gpu`);
    litellm, the library, for providers without a dialect here (it needs the extra `litellm`)."""
    model_dir: Text | None = None
    """The model's folder. Relative paths are relative to the configuration file's folder. Default: dragoman-mini, the
    small model that comes with dragoman; local only."""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """The device to run the model on; auto takes CUDA if it is available; local only."""
    device_index: Annotated[int, Bounds(ge=0), NO_BOOL] = 0
    """Which of several CUDA devices; local only."""
    threads: Annotated[int, Bounds(ge=0), NO_BOOL] = 0
    """How many threads run a step; 0 means one for each core; local only."""
    slots: Count = 16
    """How many sequences run at once; fewer if the memory is too small; local only."""
    queue: Annotated[int, Bounds(ge=0), NO_BOOL] = 64
    """How many further sequences may wait; more are refused with 429; local only."""
    context: Annotated[int, Bounds(ge=2), NO_BOOL] | None = None
    """The longest text in tokens, question and answer together. Default: the model's, at most 8192; local only."""
    step_timeout: Seconds = 120.0
    """How long one step of the model may take before the engine is considered stuck and restarted. A step processes 256
    tokens of a prompt and one token of each sequence; local only."""
    vendor: Vendor | None = None
    """litellm's name for the provider, such as anthropic, bedrock or gemini. If it is unset, each target's model begins
    with it, as in `anthropic/claude-sonnet-4-5`; litellm only."""
    parameters: dict[LitellmArgument, SecretText] = field(default_factory=dict)
    """Further parameters for litellm, such as aws_region_name or vertex_project; litellm only."""
    dialect: DialectName | None = None
    """The vendor's variant of the protocols that this provider speaks. Engines have none."""
    base_url: BaseUrl | None = None
    """The address without what the dialect appends: {appended}; other protocols likewise. Not needed for litellm,
    which has its vendors' addresses."""
    api_key: Secret | None = None
    """The provider's key or token. Write `${NAME}` or `${file:/run/secrets/name}`, not the key."""
    api_key_file: Text | None = None
    """A file with the key, instead of `api_key`; a change of the file takes effect without a restart."""
    oauth: OAuth | None = None
    """Where to get access tokens, instead of a key."""
    auth: Text | None = None
    """How the key is presented: {auth}. Tokens of `oauth` are always presented as bearer."""
    profile: ProfileName | None = None
    """Which variant of the dialect the provider speaks: as documented, or as its servers do.
    Default: {called profile}."""
    protocols: list[ProtocolName] | None = None
    """The protocols that the provider is used for. Default: those that are documented for the model, else
    {default protocols}; engines chat. If a provider turns out not to serve a protocol of the default, dragoman uses
    another one or the next target for ten minutes, and logs it. What is named here is not doubted."""
    kind: Literal["pay-per-token", "provisioned-throughput"] | None = None
    """The kind of the endpoints; {owners of kind} only."""
    address: AddressName | None = None
    """An alternative form of addresses. azure-openai: `base_url` is a resource of Azure OpenAI,
    `https://NAME.openai.azure.com`, models are its deployments, and every call has `api_version`. ai-gateway:
    `base_url` is a Databricks workspace, and calls go to its AI Gateway. anthropic: `base_url` is a resource of Azure
    AI Foundry, `https://NAME.services.ai.azure.com`, whose Claude models are called. {owners of address} only."""
    api_version: Version | None = None
    """The API version to ask for; {owners of api_version} only. The dialect has a default, the address needs one."""
    headers: dict[HeaderName, HeaderValue] = field(default_factory=dict)
    """Headers to add to every request. They cannot replace those that dragoman sets."""
    proxy: ProxyUrl | None = None
    """The HTTP proxy between here and the provider, its token endpoint included: `http://user:password@host:3128`. The
    environment's proxies are not used; write `${HTTPS_PROXY}` to name one."""
    tls: Tls = Tls()
    """Certificates for https addresses."""
    reasoning_tags: Literal[False, True, "implied"] = False
    """Whether chat replies have the model's reasoning in the content, between tags such as `<think>` and `</think>`: it
    becomes `reasoning_content`. implied: the reply begins inside the reasoning, without the opening tag."""
    limits: Limits = Limits()
    """Limits in addition to those of the dialect."""
    pool: Pool = Pool()
    """The connections to the provider."""
    rate: RateLimits = RateLimits()
    """How much the provider gets; for more the next target is tried."""
    timeouts: Timeouts | None = None
    """Timeouts for this provider, instead of those of the whole file."""
    policy: PolicyChoice = PolicyChoice()
    """The policy toward this provider."""
    emulate: EmulationChoice = EmulationChoice()
    """What dragoman emulates for this provider."""

    @property
    def base_address(self) -> str:
        """The base address. The engine local has a placeholder for its socket, litellm an empty text."""
        return self.base_url or ("http://local/v1" if self.engine == "local" else "")


class TargetChoice(ConfigModel):
    provider: Text
    """A name from `providers`."""
    model: UpstreamModel | None = None
    """The provider's name for the model. Unset or `*`: the model's own name, or, if the model is a pattern, the
    name that the client asked for."""
    strip: Text | None = None
    """The beginning of the client's name to leave out, as `openai/` for the model `openai/*`."""
    weight: Annotated[float, Bounds(ge=0, allow_inf_nan=False)] = 1
    """This target's share of the requests, relative to the other targets. A target with 0 is used only if no other is
    left."""
    lacks: list[str] = field(default_factory=list)
    """Parameters that this target does not support, by the names that clients use or by those that are sent."""
    takes: list[str] = field(default_factory=list)
    """Parameters that this target accepts although its dialect's API lacks them, or although its model is documented to
    refuse them. They are sent as they are; toward Azure with the header `extra-parameters: pass-through`."""
    max_tokens_name: Literal["max_tokens", "max_completion_tokens"] | None = None
    """The target's name for the limit on tokens in chat. Default: max_tokens; in the dialects openai and azure the name
    that is documented for the model, max_completion_tokens for OpenAI's o-series and GPT-5; max_completion_tokens for
    Azure OpenAI; the client's own name for other servers of the dialect openai."""
    reasoning_replay: Literal["keep", "rename", "drop"] | None = None
    """What the target gets of the model's reasoning in earlier turns: keep, as `reasoning_content`; rename, as
    `reasoning`; drop, nothing. Default: what the provider's address or the model is known to accept; drop for
    other servers of the dialect openai, keep for the other dialects."""
    deployment: HeaderValue | None = None
    """The deployment to ask for; {deployments} only."""
    policy: PolicyChoice = PolicyChoice()
    """The policy toward this target."""
    emulate: EmulationChoice = EmulationChoice()
    """What dragoman emulates for this target."""
    price: Price | None = None
    """What the target costs, for the log, `dragoman usage` and the budgets of keys in money."""


class Model(ConfigModel):
    targets: Annotated[list[TargetChoice], Bounds(min_length=1)]
    """The targets of requests, in the order that `balance` says."""
    fallbacks: list[ModelName] = field(default_factory=list)
    """Models to try after the targets, in this order."""
    fallbacks_for: dict[Literal["context_length", "content_filter"], list[ModelName]] = field(default_factory=dict)
    """Models to try if the request is too long for the targets, or if their content filter refuses it."""
    balance: Literal["weighted", "least-busy", "fastest", "sticky"] = "weighted"
    """Which target comes first: weighted draws by weight; least-busy takes the one with the fewest running requests
    for its weight; fastest prefers short times to the first byte; sticky sends requests with the same
    `prompt_cache_key`, or else the same `user` (in Messages `metadata.user_id`), to the same target."""
    hedge_after: Seconds | None = None
    """If a target has shown nothing for this long, the next one is asked too; the first that begins to answer is used,
    and the other call is cancelled, but it may be billed. Counts as a retry. Unset: never."""
    task: Literal["responses", "embeddings"] | None = None
    """What a body with `input` asks for at Databricks' address /serving-endpoints/NAME/invocations. Unset: responses
    if anything in the body belongs to Responses alone, else embeddings."""
    policy: PolicyChoice = PolicyChoice()
    """The policy of this model."""
    emulate: EmulationChoice = EmulationChoice()
    """What dragoman emulates for this model."""


class Config(ConfigModel):
    server: Server = Server()
    """Where and how to listen."""
    keys: list[Key] = field(default_factory=list)
    """The keys that clients present. Without keys dragoman asks for none, and listens on a loopback address only."""
    providers: dict[Label, Provider] = field(default_factory=dict)
    """The upstreams, by name."""
    models: dict[ModelPattern, Model] = field(default_factory=dict)
    """The models that clients can ask for, by name or by pattern with `*`."""
    store: Store = Store()
    """Where responses are stored."""
    policy: PolicyChoice = PolicyChoice()
    """The policy unless a target, model or provider sets its own."""
    emulate: EmulationChoice = EmulationChoice()
    """What dragoman emulates unless a target, model or provider says otherwise."""
    timeouts: Timeouts = Timeouts()
    """The timeouts toward providers."""
    retries: Retries = Retries()
    """How often a failed request is tried again."""
    breaker: Breaker = Breaker()
    """When a failing target is left alone."""

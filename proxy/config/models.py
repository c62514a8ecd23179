"""The configuration file's shape. Python is the source here: `schemas/config.json` is generated from these models.

What is judged here is each value by itself; the other modules judge values by one another. The texts below the fields
are their descriptions there: `schema.py` reads them from this file, which takes too long to be done at every start.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from .values import (
    NO_BOOL,
    BaseUrl,
    Bytes,
    HeaderName,
    HeaderValue,
    Label,
    LitellmArgument,
    ModelName,
    ModelPattern,
    ProxyUrl,
    Seconds,
    Secret,
    UpstreamModel,
    Vendor,
    Version,
)
from .vocabulary import AddressName, DialectName, ProfileName

__all__ = [
    "Config",
    "Drain",
    "Key",
    "Limits",
    "Model",
    "OAuth",
    "PolicyChoice",
    "Pool",
    "Provider",
    "Server",
    "Store",
    "TargetChoice",
    "Timeouts",
    "Tls",
]

Text = Annotated[str, Field(min_length=1)]
Count = Annotated[int, Field(gt=0), NO_BOOL]


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Drain(Part):
    delay: Seconds = 0.1
    """How long to go on accepting connections after the signal to stop, while `/ready` already says no."""
    timeout: Seconds = 300.0
    """How long running exchanges may go on after that."""


class Server(Part):
    host: Text = "127.0.0.1"
    """The address to listen on. Any other than a loopback address needs `keys`."""
    port: Annotated[int, Field(ge=0, le=65535), NO_BOOL] = 8080
    """The port to listen on; 0 takes a free one."""
    default_model: ModelName | None = None
    """The model for requests that name none, as Azure clients may send."""
    profiles: dict[DialectName, ProfileName] = {}
    """In which profile each dialect is served. Default: {served profile}."""
    body_limit: Bytes = 32 * 1024 * 1024
    """The largest request body, after decompression."""
    header_timeout: Seconds = 10.0
    """How long a client may take to send a request's headers."""
    body_timeout: Seconds = 30.0
    """How long a client may take to send a request's body."""
    write_stall: Seconds = 30.0
    """How long a client may take no bytes of its reply before the connection is closed."""
    hold_headers: Seconds = 15.0
    """How long the headers of a streamed reply wait for the provider's first event."""
    keep_alive: Seconds | None = 15.0
    """How long a stream of Responses may be silent before a comment tells load balancers that it lives; null: for ever.
    Streams of the other protocols have no comments, which some of their clients cannot read."""
    drain: Drain = Drain()
    """How the server stops."""


class Store(Part):
    """Where responses are kept, so that clients can continue them and ask for them again."""

    kind: Literal["sqlite", "memory", "none"] = "sqlite"
    """sqlite keeps them in a file that several processes can share; memory until the process ends; none keeps none."""
    path: Text | None = None
    """The file of the kind sqlite. Relative paths begin at the configuration file's folder. Default:
    dragoman/responses.db in $XDG_STATE_HOME, which is ~/.local/state where it is not set."""
    retention: Seconds = 720 * 3600.0
    """How long a response is kept."""
    max_size: Bytes = 1024**3
    """The size of all responses together; beyond it the oldest go."""
    max_response: Bytes = 32 * 1024**2
    """The largest response that is kept, its input included; never more than `max_size`."""
    max_chain: Bytes = 64 * 1024**2
    """The size of the longest conversation that can be continued by `previous_response_id`."""


class Key(Part):
    name: Label
    """The key's name in the log. The responses that are made with a key belong to this name."""
    key: Secret
    """What the client sends, as `Authorization: Bearer KEY` or in the header api-key. Write `${NAME}`, not the key."""
    models: list[ModelPattern] = ["*"]
    """The models that may be asked for: names, or patterns with `*`."""


class Tls(Part):
    ca: Text | None = None
    """A PEM file with the authorities to trust. Relative paths begin at the configuration file's folder."""
    cert: Text | None = None
    """A PEM file with the certificate to show to the provider."""
    key: Text | None = None
    """A PEM file with the private key of `cert`, where that file does not hold it."""


class OAuth(Part):
    """OAuth 2.0 client credentials."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"required": ["client_secret_file"]},
            "then": {},
            "else": {"required": ["client_secret"]},
        }
    )

    token_url: BaseUrl
    """The token endpoint: `https://login.microsoftonline.com/TENANT/oauth2/v2.0/token`, or a Databricks workspace's
    `/oidc/v1/token`."""
    client_id: Text
    """The application's, or service principal's, id."""
    client_secret: Secret | None = None
    """Its secret. Write `${NAME}`, not the secret."""
    client_secret_file: Text | None = None
    """A file with the secret, instead of `client_secret`; it is read for every token."""
    scope: Text | None = None
    """What to ask for: Azure `https://cognitiveservices.azure.com/.default` or `https://ml.azure.com/.default`,
    Databricks `all-apis`."""
    audience: Text | None = None
    """For endpoints that ask for one."""
    auth_style: Literal["body", "basic"] = "body"
    """Where id and secret go: in the form, or in the header Authorization."""
    ca: Text | None = None
    """A PEM file with the authorities to trust for `token_url`. Default: `tls` of the provider where both have one
    address, else the system's authorities."""


class Limits(Part):
    max_tokens: Count | None = None
    """The most tokens that the provider generates for one request."""
    inputs: Count | None = None
    """The most inputs that the provider embeds in one call; a request with more becomes several calls."""


class Pool(Part):
    connections: Count = 256
    """The most connections to the provider at one time."""
    idle: Seconds = 15.0
    """How long an unused connection is kept."""


class PolicyChoice(Part):
    """What to do where a request or reply does not fit; unset means: ask the next wider level."""

    extra_parameters: Literal["error", "drop", "pass-through"] | None = None
    """For parameters that no dialect's documentation knows."""
    unsupported: Literal["refuse", "drop"] | None = None
    """For known parameters that the target lacks and that would change the answer."""
    out_of_range: Literal["error", "clamp", "drop"] | None = None
    """For values beyond the target's range."""
    replies: Literal["off", "report", "repair", "strict"] | None = None
    """For replies that break their schema: leave them, count, mend what can be mended, or refuse."""
    emulate_completions: bool | None = None
    """Over a provider that is not used for completions: send the prompt as a chat message, and answer with what the
    model says to it. It answers the prompt where a completion would go on with it: a loss. Default: false."""


class Timeouts(Part):
    connect: Seconds = 5.0
    """Until the connection to the provider stands, TLS included."""
    first_token: Seconds = 120.0
    """Until the first event of a stream."""
    inter_token: Seconds = 60.0
    """Between two events of a stream."""
    total: Seconds = 600.0
    """For the whole exchange, other tries before this one included."""


class Provider(Part):
    model_config = ConfigDict(
        json_schema_extra={"if": {"required": ["engine"]}, "then": {}, "else": {"required": ["dialect", "base_url"]}}
    )

    engine: Literal["local", "litellm"] | None = None
    """What answers, where it is no address of a dialect: local, an ONNX model on this machine (it needs
    the extra `local` or `gpu`); litellm, the library, for providers without a dialect here (it needs the extra
    `litellm`)."""
    model_dir: Text | None = None
    """The model's folder. Relative paths begin at the configuration file's folder. Default: dragoman-mini, the small
    model that comes with dragoman; local only."""
    device: Literal["auto", "cuda", "cpu"] = "auto"
    """Where the model runs; auto takes CUDA where it is there; local only."""
    device_index: Annotated[int, Field(ge=0), NO_BOOL] = 0
    """Which of several CUDA devices; local only."""
    threads: Annotated[int, Field(ge=0), NO_BOOL] = 0
    """How many threads a step takes; 0 takes one for each core; local only."""
    slots: Count = 16
    """How many sequences run at once; fewer where the memory holds no more; local only."""
    queue: Annotated[int, Field(ge=0), NO_BOOL] = 64
    """How many further sequences wait; what is beyond is refused with 429; local only."""
    context: Annotated[int, Field(ge=2), NO_BOOL] | None = None
    """The longest text in tokens, question and answer together. Default: the model's, at most 8192; local only."""
    step_timeout: Seconds = 120.0
    """How long one step of the model may take, 256 tokens of a prompt and a token for each sequence, before the engine
    counts as stuck and is started anew; local only."""
    vendor: Vendor | None = None
    """litellm's word for the provider, as anthropic, bedrock or gemini. Unset: each target's model begins with it, as
    `anthropic/claude-sonnet-4-5`; litellm only."""
    parameters: dict[LitellmArgument, SecretStr] = {}
    """What litellm needs beside key and address, as aws_region_name or vertex_project; litellm only."""
    dialect: DialectName | None = None
    """The vendor's variant of the protocols that this provider speaks. Engines go without."""
    base_url: BaseUrl | None = None
    """The address without what the dialect appends: {appended}; other protocols likewise. litellm knows the addresses
    of its vendors."""
    api_key: Secret | None = None
    """The provider's key or token. Write `${NAME}` or `${file:/run/secrets/name}`, not the key."""
    api_key_file: Text | None = None
    """A file with the key, instead of `api_key`; a change of the file takes effect without a restart."""
    oauth: OAuth | None = None
    """Where to get access tokens, instead of a key."""
    auth: Text | None = None
    """How the key is presented: {auth}. Tokens of `oauth` go as bearer."""
    profile: ProfileName | None = None
    """Which variant of the dialect the provider speaks: as documented, or as its servers do.
    Default: {called profile}."""
    protocols: list[Literal["chat", "responses", "completions", "embeddings"]] | None = None
    """The protocols that the provider is used for. Default: {default protocols}."""
    kind: Literal["pay-per-token", "provisioned-throughput"] | None = None
    """The kind of the endpoints; {owners of kind} only."""
    address: AddressName | None = None
    """How calls are addressed, where it is not the usual way. azure-openai: `base_url` is a resource of Azure OpenAI,
    `https://NAME.openai.azure.com`, models are its deployments, and `api_version` goes with every call;
    {owners of address} only."""
    api_version: Version | None = None
    """The API version to ask for; {owners of api_version} only. The dialect has a default, the address needs one."""
    headers: dict[HeaderName, HeaderValue] = {}
    """Headers to send with every request, beside those that dragoman sets itself."""
    proxy: ProxyUrl | None = None
    """The HTTP proxy between here and the provider, its token endpoint included: `http://user:password@host:3128`. The
    environment's proxies are not used; write `${HTTPS_PROXY}` to name one."""
    tls: Tls = Tls()
    """Certificates for https addresses."""
    limits: Limits = Limits()
    """Maxima beside those of the dialect."""
    pool: Pool = Pool()
    """The connections to the provider."""
    timeouts: Timeouts | None = None
    """Instead of the timeouts of the whole file."""
    policy: PolicyChoice = PolicyChoice()
    """The policy toward this provider."""

    @property
    def base_address(self) -> str:
        """The base address. That of the engine local stands for its socket; litellm has none."""
        return self.base_url or ("http://local/v1" if self.engine == "local" else "")


class TargetChoice(Part):
    provider: Text
    """A name from `providers`."""
    model: UpstreamModel | None = None
    """The provider's name for the model. Unset or `*`: the model's own name, or what the client asked for where the
    model is a pattern."""
    strip: Text | None = None
    """The beginning of the client's name to leave out, as `openai/` for the model `openai/*`."""
    weight: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1
    """This target's share of the requests, relative to the other targets; 0 only where no other is left."""
    lacks: list[str] = []
    """Parameters that this target cannot serve."""
    deployment: HeaderValue | None = None
    """The deployment to ask for; {deployments} only."""
    policy: PolicyChoice = PolicyChoice()
    """The policy toward this target."""


class Model(Part):
    targets: Annotated[list[TargetChoice], Field(min_length=1)]
    """Where requests go, drawn by weight."""
    fallbacks: list[ModelName] = []
    """Models to try after the targets, in this order."""
    task: Literal["responses", "embeddings"] | None = None
    """What a body with `input` asks for at Databricks' address /serving-endpoints/NAME/invocations. Unset: responses
    where anything in the body belongs to them alone, else embeddings."""
    policy: PolicyChoice = PolicyChoice()
    """The policy of this model."""


class Config(Part):
    server: Server = Server()
    """Where and how to listen."""
    keys: list[Key] = []
    """Who may ask. Without keys everyone may, and only a loopback address is listened on."""
    providers: dict[Label, Provider] = {}
    """The upstreams, by name."""
    models: dict[ModelPattern, Model] = {}
    """The models that clients can ask for, by name or by pattern with `*`."""
    store: Store = Store()
    """Where responses are kept."""
    policy: PolicyChoice = PolicyChoice()
    """The policy where no target, model or provider has one."""
    timeouts: Timeouts = Timeouts()
    """The timeouts toward providers."""

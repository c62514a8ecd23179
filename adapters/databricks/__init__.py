"""The databricks dialect: the Foundation Model API of Databricks model serving."""

from __future__ import annotations

import re

from dragoman.adapters.dialect import Dialect
from dragoman.adapters.listing import ModelList
from dragoman.adapters.providers import BaseAddress, EnvironmentProvider, Vendor

from . import chat, chat_served, completions, embeddings, messages, responses
from .addresses import FORMS, PATHS
from .endpoints import INFORMATION
from .invocations import choose_protocol

__all__ = ["DIALECT"]

DIALECT = Dialect(
    name="databricks",
    auth={"bearer": {"Authorization": "Bearer {}"}},
    served={
        "chat": chat_served.SERVED,
        "responses": responses.SERVED,
        "completions": completions.SERVED,
        "embeddings": embeddings.SERVED,
        **messages.SERVED,
    },
    called={
        "chat": chat.CALLED,
        "responses": responses.CALLED,
        "completions": completions.CALLED,
        "embeddings": embeddings.CALLED,
        **messages.CALLED,
    },
    default_protocols=("chat", "completions", "embeddings"),
    paths=PATHS,
    choose_protocol=choose_protocol,
    information=INFORMATION,
    forwarded=("served-model-name",),
    base_address=BaseAddress("/serving-endpoints/<model>/invocations", re.compile(r"/serving-endpoints(/.*)?$")),
    address_forms=FORMS,
    settings=frozenset({"kind", "address"}),
    environment=(
        EnvironmentProvider(
            "databricks",
            ("DATABRICKS_HOST", "DATABRICKS_TOKEN"),
            "${DATABRICKS_HOST}",
            ("chat", "completions", "embeddings"),
            patterns=("databricks-*",),
            bare_host=True,
        ),
    ),
    model_list=ModelList("/api/2.0/serving-endpoints", items="endpoints", name="name"),
    vendors={"databricks": Vendor("${DATABRICKS_API_BASE}", key="DATABRICKS_API_KEY")},
    summarizes_reasoning=True,
)

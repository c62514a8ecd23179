"""dragoman: an interpreter between LLM clients and LLM providers.

The five members (`adapters`, `proxy`, `local_engine`, `schemas`, `contract`) are links to the top-level folders of the
repository, so that every module is installed as `dragoman.<folder>`.
"""

__all__ = ["__version__"]

__version__ = "0.1.0"

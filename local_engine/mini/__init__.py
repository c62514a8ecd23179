"""The model folder of dragoman-mini, a model of a million parameters for demonstration and tests.

README.md is the model card. The folder holds only what the engine loads; `tools/mini/` in the repository holds the
corpus, the training and the evaluation.
"""

from pathlib import Path

__all__ = ["FOLDER"]

FOLDER = Path(__file__).resolve().parent

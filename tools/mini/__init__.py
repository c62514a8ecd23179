"""Training and evaluation of dragoman-mini, the model in `local_engine/mini/`.

corpus      the questions and answers of `corpus/*.json`, written for this project
dialogue    conversations made of them, with everyday variations, from a seed
train       python -m tools.mini.train TARGET      needs torch
evaluate    python -m tools.mini.evaluate          the numbers of the model card
"""

__all__: list[str] = []

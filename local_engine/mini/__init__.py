"""dragoman-mini: a model of a million parameters that memorised facts about dragoman, for demonstration and tests.

This folder is its model folder too (README.md is the model card). Nothing here is needed to serve it:

    corpus      the questions and answers of `corpus/*.json`, written for this project
    dialogue    conversations made of them, with everyday variations, from a seed
    train       python -m dragoman.local_engine.mini.train TARGET      needs torch
    evaluate    python -m dragoman.local_engine.mini.evaluate          the numbers of the model card
"""

from pathlib import Path

__all__ = ["FOLDER"]

FOLDER = Path(__file__).resolve().parent

"""What a terminal gets of a text that others wrote."""

from __future__ import annotations

import sys
import unicodedata

from dragoman.proxy.cli.terminal import remove_controls


def test_controls_and_surrogates_are_removed_and_nothing_else() -> None:
    everything = [chr(code) for code in range(sys.maxunicode + 1)]
    kept = [one for one in everything if one in "\n\t" or unicodedata.category(one) not in ("Cc", "Cs")]
    assert remove_controls("".join(everything)) == "".join(kept)

"""The conformance suite, and fake providers to run it and everything else on."""

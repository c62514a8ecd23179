"""Emulations: a field that a provider does not take is served by other means, and the receipt says so.

interface         what an emulation is: one request becomes requests, their replies become one
calls             the calls that several emulations make of one request
choices           `n`: one call for each choice
stop_sequences    `stop`: the text is cut at the first stop string
single_tool_call  `parallel_tool_calls: false`: the first call is given
token_arrays      inputs and prompts as tokens: they are decoded
registry          the emulation of each field
"""

__all__: list[str] = []

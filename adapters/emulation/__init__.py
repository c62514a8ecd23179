"""Emulations: a field that a provider does not take is served by other means, and the receipt says so.

interface         what an emulation is: one request becomes requests, their replies become one
calls             the calls that several emulations make of one request
choices           `n`: one call for each choice
stop_sequences    `stop`: the text is cut at the first stop string
message_stops     `stop_sequences` of Messages, in the same way
single_tool_call  `parallel_tool_calls: false`: the first call is given
message_calls     `disable_parallel_tool_use` of Messages, in the same way
token_arrays      inputs and prompts as tokens: they are decoded
registry          the emulation of each field and setting

Off by default:

rewritten_call      one call that emulations rewrite, and that they may follow up
format_tool         `response_format` by a tool with the schema as its parameters
format_instruction  `response_format` by an instruction; the answer is checked
tool_instruction    `tools` by an instruction; calls are text (`tool_text`)
counted_usage       usage that the provider does not report

Without a call:

counted_tokens      `count_tokens` of Messages
"""

__all__: list[str] = []

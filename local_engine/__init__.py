"""The ONNX Runtime engine: a model folder, served with continuous batching. Importing this loads nothing heavy.

What stands on it uses these, each from its own module:

    folder.open_folder(path) -> ModelFolder         what a folder holds, judged before anything is loaded;
                                                    raises places.FolderError
    providers.choose(device) -> Provider            auto, cuda or cpu; ProviderError
    engine.Engine.load(path, Options(), deliver)    one thread that owns the session; deliver(batch of (ticket, event))
                                                    is called on it, once per step
        engine.tokenizer, engine.folder, engine.limits, engine.statistics()
        engine.submit(Generation) -> ticket         raises Fault: rate_limit with retry_after (the queue is full),
                                                    context_length_exceeded, and what the request itself has wrong
        engine.cancel(ticket)                       its slot is free before the next step
        engine.close()
    stream.Streams(engine, loop)                    the same for asyncio: `async for event in streams.run(generation)`
    embeddings.Embedder.load(path) -> Embedder      tokens(text), embed(texts) -> vectors; both block
    hub.HubEngine.load(path, Options())             in the hub's forms: `chat(request)` and `completions(request)`
                                                    give events, `embeddings(request)` and `whole(events)` replies
    requests                                        Generation, Sampling, the events Delta, Finished and Failed, Usage,
                                                    and TokenMask, the hook for guided decoding

Below them: `graph` reads an ONNX file's outline, `session` opens it, `kv` and `concat` keep keys and values, `slots`
decides who sits where and what is reused, `scheduler` takes the steps, `sampling` chooses tokens, `detok` and
`stops` make text of them. Below the hub: `planning` makes a Generation of a chat request (`conversation`, `template` in
its `sandbox`, `grammars` for `guidance`, `asking` for parameters), `chatting` makes chunks of its events (`reasoning`,
`toolcalls` by the table in `toolforms`); `completing` and `vectors` are the other verbs. `export` writes model folders
and needs the extra of that name.
"""

__all__: list[str] = []

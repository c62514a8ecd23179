"""The ONNX Runtime engine: serves a model folder with continuous batching. Importing this loads nothing heavy.

The interface, each part in its own module:

    model_folder.folder.open_folder(path) -> ModelFolder   checks a folder before anything is loaded; raises
                                                           model_folder.files.FolderError
    runtime.providers.select_provider(device)              auto, cuda or cpu; raises ProviderError
    engine.Engine.load(path, EngineOptions(), deliver)     a thread that owns the session; it calls deliver(batch of
                                                           (ticket, event)) once per step
        engine.tokenizer, engine.folder, engine.limits, engine.statistics()
        engine.submit(GenerationRequest) -> ticket         raises Fault: rate_limit with retry_after if the queue is
                                                           full, context_length_exceeded, or what is invalid
        engine.cancel(ticket)                              the slot is idle before the next step
        engine.close()
    event_streams.EventStreams(engine, loop)               for asyncio: `async for event in streams.run(request)`
    embedder.Embedder.load(path) -> Embedder               tokenize(text), embed(texts) -> vectors; both block
    service.EngineService.load(path, EngineOptions())      requests in hub form: `chat(request)` and
                                                           `completions(request)` yield chunks, `embeddings(request)`
                                                           and `collect_reply(chunks)` return replies
    generation                                             GenerationRequest, SamplingParams, the events Delta,
                                                           Finished and Failed, Usage, and TokenMask for guided decoding

The folders, from the model up to the API:

    model_folder   the files of a folder, the outline of an ONNX file, the signature of a decoder or encoder
    runtime        execution providers, sessions, memory
    batching       the scheduler, slots, the KV cache, the state of a choice
    sampling       the sampler, on the host and on a device
    text           detokenizer, stop sequences, and the parsers of reasoning and tool calls
    prompts        chat templates (in `sandbox`) and their input
    guidance       grammars and token masks
    hub_api        chat, completions and embeddings in hub form
    process        the engine process, which serves over HTTP on a Unix socket
    export         writes model folders; needs the extra of that name
"""

__all__: list[str] = []

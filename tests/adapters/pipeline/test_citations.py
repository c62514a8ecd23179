"""Citations reach every client: as content blocks between Databricks ends, elsewhere with positions, and as annotations
if they name an address. What a protocol has no place for is a recorded loss.

The citations are those of Anthropic's reference and of BerriAI/litellm's tests of Databricks.
"""

from __future__ import annotations

import pytest

from dragoman.adapters.call import JsonObject, Target
from dragoman.adapters.validation import load_validator

from .exchanges import encode_chunks, make_reply, run_exchange, write_call

CHAR = {
    "type": "char_location",
    "cited_text": "The grass is green.",
    "document_index": 0,
    "document_title": "Example Document",
    "start_char_index": 0,
    "end_char_index": 20,
}
PAGE = {**CHAR, "type": "page_location", "start_page_number": 1, "end_page_number": 2}
WEB = {
    "type": "web_search_result_location",
    "url": "https://en.wikipedia.org/wiki/Claude_Shannon",
    "title": "Claude Shannon - Wikipedia",
    "encrypted_index": "Eo8BCioIAhgBIiQyYjQ0",
    "cited_text": "Claude Elwood Shannon (April 30, 1916 – February 24, 2001)",
}
SEARCH = {
    "type": "search_result_location",
    "source": "https://docs.company.com/guide",
    "title": None,
    "cited_text": "x",
}
INTERNAL = {**SEARCH, "source": "kb-17", "title": "Guide"}
BLOCKS = [
    {"type": "text", "text": "Naïve 👋: "},
    {"type": "text", "text": "the grass is green", "citations": [CHAR, PAGE]},
    {"type": "text", "text": " and "},
    {"type": "text", "text": "Shannon was born", "citations": [WEB]},
    {"type": "text", "text": " there", "citations": [SEARCH, INTERNAL]},
    {"type": "text", "text": "."},
]
TEXT = "".join(str(block["text"]) for block in BLOCKS)
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "so", "signature": "S1"}]}


def place(part: str) -> JsonObject:
    start = TEXT.index(part)
    return {"start_index": start, "end_index": start + len(part)}


CITATIONS = [
    *({**place("the grass is green"), "citation": one} for one in (CHAR, PAGE)),
    {**place("Shannon was born"), "citation": WEB},
    *({**place(" there"), "citation": one} for one in (SEARCH, INTERNAL)),
]
FLAT = [
    {"type": "url_citation", "url": WEB["url"], "title": WEB["title"], **place("Shannon was born")},
    {"type": "url_citation", "url": SEARCH["source"], "title": "", **place(" there")},
]
ANNOTATIONS = [
    {"type": "url_citation", "url_citation": {key: one[key] for key in one if key != "type"}} for one in FLAT
]
WHOLE = make_reply({"content": BLOCKS})
STREAMS = {  # as lists only; as texts, with lists for blocks with citations, in reads of every size
    "blocks": encode_chunks({"role": "assistant", "content": ""}, *({"content": [block]} for block in BLOCKS)),
    "texts and blocks": encode_chunks(
        *({"content": char} for char in BLOCKS[0]["text"]),
        {"content": [BLOCKS[1]]},
        *({"content": char} for char in BLOCKS[2]["text"]),
        {"content": BLOCKS[3:5]},
        {"content": "."},
    ),
}
CHAT_CLIENTS = ["openai/chat", "azure/chat", "mindie/chat"]
FORMS = {"whole": [WHOLE], **{name: [raw] for name, raw in STREAMS.items()}}
FORMS |= {
    f"{name}, byte by byte": [raw[:6], *(raw[i : i + 1] for i in range(6, len(raw)))] for name, raw in STREAMS.items()
}
in_every_form = pytest.mark.parametrize("reads", FORMS.values(), ids=FORMS.keys())


@in_every_form
@pytest.mark.parametrize("client", CHAT_CLIENTS)
def test_chat_clients_get_citations_with_positions_and_annotations(client: str, reads: list[bytes]) -> None:
    got = run_exchange(client, "databricks/chat", *reads)
    assert got.message["content"] == TEXT
    for key, expected in (("citations", CITATIONS), ("annotations", ANNOTATIONS)):
        if len(got.events) > 1:  # OpenAI's SDK joins the lists of deltas by the index of their objects
            expected = [{**one, "index": k} for k, one in enumerate(expected)]
        assert got.message[key] == expected
    assert got.lost == set()
    hub = load_validator("hub/chat.event" if len(got.events) > 1 else "hub/chat.reply")
    assert client != "openai/chat" or all(hub.accepts(event) for event in got.events)


def merge(content: list[JsonObject] | str) -> list[JsonObject]:
    """The blocks of a content in which adjacent texts without citations are one block."""
    made: list[JsonObject] = []
    for block in content:
        block = {"type": "text", "text": block} if isinstance(block, str) else block
        if made and made[-1].keys() == block.keys() == {"type", "text"}:
            made[-1] = {**made[-1], "text": made[-1]["text"] + block["text"]}
        elif block.get("text") or "summary" in block or block.get("citations"):
            made.append(block)
    return made


@in_every_form
@pytest.mark.parametrize("thoughts", [[], [THOUGHT]])
def test_databricks_clients_get_the_blocks_of_databricks(reads: list[bytes], thoughts: list[JsonObject]) -> None:
    if thoughts and reads == [WHOLE]:
        reads = [make_reply({"content": [*thoughts, *BLOCKS]})]
    elif thoughts:
        reads = [encode_chunks({"role": "assistant", "content": thoughts}).partition(b"\n\n")[0] + b"\n\n", *reads]
    got = run_exchange("databricks/chat", "databricks/chat", *reads)
    said = [got.message] if len(got.events) == 1 else got.deltas
    assert merge([one for holder in said for one in holder.get("content") or ()]) == [*thoughts, *BLOCKS]
    assert not any(holder.keys() & {"citations", "annotations"} for holder in said)
    assert got.lost == set()


@in_every_form
@pytest.mark.parametrize("client", ["openai/responses", "databricks/responses"])
def test_responses_clients_get_annotations_and_a_record_of_the_rest(client: str, reads: list[bytes]) -> None:
    got = run_exchange(client, "databricks/chat", *reads)
    [item] = got.response["output"]
    [part] = item["content"]
    assert (part["text"], part["annotations"]) == (TEXT, FLAT)
    assert got.lost == {"citations"}
    if len(got.events) > 1:
        added = [event["annotation"] for event in got.events if event["type"].endswith("annotation.added")]
        assert added == FLAT


def test_a_streamed_citation_without_text_is_at_the_end_of_the_text_so_far() -> None:
    """Databricks' deltas name neither the cited text nor the end of a block (BerriAI/litellm, databricks/chat)."""
    raw = encode_chunks(
        {"role": "assistant", "content": [{"type": "text", "text": "", "citations": [WEB]}]},
        {"content": "é\n"},
        {"content": "漢字"},
        {"content": [{"type": "text", "text": "", "citations": [[CHAR]]}]},
        {"content": "."},
    )
    got = run_exchange("openai/chat", "databricks/chat", raw)
    assert [(one["start_index"], one["end_index"]) for one in got.message["citations"]] == [(0, 0), (4, 4)]
    again = run_exchange("databricks/chat", "databricks/chat", raw)
    cited = [delta["content"] for delta in again.deltas if isinstance(delta.get("content"), list)]
    assert cited == [[{"type": "text", "text": "", "citations": [one]}] for one in (WEB, CHAR)]
    response = run_exchange("openai/responses", "databricks/chat", raw)
    [part] = response.response["output"][0]["content"]
    assert [(one["url"], one["end_index"]) for one in part["annotations"]] == [(WEB["url"], 0)]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("given", [["x"], "x", 3, [[None]], [{"url": "x"}, None]])
def test_citations_that_are_no_objects_are_a_recorded_loss(given: object, streamed: bool) -> None:
    message: JsonObject = {"content": [{"type": "text", "text": "a", "citations": given}]}
    raw = encode_chunks({"role": "assistant", **message}) if streamed else make_reply(message)
    got = run_exchange("openai/chat", "databricks/chat", raw)
    kept = [one["citation"] for one in got.message.get("citations", ())]
    assert (got.message["content"], kept) == ("a", [{"url": "x"}] if "url" in str(given) else [])
    assert any("text.citations" in change.reason for change in got.receipt.losses)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("given", [None, []])
def test_a_block_without_citations_loses_nothing(given: object, streamed: bool) -> None:
    message: JsonObject = {"content": [{"type": "text", "text": "a", "citations": given}]}
    raw = encode_chunks({"role": "assistant", **message}) if streamed else make_reply(message)
    got = run_exchange("openai/chat", "databricks/chat", raw)
    assert (got.message["content"], got.lost) == ("a", set())


def test_citations_move_with_the_text_behind_reasoning_tags() -> None:
    blocks = [{"type": "text", "text": "<think>so</think>"}, {"type": "text", "text": "yes", "citations": [WEB]}]
    target = Target("m", reasoning_tags=True)
    got = run_exchange("openai/chat", "databricks/chat", make_reply({"content": blocks}), target=target)
    [cited], [annotation] = got.message["citations"], got.message["annotations"]
    assert (got.message["content"], cited["start_index"], cited["end_index"]) == ("yes", 0, 3)
    assert (annotation["url_citation"]["start_index"], annotation["url_citation"]["end_index"]) == (0, 3)
    streamed = encode_chunks(*({"content": [block]} for block in blocks))
    [cited] = run_exchange("openai/chat", "databricks/chat", streamed, target=target).message["citations"]
    assert (cited["start_index"], cited["end_index"]) == (0, 3)


@pytest.mark.parametrize("given", [["https://a.example"], {"a": 1}, "x", [{"start_index": 0}], None])
@pytest.mark.parametrize("streamed", [False, True])
def test_citations_of_another_form_are_passed_on(given: object, streamed: bool) -> None:
    message: JsonObject = {"content": "a", "citations": given}
    raw = encode_chunks({"role": "assistant", **message}) if streamed else make_reply(message)
    assert run_exchange("openai/chat", "openai/chat", raw).message["citations"] == given
    got = run_exchange("databricks/chat", "openai/chat", raw)
    assert (got.message["content"], got.message.get("citations")) == ("a", given)


# What clients send back

ANSWERS = {
    "blocks": {"content": BLOCKS},
    "reasoning and blocks": {"content": [THOUGHT, *BLOCKS]},
    "citations and annotations": {"content": TEXT, "citations": CITATIONS, "annotations": ANNOTATIONS},
}
CLAUDE = Target("databricks-claude-sonnet-4-5", dialect="databricks")
SENT_BY = {"blocks": "databricks/chat", "reasoning and blocks": "databricks/chat"}


def send_back(form: str, provider: str, profile: str = "actual") -> tuple[JsonObject, set[str]]:
    """The assistant's message that the provider gets, and the last keys of what was lost."""
    turn = {"role": "assistant", **ANSWERS[form]}
    messages = [{"role": "user", "content": "x"}, turn, {"role": "user", "content": "y"}]
    target = Target("databricks-claude-sonnet-4-5", dialect="databricks", profile=profile)
    body, receipt = write_call(SENT_BY.get(form, "openai/chat"), provider, {"messages": messages}, target)
    lost = {str(change.before[-1]) for change in receipt.losses}
    if "messages" in body:
        return body["messages"][1], lost
    said = [item["content"] for item in body["input"] if item.get("role") == "assistant"]
    return {"content": [part for parts in said for part in parts]}, lost


@pytest.mark.parametrize("form", ANSWERS)
def test_databricks_gets_its_blocks_back(form: str) -> None:
    message, lost = send_back(form, "databricks/chat")
    assert message["content"] == [*([THOUGHT] if form.startswith("reasoning") else []), *BLOCKS]
    assert not message.keys() & {"citations", "annotations"}
    assert lost == set()
    assert load_validator("databricks/chat.request", "actual").accepts({"messages": [message]})


@pytest.mark.parametrize("form", ANSWERS)
@pytest.mark.parametrize(
    ("provider", "profile"), [("openai/chat", "actual"), ("azure/chat", "actual"), ("mindie/chat", "actual")]
)
def test_others_get_the_text_and_the_receipt_names_the_citations(form: str, provider: str, profile: str) -> None:
    message, lost = send_back(form, provider, profile)
    content = message["content"]
    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
    assert text == TEXT
    assert "encrypted_index" not in str(message)
    assert "citations" in lost


@pytest.mark.parametrize("form", ["blocks", "citations and annotations"])
def test_a_documented_databricks_gets_the_text(form: str) -> None:
    message, lost = send_back(form, "databricks/chat", "documented")
    assert (message["content"], "citations" in lost) == (TEXT, True)


@pytest.mark.parametrize("form", ANSWERS)
def test_responses_providers_get_the_text(form: str) -> None:
    message, lost = send_back(form, "openai/responses")
    assert "".join(part["text"] for part in message["content"] if part["type"] == "output_text") == TEXT
    assert "citations" in lost


def test_a_block_without_text_is_not_sent_to_databricks() -> None:
    cited = [{"start_index": 1, "end_index": 1, "citation": WEB}]
    turn = {"role": "assistant", "content": "a", "citations": cited}
    body, receipt = write_call("openai/chat", "databricks/chat", {"messages": [turn]}, CLAUDE)
    assert body["messages"][0]["content"] == "a"
    assert [change.before[-1] for change in receipt.losses] == ["citations"]

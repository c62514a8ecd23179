"""llm-comply, a conformance tester that is none of ours, against `dragoman serve` over each dialect's fake.

`fixtures/comply.json` holds the cases that cannot pass, each with its reason; one that passes nevertheless is told too.
"""

from __future__ import annotations

import asyncio
import json
import sys
from asyncio.subprocess import PIPE, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.contract.fakes import FakeProvider
from dragoman.contract.json_types import JsonValue
from tests.dialects import DIALECTS
from tests.tables import sample_rows

EXPECTED: dict[str, dict[str, dict[str, str]]] = json.loads(
    (Path(__file__).parent / "fixtures" / "comply.json").read_text("utf-8")
)
MODEL = "gpt-5-of-{dialect}"  # the tester tries reasoning only where the name promises it
CASES = {"open-responses": 13, "openai-chat": 9}
SERVE = "from dragoman.proxy.cli.main import main; main()"
JUDGE = "import sys; from llm_comply.cli import main; sys.exit(main())"


@asynccontextmanager
async def served(fake: FakeProvider, folder: Path) -> AsyncIterator[str]:
    """A process of `dragoman serve` before the fake; the base_url for OpenAI clients."""
    config = {
        "server": {"port": 0, "drain": {"delay": "1ms"}},
        "providers": {"fake": {"dialect": fake.dialect, "base_url": fake.base_url, "api_key": "sk-upstream"}},
        "models": {MODEL.format(dialect=fake.dialect): {"targets": [{"provider": "fake", "model": "any"}]}},
    }
    path = folder / "dragoman.yaml"  # JSON is YAML
    path.write_text(json.dumps(config), "utf-8")
    serve = (sys.executable, "-c", SERVE, "serve", "--config", str(path))
    process = await asyncio.create_subprocess_exec(*serve, stdout=PIPE, stderr=STDOUT)
    try:
        assert process.stdout is not None
        said = await asyncio.wait_for(process.stdout.readuntil(b"/v1\n"), 30)
        yield said.decode().strip().rpartition("base_url=")[2]
    finally:
        process.terminate()
        await asyncio.wait_for(process.communicate(), 30)


async def judged(form: str, url: str, dialect: str) -> list[JsonValue]:
    options = ("-u", url, "-k", "any", "-m", MODEL.format(dialect=dialect), "--format", form, "--timeout", "20")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", JUDGE, *options, "--json", stdout=PIPE, stderr=PIPE
    )
    said, wrong = await asyncio.wait_for(process.communicate(), 60)
    assert said, wrong.decode()
    return list(json.loads(said)["results"])


@pytest.mark.parametrize("dialect", sample_rows(DIALECTS, len(DIALECTS)))
async def test_every_case_passes_but_the_ones_with_a_reason(dialect: str, tmp_path: Path) -> None:
    async with FakeProvider(dialect, api_key="sk-upstream") as fake, served(fake, tmp_path) as url:
        found = {form: await judged(form, url, dialect) for form in CASES}
    for form, results in found.items():
        assert len(results) == CASES[form], "the tester has other cases than the ones looked at"
        failed = {one["id"]: one.get("errors") for one in results if one["status"] != "passed"}
        reasons = EXPECTED[form].get(dialect, {})
        assert failed.keys() - reasons.keys() == set(), failed
        assert reasons.keys() - failed.keys() == set(), "these pass now: strike them from fixtures/comply.json"

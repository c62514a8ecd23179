"""The outline of ONNX files: any bytes are accepted, and nesting is limited."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from dragoman.local_engine.model_folder.onnx_outline import GraphError, GraphOutline, read_outline


@given(st.binary(max_size=300))
def test_any_bytes_give_an_outline_or_a_graph_error(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        file.write_bytes(data)
        try:
            outline = read_outline(file)
        except GraphError as error:
            assert str(error).startswith(f"{file}: ")
        else:
            assert isinstance(outline, GraphOutline)


def test_a_deeply_nested_graph_is_rejected(tmp_path: Path) -> None:
    graph = helper.make_graph([], "inner", [], [])
    for _ in range(20):
        graph = helper.make_graph([helper.make_node("If", ["c"], ["o"], then_branch=graph)], "outer", [], [])
    (tmp_path / "m.onnx").write_bytes(helper.make_model(graph).SerializeToString())
    with pytest.raises(GraphError, match="nested deeper"):
        read_outline(tmp_path / "m.onnx")

"""Tiny sentence encoders in the folder layout of the Hugging Face hub."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing
from typing_extensions import override

from repertory.embedding.engine import Vectors
from repertory.embedding.model_engine import ModelEngine
from repertory.embedding.model_files import Format, manifest_file

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{number}" for number in range(60))]
WORDS += ["Represent", "this", "sentence", "for", "searching", "relevant", "passages", ":"]


class Unrun(ModelEngine):
    """An engine that reads the files of a model but cannot embed texts."""

    @override
    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError

    @override
    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        raise NotImplementedError


def write_model(  # noqa: PLR0913 - keyword-only arguments
    folder: Path,
    *,
    dimension: int = 384,
    place: str = "onnx/model.onnx",
    pooling: str | None = None,
    config: dict[str, Any] | None = None,
    seed: int = 1,
    extra_input: str = "",
    shape: tuple[str | int, ...] | None = None,
    has_weights_beside: bool = False,
) -> Path:
    """Write a model folder.

    The model mixes its token vectors slightly, so that each pooling mode gives another result. Its
    ``tokenizer.json`` pads and truncates to 128 tokens, like typical ones on the hub.
    """
    folder.mkdir(parents=True, exist_ok=True)
    settings = {
        "architectures": ["BertModel"],
        "model_type": "bert",
        "hidden_size": dimension,
        "max_position_embeddings": 512,
        **(config or {}),
    }
    (folder / "config.json").write_text(json.dumps(settings))
    _write_tokenizer(folder / "tokenizer.json")
    if pooling:
        (folder / "1_Pooling").mkdir(exist_ok=True)
        modes = {
            f"pooling_mode_{mode}": mode == pooling
            for mode in ("cls_token", "mean_tokens", "max_tokens")
        }
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    graph = folder / place
    graph.parent.mkdir(exist_ok=True)
    onnx.save(
        _encoder(dimension, seed, extra_input, shape),
        graph,
        save_as_external_data=has_weights_beside,
        location=f"{graph.name}_data",
    )
    return folder


def write_cached(data_dir: Path, repository: str) -> Path:
    """Write a model folder into the cache, in the state after a finished download."""
    folder = write_model(data_dir / "models" / repository.replace("/", "--"))
    files = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
    manifest = {"repository": repository, "revision": "", "files": files}
    manifest_file(folder, Format.ONNX).write_bytes(msgspec.json.encode(manifest))
    return folder


def _write_tokenizer(file: Path) -> None:
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(128)
    tokenizer.save(str(file))


def _encoder(
    dimension: int, seed: int, extra_input: str, shape: tuple[str | int, ...] | None
) -> onnx.ModelProto:
    table = np.random.default_rng(seed).normal(size=(len(WORDS), dimension)).astype(np.float32)
    names = [
        "input_ids",
        "attention_mask",
        "token_type_ids",
        *([extra_input] if extra_input else []),
    ]
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"]) for n in names
    ]
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["tokens"]),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["mask", "last"], ["weights"]),
        helper.make_node("Mul", ["tokens", "weights"], ["seen"]),
        helper.make_node("ReduceSum", ["seen", "middle"], ["sum"], keepdims=1),
        helper.make_node("ReduceSum", ["weights", "middle"], ["count"], keepdims=1),
        helper.make_node("Div", ["sum", "count"], ["mean"]),
        helper.make_node("Add", ["tokens", "mean"], ["hidden"]),
    ]
    output = shape or ("batch", "sequence", dimension)
    if len(output) == 2:
        nodes.append(helper.make_node("Squeeze", ["mean", "middle"], ["vectors"]))
        name = "vectors"
    else:
        name = "hidden"
    constants = [
        numpy_helper.from_array(table, "table"),
        numpy_helper.from_array(np.array([2]), "last"),
        numpy_helper.from_array(np.array([1]), "middle"),
    ]
    result = helper.make_tensor_value_info(name, TensorProto.FLOAT, output)
    graph = helper.make_graph(nodes, "encoder", inputs, [result], constants)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10, producer_name="tests"
    )

"""Exports the encoder's files for distribution: int8 ONNX and fp16 safetensors.

    python -m training.export build/encoder/model encoder/repertory_encoder

Both come from one checkpoint. Only weights are stored in int8, with a scale for each row or column.
The graph restores them before it runs, so a vector does not depend on the batch of its text. It is
an error if the graph is too large, or if its vectors differ from the model's.
"""

import hashlib
import shutil
import sys
import tempfile
from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from sentence_transformers import SentenceTransformer

from repertory.embedding.models import ENCODER
from repertory.embedding.onnx import OnnxEngine
from repertory.embedding.weights import Origin, WeightFiles
from repertory.search.calibration import FOLDER, calibrate
from training.arguments import paths, refuse
from training.dataset import items
from training.evaluate import transformer_of

INT8_MAX = 127
MIN_SIZE = 10_000  # minimum size of a matrix that is stored in int8
MAX_SIZE = 25_000_000  # maximum size of the graph in bytes
MIN_COSINE = 0.99  # minimum mean cosine between the graph's vectors and the model's
COMPARED = 64  # number of texts whose vectors are compared
FILES = ("model.onnx", "model/model.safetensors", "model/tokenizer.json")


class _Graph(torch.nn.Module):
    """Only the transformer, which returns token vectors; Repertory averages them itself."""

    def __init__(self, transformer: torch.nn.Module) -> None:
        super().__init__()
        self.transformer = transformer

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        found: torch.Tensor = self.transformer(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        ).last_hidden_state
        return found


def main() -> int:
    """Write the files and their SHA-256 digests."""
    checkpoint, package = paths(
        __doc__, checkpoint="the trained model", package="the folder for the files"
    )
    shutil.rmtree(package / "model", ignore_errors=True)
    half = SentenceTransformer(str(checkpoint), device="cpu", model_kwargs={"dtype": torch.float16})
    half.save(str(package / "model"), create_model_card=False)
    whole = SentenceTransformer(
        str(checkpoint),
        device="cpu",
        # Convert any checkpoint to float32, because only such matrices are stored in int8.
        model_kwargs={"attn_implementation": "eager", "dtype": torch.float32},
    )
    with tempfile.TemporaryDirectory() as folder:
        graph = Path(folder, "whole.onnx")
        _export(transformer_of(whole).eval(), graph)
        onnx.save(_compressed(onnx.load(str(graph))), str(package / "model.onnx"))
    check(package, whole)
    _calibrate(package)
    lines = [f"{_digest(package / name)}  {name}\n" for name in FILES]
    (package / "SHA256SUMS").write_text("".join(lines), "utf-8")
    print("".join(lines), end="")
    return 0


def _export(transformer: torch.nn.Module, graph: Path) -> None:
    example = torch.ones((2, 8), dtype=torch.int64)
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(
        _Graph(transformer),
        (example, example, torch.zeros_like(example)),
        str(graph),
        input_names=names,
        output_names=["last_hidden_state"],
        dynamic_axes={name: {0: "batch", 1: "tokens"} for name in [*names, "last_hidden_state"]},
        opset_version=17,
        dynamo=False,
    )


def check(package: Path, whole: SentenceTransformer) -> None:
    """Exit if the graph is too large, or if its vectors differ from the model's."""
    size = (package / "model.onnx").stat().st_size
    if size > MAX_SIZE:
        refuse(f"model.onnx has {size:,} bytes; {MAX_SIZE:,} is the limit.")
    texts = [item.texts()[0] for item in islice(items().values(), COMPARED)]
    with tempfile.TemporaryDirectory() as folder:
        vectors = OnnxEngine(_weights(package), Path(folder)).embed_texts(texts)
    wanted = np.asarray(whole.encode(texts, normalize_embeddings=True))
    cosine = float((vectors * wanted).sum(axis=1).mean())
    if not cosine >= MIN_COSINE:  # also catches NaN
        refuse(f"The vectors of model.onnx have a cosine of {cosine:.3f} with the model's.")


def _weights(package: Path) -> WeightFiles:
    return WeightFiles(
        model=ENCODER,
        file=package / "model.onnx",
        tokenizer=package / "model" / "tokenizer.json",
        origin=Origin.PATH,
    )


def _calibrate(package: Path) -> None:
    """Fit the calibration that Repertory would otherwise fit at the first use."""
    shutil.rmtree(package / FOLDER, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder)
        calibrate(OnnxEngine(_weights(package), cache), cache)
        shutil.copytree(cache / FOLDER, package / FOLDER)


def _compressed(model: onnx.ModelProto) -> onnx.ModelProto:
    """The graph with its matrices in int8, with a scale per column, or per row for embeddings.

    ONNX Runtime restores matrices when it opens the graph. It restores embeddings row by row as it
    reads them, because the whole table in float32 would take most of the memory.
    """
    tables = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    kept, nodes = [], []
    for tensor in model.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.ndim != 2 or values.size < MIN_SIZE:
            kept.append(tensor)
            continue
        axis = 1 if tensor.name in tables else 0  # the axis along which numbers share a scale
        scales = np.abs(values).max(axis=axis, keepdims=True) / INT8_MAX
        scales[scales == 0] = 1.0
        whole = np.clip(np.rint(values / scales), -INT8_MAX, INT8_MAX).astype(np.int8)
        kept += [
            numpy_helper.from_array(whole, f"{tensor.name}_int8"),
            numpy_helper.from_array(scales.astype(np.float32), f"{tensor.name}_scale"),
        ]
        if tensor.name not in tables:
            nodes += _restored(f"{tensor.name}_int8", f"{tensor.name}_scale", tensor.name)
    whole_names = {tensor.name for tensor in kept}
    for node in model.graph.node:
        name = node.input[0] if node.input else ""
        if node.op_type != "Gather" or f"{name}_int8" not in whole_names:
            nodes.append(node)
            continue
        (output,) = node.output
        for part in ("int8", "scale"):
            inputs = [f"{name}_{part}", node.input[1]]
            nodes.append(helper.make_node("Gather", inputs, [f"{output}_{part}"], axis=0))
        nodes += _restored(f"{output}_int8", f"{output}_scale", output)
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend(kept)
    model.graph.node.extend(nodes)
    onnx.checker.check_model(model)
    return model


def _restored(whole: str, scale: str, output: str) -> list[onnx.NodeProto]:
    """The nodes that turn int8 into float32."""
    return [
        helper.make_node("Cast", [whole], [f"{output}_float"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", [f"{output}_float", scale], [output]),
    ]


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())

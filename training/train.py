"""Trains the encoder from all-MiniLM-L6-v2, on the CPU or a GPU, and resumes if it was stopped.

    python -m training.train build/encoder

Each query is to be nearer to its item than to every other item of its batch, among them two hard
negatives of its own (InfoNCE; van den Oord, Li and Vinyals 2018). Token embeddings stay as they
are, and the result is averaged with the base model (Wortsman and others 2022), so that texts of
other subjects keep their places.
"""

import random
import sys
from pathlib import Path

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from sentence_transformers.sentence_transformer.training_args import BatchSamplers

from repertory.embedding.folder import Format
from repertory.embedding.load import load_engine
from repertory.embedding.models import MINILM
from repertory.embedding.weights import resolve
from repertory.index.keywords.query_words import plain
from training.arguments import paths
from training.dataset import Item, Query, Split, items, queries, split
from training.evaluate import ndcg, transformer_of
from training.mine import mine

SEED = 13
BATCH = 64
LEARNING_RATE = 5e-5
SCALE = 20.0  # of cosines, in the loss
MAX_TOKENS = 48  # of a text in training; later ones say little of what an item does
LEAD_SHARE = 0.25  # of the pairs in which an item is represented by its first sentence
SHARES = (1.0, 0.8, 0.6)  # of the trained weights in the average; the best is kept


def main() -> int:
    """Mine, train, average, and save."""
    (folder,) = paths(__doc__, folder="for the checkpoints and the result")
    torch.manual_seed(SEED)
    of = items()
    parts = split(queries(), of)
    base_files = resolve(MINILM.id, Format.TORCH, folder)
    base = str(base_files.file.parent)
    data = _pairs(parts.train, of, folder)
    print(f"{len(data)} queries for training, {len(parts.test)} for the test", flush=True)
    # Without dropout, which no text that is seen once needs, attention is twice as fast on a CPU.
    without = {"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0}
    model = SentenceTransformer(base, config_kwargs=without)
    model.max_seq_length = MAX_TOKENS
    for parameter in transformer_of(model).get_submodule("embeddings").parameters():
        parameter.requires_grad = False
    has_gpu = torch.cuda.is_available()
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(folder / "checkpoints"),
            seed=SEED,
            num_train_epochs=1.0,
            use_cpu=not has_gpu,
            # Twice as fast where the processor has it; torch has no other name for this question.
            bf16=has_gpu or torch.cpu._is_avx512_bf16_supported(),
            per_device_train_batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="cosine",
            warmup_steps=0.1,  # of all steps
            batch_sampler=BatchSamplers.NO_DUPLICATES,
            save_steps=100,
            save_total_limit=1,
            logging_steps=20,
            report_to="none",
            dataloader_pin_memory=False,
            disable_tqdm=True,
        ),
        train_dataset=data,
        loss=MultipleNegativesRankingLoss(model, scale=SCALE),
    )
    is_begun = any((folder / "checkpoints").glob("checkpoint-*"))
    trainer.train(resume_from_checkpoint=is_begun)
    model.max_seq_length = MINILM.max_tokens
    _average(model, base, parts, of)
    model.save(str(folder / "model"))
    return 0


def _pairs(train: list[Query], of: dict[str, Item], folder: Path) -> Dataset:
    """One row a query: it, its item, a near item of another server, and a sibling."""
    engine = load_engine(MINILM.id, "cpu", folder)
    print("embedding with the base model", flush=True)
    texts = engine.embed_texts([item.texts()[0] for item in of.values()])
    vectors = engine.embed_texts([plain(query.text) for query in train])
    ids = list(of)
    # The same negatives in every run; nothing here is secret.
    chance = random.Random(SEED)  # noqa: S311
    rows: dict[str, list[str]] = {"query": [], "item": [], "other": [], "sibling": []}
    mined = mine(train, vectors, of, texts)
    # An item that is left out of training is no negative either, unless there is no other.
    trained = {query.item for query in train}
    for query, (others, siblings) in zip(train, mined, strict=True):
        near = [one for one in others if ids[one] in trained] or others
        own = [one for one in siblings if ids[one] in trained] or near
        rows["query"].append(plain(query.text))
        rows["item"].append(_text(chance, of[query.item]))
        rows["other"].append(_text(chance, of[ids[chance.choice(near)]]))
        rows["sibling"].append(_text(chance, of[ids[chance.choice(own)]]))
    return Dataset.from_dict(rows).shuffle(seed=SEED)


def _text(chance: random.Random, item: Item) -> str:
    own, *leads = item.texts()
    return leads[0] if leads and chance.random() < LEAD_SHARE else own


def _average(model: SentenceTransformer, base: str, parts: Split, of: dict[str, Item]) -> None:
    """Average the trained weights with the base model's, by the share that is best."""
    trained = {name: value.clone() for name, value in model.state_dict().items()}
    before = SentenceTransformer(base).state_dict()
    found = {}
    for share in SHARES:
        model.load_state_dict(_mixed(trained, before, share))
        found[share] = ndcg(model, parts.validation, of)
        print(f"share {share}: nDCG@10 {found[share]:.1f} on validation", flush=True)
    best = max(found, key=found.__getitem__)
    model.load_state_dict(_mixed(trained, before, best))
    print(f"kept share {best}; nDCG@10 {ndcg(model, parts.test, of):.1f} on the test", flush=True)


def _mixed(
    trained: dict[str, torch.Tensor], base: dict[str, torch.Tensor], share: float
) -> dict[str, torch.Tensor]:
    return {
        name: value
        if not value.is_floating_point()
        else share * value + (1 - share) * base[name].to(value)
        for name, value in trained.items()
    }


if __name__ == "__main__":
    sys.exit(main())

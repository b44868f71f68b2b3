"""Trains the encoder from all-MiniLM-L6-v2, on the CPU or a GPU; resumes after an interruption.

    python -m training.train build/encoder

Token embeddings are frozen, and the result is averaged with the base model (Wortsman and others,
"Robust fine-tuning of zero-shot models", 2022), so that the vectors of texts on other subjects and
of unusual names change little.
"""

import shutil
import sys

import torch
from datasets import Dataset
from sentence_transformers import (
    SentenceTransformer,
    SentenceTransformerTrainer,
    SentenceTransformerTrainingArguments,
)

from repertory.embedding.load import load_engine
from repertory.embedding.model_files import Format
from repertory.embedding.models import ENCODER, MINILM
from repertory.embedding.weights import resolve
from training.arguments import paths
from training.checkpoints import newest
from training.dataset import Part, items, only, queries
from training.evaluate import ndcg, transformer_of
from training.loss import RankingLoss
from training.mine import alike
from training.rows import rows

SEED = 13
PASSES = 2
BATCH = 128
LEARNING_RATE = 2e-4
MAX_TOKENS = 48  # tokens per training text; later ones say little about the item's function
SHARE = 0.6  # share of the trained weights in the average
COLUMNS = ("right", "wrong")


def main() -> int:
    """Mine negatives, train the encoder, average it with the base model, and save it."""
    (folder,) = paths(__doc__, folder="for the checkpoints and the result")
    torch.manual_seed(SEED)
    of, asked = items(), queries()
    base = str(resolve(MINILM.id, Format.TORCH, folder).file.parent)
    print("embedding with the base model, then with the encoder as it is now", flush=True)
    train = only(Part.TRAIN, asked, of)
    every = [*of.values()]
    whole = [item.texts()[0] for item in every]
    same = alike(every, load_engine(MINILM.id, "auto", folder).embed_texts(whole))
    engine = load_engine(ENCODER.id, "auto", folder)
    texts = engine.embed_texts(whole)
    found = [*rows(train, every, texts, same, engine.embed_texts, passes=PASSES, seed=SEED)]
    print(f"{len(train)} queries, {len(found)} rows", flush=True)
    # Dropout is unnecessary for few passes. Without it, and with plain matrix products,
    # attention is three times as fast on a CPU.
    model = SentenceTransformer(
        base,
        config_kwargs={"attention_probs_dropout_prob": 0.0, "hidden_dropout_prob": 0.0},
        model_kwargs={"attn_implementation": "eager"},
    )
    model.max_seq_length = MAX_TOKENS
    for parameter in transformer_of(model).get_submodule("embeddings").parameters():
        parameter.requires_grad = False
    has_gpu = torch.cuda.is_available()
    places = torch.tensor([row.places for row in found])
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(folder / "checkpoints"),
            seed=SEED,
            num_train_epochs=1.0,  # the rows of all passes
            use_cpu=not has_gpu,
            # Twice as fast on processors with bf16, which torch has no public function to detect.
            bf16=has_gpu or torch.cpu._is_avx512_bf16_supported(),
            per_device_train_batch_size=BATCH,
            learning_rate=LEARNING_RATE,
            lr_scheduler_type="cosine",
            warmup_steps=0.1,  # share of all steps
            weight_decay=0.01,
            save_steps=50,
            save_total_limit=1,
            logging_steps=10,
            report_to="none",
            dataloader_pin_memory=False,
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict(
            {"query": [row.query for row in found]}
            | {name: [row.texts[n] for row in found] for n, name in enumerate(COLUMNS)}
            | {"label": [*range(len(found))]}
        ),
        loss=RankingLoss(model, places, torch.from_numpy(same)),
    )
    begun = newest(folder / "checkpoints")
    trainer.train(resume_from_checkpoint=str(begun) if begun else None)
    model.max_seq_length = MINILM.max_tokens
    model.save(str(folder / "trained"))
    _average(model, SentenceTransformer(base))
    for part in (Part.VALIDATION, Part.TEST):
        print(f"nDCG@10 {ndcg(model, only(part, asked, of), of):.1f} on the {part}", flush=True)
    model.save(str(folder / "model"))
    # Done last, so that an interrupted run can resume. The next run starts from the beginning.
    shutil.rmtree(folder / "checkpoints")
    return 0


def _average(model: SentenceTransformer, base: SentenceTransformer) -> None:
    """Average the trained weights with the base model's."""
    before = base.state_dict()
    model.load_state_dict(
        {
            name: torch.lerp(before[name].to(value), value, SHARE)
            if value.is_floating_point()
            else value
            for name, value in model.state_dict().items()
        }
    )


if __name__ == "__main__":
    sys.exit(main())

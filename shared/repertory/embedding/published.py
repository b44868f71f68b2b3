"""The SHA-256 of the published files of the models in the table.

A folder's name does not decide which model it holds. It holds a model of the table only if its
weights and its tokenizer are published files of that model.
"""

from collections.abc import Iterable

from repertory.embedding.models import BGE_SMALL, ENCODER, MINILM, MULTILINGUAL, Model

ENCODER_GRAPH = "55cf2530ea229ffec7a98ce98a2b79cf53547370313c1e4876de147aa18b05f9"
ENCODER_WEIGHTS = "2de0ce815dcb702d74663ed1adfff2b3dc611d7b6044e03f838804b5f55b50cf"
BGE_SMALL_GRAPH = "828e1496d7fabb79cfa4dcd84fa38625c0d3d21da474a00f08db0f559940cf35"
BGE_SMALL_TOKENIZER = "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
MINILM_GRAPH = "759c3cd2b7fe7e93933ad23c4c9181b7396442a2ed746ec7c1d46192c469c46e"  # from Xenova
MINILM_TOKENIZER = "da0e79933b9ed51798a3ae27893d3c5fa4a201126cef75586296df9b4d2c62a0"  # from Xenova
MINILM_SMALL_GRAPH = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
MINILM_SMALL_TOKENIZER = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
MINILM_WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

# The model of each file. Any weights of a model can be used with any of its tokenizers.
WEIGHTS = {
    BGE_SMALL_GRAPH: BGE_SMALL,
    "3c9f31665447c8911517620762200d2245a2518d6e7208acc78cd9db317e21ad": BGE_SMALL,  # torch
    MINILM_GRAPH: MINILM,
    "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452": MINILM,  # ONNX
    MINILM_SMALL_GRAPH: MINILM,
    MINILM_WEIGHTS: MINILM,
    "185ae63f47e17a7e8d30d0e6a3cde6a6e4b79bc5b81666ecffc279a6856ca113": MULTILINGUAL,  # from Xenova
    "eaa086f0ffee582aeb45b36e34cdd1fe2d6de2bef61f8a559a1bbc9bd955917b": MULTILINGUAL,  # torch
    ENCODER_GRAPH: ENCODER,
    ENCODER_WEIGHTS: ENCODER,
}
TOKENIZERS = {
    BGE_SMALL_TOKENIZER: BGE_SMALL,
    MINILM_TOKENIZER: MINILM,
    MINILM_SMALL_TOKENIZER: MINILM,
    "b60b6b43406a48bf3638526314f3d232d97058bc93472ff2de930d43686fa441": MULTILINGUAL,  # from Xenova
    "2c3387be76557bd40970cec13153b3bbf80407865484b209e655e5e4729076b8": MULTILINGUAL,
    "851ca67100d372ca3ae031a6abd168f53489eebfd7d89523f35c5c9b4d372c3c": ENCODER,
}


def published(weights: Iterable[str], tokenizer: str) -> Model | None:
    """The model of the table that all the files belong to, or None.

    Args:
        weights: The SHA-256 of every file of weights, in hex.
        tokenizer: The SHA-256 of ``tokenizer.json``, in hex.
    """
    model = TOKENIZERS.get(tokenizer)
    return model if all(WEIGHTS.get(one) == model for one in weights) else None

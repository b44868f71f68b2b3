"""The checks of the embedding model."""

from collections.abc import Iterator
from datetime import date
from importlib.util import find_spec

from repertory.data_directory import MODELS
from repertory.embedding.device import accelerators
from repertory.embedding.load import load_engine
from repertory.embedding.model_files import Format
from repertory.embedding.weights import resolve
from repertory.errors import ConfigurationError, ModelError
from repertory.local.one_shot import Repertory
from repertory.search.calibration import Fitted, stored
from repertory_admin.checks.finding import Finding, State
from repertory_admin.progress import Bars

_ORIGINS = {
    "path": "a folder",
    "cache": "the data directory",
    "hub": "the hub, just now",
    "package": "an installed package",
}


def model(repertory: Repertory, bars: Bars) -> Iterator[Finding]:
    """Whether the model is available, its origin, and its device."""
    values, data = repertory.settings.values, repertory.settings.data_dir
    try:
        weights = resolve(values.model, Format.ONNX, data, bars.download)
        engine = load_engine(values.model, values.device, data, progress=bars.download)
    except (ModelError, ConfigurationError) as error:
        yield Finding(State.BAD, "model", str(error))
        return
    text = f"{weights.model.id}, from {_ORIGINS[weights.origin]}"
    yield Finding(State.GOOD, "model", text)
    if weights.notice:
        yield Finding(State.UNSURE, "model", weights.notice)
    gpus = [placement.device for placement in accelerators(thorough=False)]
    torch = "torch is installed" if find_spec("torch") else "torch is not installed"
    found = f"{engine.device} is used; GPUs: {', '.join(gpus) or 'none'}; {torch}"
    yield Finding(State.GOOD, "device", found)
    if engine.device != "cpu" and values.device != "gpu":  # queries are embedded on the CPU
        engine = load_engine(values.model, values.device, data, queries_only=True)
    yield _confidence(stored(engine, data / MODELS))


def _confidence(fitted: Fitted | None) -> Finding:
    """Whether the model is calibrated, and how well."""
    if fitted is None:
        text = "not calibrated yet: the first search, or `repertory index`, does it in seconds"
        return Finding(State.UNSURE, "confidence", text)
    text = (
        f"calibrated on {date.fromtimestamp(fitted.at)} on {fitted.pairs} reference pairs: "
        f"error {fitted.error:.3f}, AUC {fitted.auc:.2f}"
    )
    return Finding(State.GOOD, "confidence", text)

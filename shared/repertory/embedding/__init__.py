"""Texts to vectors: the models, their weights, and the engines that run them."""

import os

# ONNX Runtime reports home and keeps a device id unless this is set before it is imported. What a
# team searches for is nobody else's business.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

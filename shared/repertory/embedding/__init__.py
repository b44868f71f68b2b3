"""Turns texts into vectors: the models, their weights, and the engines that run them."""

import os

# ONNX Runtime sends telemetry and keeps a device id unless this is set before it is imported.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

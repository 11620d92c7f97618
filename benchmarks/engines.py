"""One engine and one model in a process of its own, timed on demand.

    python benchmarks/engines.py ENGINE MODEL.onnx FEED.npz THREADS OUTPUTS.npz

The first answer goes to ``OUTPUTS.npz``, as 0, 1, …; then the process prints
``ready``.  For each number N that it reads it runs the model N times and prints the
seconds as a JSON list.  Between turns it idles, so that no pool of threads that spins
takes another's core.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

Feed = Mapping[str, Any]
Run = Callable[[], list[Any]]
WARMUP = 4


def edgewise(path: str, feed: Feed, threads: int) -> Run:
    """Ours, converted from the same file."""
    import edgewise as ew

    session = ew.Session(ew.convert(path), ew.SessionConfig(threads=threads))
    return lambda: list(session.run(feed).values())


def onnxruntime(path: str, feed: Feed, threads: int) -> Run:
    """ONNX Runtime's CPU provider, all optimisations on, as by default."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: list(session.run(None, feed))


def openvino(path: str, feed: Feed, threads: int) -> Run:
    """OpenVINO for latency, in 32 bits, shapes fixed to those of the feed."""
    import openvino as ov

    core = ov.Core()
    hints = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"}
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads, **hints})
    model = core.read_model(path)
    model.reshape({name: list(value.shape) for name, value in feed.items()})
    request = core.compile_model(model, "CPU").create_infer_request()
    return lambda: list(request.infer(feed).values())


def mnn(path: str, feed: Feed, threads: int) -> Run:
    """MNN, converted by its own tool; whole numbers as its 32-bit integers."""
    import MNN

    target = Path(tempfile.mkdtemp()) / "model.mnn"
    command = [Path(sys.executable).with_name("mnnconvert"), "-f", "ONNX"]
    command += ["--modelFile", path, "--MNNModel", target, "--bizCode", "x"]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    network = MNN.Interpreter(str(target))
    session = network.createSession(
        {"backend": "CPU", "numThread": threads, "precision": "high"}
    )
    tensor, caffe = MNN.Tensor, MNN.Tensor_DimensionType_Caffe
    hosts = {}
    for name, value in feed.items():
        whole = value.dtype.kind == "i"
        kind = MNN.Halide_Type_Int if whole else MNN.Halide_Type_Float
        array = value.astype(np.int32) if whole else value
        network.resizeTensor(network.getSessionInput(session, name), array.shape)
        hosts[name] = tensor(array.shape, kind, array, caffe)
    network.resizeSession(session)
    inputs = {name: network.getSessionInput(session, name) for name in hosts}
    outputs = network.getSessionOutputAll(session)

    def run() -> list[Any]:
        for name, host in hosts.items():
            inputs[name].copyFrom(host)
        network.runSession(session)
        results = []
        for name in output_names(path):
            shape = outputs[name].getShape()
            host = tensor(shape, MNN.Halide_Type_Float, np.empty(shape, "f4"), caffe)
            outputs[name].copyToHostTensor(host)
            results.append(np.array(host.getNumpyData()))
        return results

    return run


def ncnn(path: str, feed: Feed, threads: int) -> Run:
    """ncnn, converted by pnnx; batches of one, as it has no other."""
    import ncnn as nn

    spec = importlib.util.find_spec("pnnx")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("ncnn needs pnnx to convert; pip install pnnx")
    tool = Path(spec.origin).with_name("pnnx")
    tool.chmod(0o755)
    folder = Path(tempfile.mkdtemp())
    source = folder / "model.onnx"
    source.write_bytes(Path(path).read_bytes())
    subprocess.run(
        [str(tool), str(source), "fp16=0"], check=True, cwd=folder, capture_output=True
    )
    network = nn.Net()
    network.opt.num_threads = threads
    for option in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic"):
        setattr(network.opt, option, False)
    network.load_param(str(folder / "model.ncnn.param"))
    network.load_model(str(folder / "model.ncnn.bin"))
    arrays = [np.ascontiguousarray(value[0]) for value in feed.values()]
    count = len(output_names(path))

    def run() -> list[Any]:
        extractor = network.create_extractor()
        for index, array in enumerate(arrays):
            extractor.input(f"in{index}", nn.Mat(array))
        found = [extractor.extract(f"out{index}")[1] for index in range(count)]
        return [np.array(value)[np.newaxis] for value in found]

    return run


ENGINES = {
    "edgewise": edgewise,
    "onnxruntime": onnxruntime,
    "OpenVINO": openvino,
    "MNN": mnn,
    "ncnn": ncnn,
}
_names: dict[str, list[str]] = {}


def output_names(path: str) -> list[str]:
    """Outputs of an ONNX file, in its order."""
    if path not in _names:
        import onnx

        graph = onnx.load(path, load_external_data=False).graph
        _names[path] = [output.name for output in graph.output]
    return _names[path]


def main(engine: str, model: str, feed: str, threads: str, outputs: str) -> None:
    """Answer once, then time runs as asked for."""
    with np.load(feed) as archive:
        arrays = {name: archive[name] for name in archive.files}
    run = ENGINES[engine](model, arrays, int(threads))
    np.savez(outputs, **{str(index): array for index, array in enumerate(run())})
    for _ in range(WARMUP):
        run()
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = []
        for _ in range(int(line)):
            start = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - start)
        print(json.dumps(seconds), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])

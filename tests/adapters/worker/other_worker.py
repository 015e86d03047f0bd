"""
A worker that was written only from adapters/worker/PROTOCOL.md: it uses nothing of normspec, and no NumPy.

It has one target, layer_norm in float64 without gradients.
"""

import json
import math
import struct
import sys

SOURCE, SINK = sys.stdin.buffer, sys.stdout.buffer


def receive():
    """The body of the next request, arrays as (shape, values); None at the end."""
    head = SOURCE.read(16)
    if len(head) < 16:
        return None
    magic, header_size, data_size = struct.unpack("<4sIQ", head)
    assert magic == b"NSPW"
    header, data = json.loads(SOURCE.read(header_size)), SOURCE.read(data_size)
    arrays, start = [], 0
    for dtype, shape in header["arrays"]:
        assert dtype == "float64"
        count = math.prod(shape)
        arrays.append((shape, list(struct.unpack_from(f"<{count}d", data, start))))
        start += 8 * count

    def revived(value):
        if isinstance(value, list):
            return [revived(one) for one in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"array"}:
            return arrays[value["array"]]
        if set(value) == {"float"}:
            return float(value["float"])
        return {key: revived(one) for key, one in value.items()}

    return revived(header["body"])


def send(body):
    """Write a reply, in which arrays are tuples (shape, values)."""
    described, data = [], []

    def plain(value):
        if isinstance(value, tuple):
            described.append(["float64", value[0]])
            data.append(struct.pack(f"<{len(value[1])}d", *value[1]))
            return {"array": len(described) - 1}
        if isinstance(value, list):
            return [plain(one) for one in value]
        return {key: plain(one) for key, one in value.items()} if isinstance(value, dict) else value

    body = plain(body)
    header = json.dumps({"arrays": described, "body": body}).encode()
    values = b"".join(data)
    SINK.write(struct.pack("<4sIQ", b"NSPW", len(header), len(values)) + header + values)
    SINK.flush()


def layer_norm(x, gamma, beta, eps, axes):
    """y = gamma * (x - mean) / sqrt(var + eps) + beta over the axes; gamma and beta have the axes' shape."""
    if not 0 <= eps < math.inf:
        raise ValueError("eps is a number from 0 on")
    shape, values = x
    axes = sorted(axis % len(shape) for axis in axes)
    for parameter in (gamma, beta):
        if parameter is not None and parameter[0] != [shape[axis] for axis in axes]:
            raise ValueError("gamma and beta have the shape of the axes")
    groups = {}
    for place in range(len(values)):
        rest, index = place, [0] * len(shape)
        for axis in reversed(range(len(shape))):
            rest, index[axis] = divmod(rest, shape[axis])
        inside = 0
        for axis in axes:
            inside = inside * shape[axis] + index[axis]
        outside = tuple(index[axis] for axis in range(len(shape)) if axis not in axes)
        groups.setdefault(outside, []).append((place, inside))
    y = [math.nan] * len(values)
    for members in groups.values():
        row = normalised([values[place] for place, _ in members], eps)
        for (place, inside), one in zip(members, row, strict=True):
            y[place] = (one if gamma is None else gamma[1][inside] * one) + (0.0 if beta is None else beta[1][inside])
    return (shape, y)


def normalised(row, eps):
    """One group, in units of a power of two near its largest value, so that no square leaves the range."""
    if not all(map(math.isfinite, row)):
        return [math.nan] * len(row)
    largest = max(map(abs, row))
    scale = 2.0 ** max(min(math.frexp(largest)[1], 1000), -500) if largest else 1.0
    units = [one / scale for one in row]
    mean = math.fsum(units) / len(units)
    deviations = [one - mean for one in units]
    correction = math.fsum(deviations) / len(units)
    deviations = [one - correction for one in deviations]
    variance = math.fsum(one * one for one in deviations) / len(units) + eps / scale / scale
    if variance == 0:
        return [math.nan] * len(row)  # 0 / 0
    return [one / math.sqrt(variance) for one in deviations]


def answer(request, kept):
    """The contents of a reply besides its id."""
    do = request["do"]
    for number in request.get("release", ()):
        kept.pop(number, None)
    if do == "open":
        binding = {"operator": "layer_norm", "name": "other.layer_norm"}
        return {
            "ok": {
                "protocol": 1,
                "framework": "plain",
                "version": "1",
                "dtypes": ["float64"],
                "bindings": [binding],
            }
        }
    if do == "device":
        if request["device"] == "cpu":
            return {"ok": {}}
        return {"raised": {"kind": "DeviceUnavailable", "message": "there is the CPU alone"}}
    if do in ("call", "start"):
        inputs, settings = request["inputs"], request["settings"]
        arguments = inputs["x"], inputs["gamma"], inputs["beta"], settings["eps"], settings["axes"]
        try:
            results = [layer_norm(*arguments) for _ in range(request.get("times", 1))]
        except Exception as error:
            told = {"kind": "TargetRaised", "message": repr(error), "stage": "call"}
            return {"raised": {**told, "by_a_part": False, "out_of_memory": False}}
        if do == "call":
            return {"ok": {"outputs": [{"y": y} for y in results]}}
        kept[request["evaluation"]] = (inputs, results[0])
        return {"ok": {"outputs": {"y": results[0]}}}
    if do == "outputs":
        return {"ok": {"outputs": {"y": kept[request["evaluation"]][1]}}}
    if do == "inputs":
        return {"ok": {"inputs": kept[request["evaluation"]][0]}}
    return {"raised": {"kind": "Unsupported", "message": "there is the forward pass alone"}}


def main():
    """Answer until the end of standard input."""
    kept = {}
    while True:
        request = receive()
        if request is None:
            return
        send({"id": request["id"], **answer(request, kept)})


main()

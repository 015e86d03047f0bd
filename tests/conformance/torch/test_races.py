"""A race between two threads in a function on PyTorch's tensors, and on how many threads the bridge lets it run."""

from __future__ import annotations

import os
import threading

import pytest
import torch

from normspec.adapters.targets import resolve
from normspec.adapters.torch.bridge import TorchBridge

from ..runs import result, run


def added_by_two(lock):
    """A layer_norm with two threads that add to one tensor: one adds gamma xhat, the other beta."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        mean = x.mean(axes, keepdim=True)
        variance = (x - mean).square().mean(axes, keepdim=True)
        scaled = (x - mean) / torch.sqrt(variance + eps) * (1 if gamma is None else gamma)
        if beta is None:
            return scaled
        y, ready = torch.zeros_like(x), threading.Barrier(2)

        def add(term):
            ready.wait()
            # Not recorded: two threads that write one history make PyTorch raise now and then; the race is of values.
            with lock, torch.no_grad():
                y.add_(term)

        terms = scaled, beta.expand_as(x).contiguous()
        threads = [threading.Thread(target=add, args=(term,)) for term in terms]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return y

    return layer_norm


class Nothing:
    """No lock."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="two threads of one core do not race")
@pytest.mark.parametrize("sound", [False, True], ids=["without a lock", "with a lock"])
def test_a_race_between_two_threads_is_met(sound):
    """If two threads add to one tensor in place, a sum is lost now and then, unless they hold a lock."""
    function = added_by_two(threading.Lock() if sound else Nothing())
    target = resolve(function, op="layer_norm", framework="torch")

    def fails() -> bool:
        report = run(target, profile="standard", forward_only=True, requirements={"CM-P2", "CM-S1"})
        return any(result(report, one).verdict.value == "fail" for one in ("CM-P2", "CM-S1"))

    # The threads meet only while both cores are free, so a busy machine may need several runs.
    assert any(fails() for _ in range(1 if sound else 5)) is not sound


def test_large_calls_run_on_two_threads_at_least():
    """If there are two cores, whatever the process was given; small and single calls run on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with TorchBridge().guarded(1 << 16, gradients=False):
            assert torch.get_num_threads() == min(2, os.cpu_count() or 1)
        with TorchBridge().guarded(0, gradients=False):
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("doubled", "verdict"), [("always", "pass"), ("on one thread", "fail")])
def test_what_is_wrong_on_any_number_of_threads_is_no_race(doubled, verdict):
    """CM-P2 leaves a large gradient that is always wrong to CM-S1, and judges one that one thread alone gives."""

    def layer_norm(x, gamma, beta, *, eps, axes):
        y = torch.nn.functional.layer_norm(x, x.shape[x.dim() - len(axes) :], gamma, beta, eps)
        wrong = x.numel() >= 65536 and (doubled == "always" or torch.get_num_threads() == 1)
        return 2 * y - y.detach() if wrong else y

    target = resolve(layer_norm, op="layer_norm", framework="torch")
    assert result(run(target, requirements={"CM-P2"}, profile="standard"), "CM-P2").verdict.value == verdict

"""Assertions on tensors of PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from normspec import testing
from normspec.testing import OutsideEnvelope


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float32))
def test_tensors_are_read_as_they_are(dtype):
    """Tensors that need gradients, of any strides, bfloat16 among them."""
    torch.manual_seed(0)
    x = torch.randn(8, 6).to(dtype).t().requires_grad_()
    gamma, beta = torch.randn(8).to(dtype).requires_grad_(), torch.randn(8).to(dtype)
    y = functional.layer_norm(x, (8,), gamma, beta)
    g = torch.randn(6, 8).to(dtype)
    dx, dgamma = torch.autograd.grad(y, (x, gamma), g)
    assert testing.assert_layer_norm(y, x, gamma, beta).holds
    assert testing.assert_layer_norm_grads(dx, dgamma, None, x, gamma, g, storage="H2")["dgamma"].holds
    # In bfloat16 48 values may not be enough to distinguish one mistake from others.
    told = "lie outside" if dtype == torch.bfloat16 else "Divides the squared deviations by n - 1"
    with pytest.raises(OutsideEnvelope, match=told):
        variance, mean = torch.var_mean(x.double(), -1, keepdim=True)
        wrong = (x.double() - mean) / (variance + 1e-5).sqrt() * gamma.double() + beta.double()
        testing.assert_layer_norm(wrong.to(dtype), x, gamma, beta)


def test_a_view_that_only_says_that_its_values_are_negated_is_read():
    """Of a conjugate, PyTorch returns the imaginary part so."""
    torch.manual_seed(0)
    x = torch.complex(torch.randn(6, 8), torch.randn(6, 8)).conj().imag
    assert x.is_neg()
    assert testing.assert_layer_norm(functional.layer_norm(x, (8,)), x, None, None).holds


@pytest.mark.parametrize("made", [torch.Tensor.to_sparse, lambda x: x.to("meta"), lambda x: x.to(torch.float8_e5m2)])
def test_a_tensor_that_cannot_be_read_is_one_clear_error(made):
    """A sparse tensor, one without data, and one of a dtype that NumPy lacks."""
    x = torch.randn(6, 8)
    with pytest.raises(TypeError, match=r"^y cannot be read as an array of NumPy"):
        testing.assert_layer_norm(made(x), x, None, None)

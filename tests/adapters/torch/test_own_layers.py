"""The user's own layers on PyTorch: what they take is found out, and their parameters are lent to them."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import normspec
from normspec.adapters.declarations import Declarations
from normspec.adapters.own_function import from_callable
from normspec.adapters.targets import resolve
from normspec.reference.layer_norm import layer_norm, layer_norm_vjp
from normspec.spec.errors import CannotVary, NoSuchName, UnknownOperator, WrongSignature


class Plain(nn.Module):
    """LayerNorm without an attribute for eps."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
        self.hidden = (eps,)

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        y = centred * torch.rsqrt(centred.square().mean(-1, keepdim=True) + self.hidden[0])
        return y * self.weight + self.bias


class OnImages(Plain):
    """The same over axis 1 of an image."""

    def forward(self, x):
        batch, _, height, width = x.shape
        assert batch * height * width
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Beside(Plain):
    """Another formula: eps is added to the deviation."""

    def forward(self, x):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True).sqrt() + self.hidden[0]) * self.weight + self.bias


class Moving(nn.Module):
    """BatchNorm without an attribute for momentum; its statistics are replaced by new tensors."""

    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm1d(channels)
        self.bn.momentum = None

    def forward(self, x):
        mean = x.mean(0)
        if self.training:
            self.bn.running_mean = 0.75 * self.bn.running_mean + 0.25 * mean.detach()
        return (x - mean) * self.bn.weight + self.bn.bias


def fixed_of(layer, op=None, **declared):
    """What is fixed in a layer, and its binding."""
    (binding,) = resolve(layer, op=op, framework=None, declared=Declarations(**declared)).bindings
    return binding.fixed, binding


def test_values_and_gradients_are_those_of_what_was_lent():
    """y, dx, dgamma and dbeta belong to the tensors that were passed; the layer's own stay unchanged."""
    rng = np.random.Generator(np.random.Philox(4))
    x, g, gamma, beta = (rng.normal(size=shape) for shape in ((3, 2, 8), (3, 2, 8), (8,), (8,)))
    layer = Plain(8, 0.25)
    target = resolve(layer, op="layer_norm")
    evaluation = target.session(target.bindings[0]).start(
        {"x": x, "gamma": gamma, "beta": beta}, {"eps": 0.25, "axes": (-1,)}
    )
    settings = {"eps": 0.25, "axes": (-1,)}
    np.testing.assert_allclose(evaluation.outputs()["y"], layer_norm(x, gamma, beta, **settings), rtol=1e-13)
    for got, want in zip(
        evaluation.pull(g).gradients().values(), layer_norm_vjp(x, gamma, beta, g, **settings), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    assert torch.equal(layer.weight, torch.ones(8))


@pytest.mark.parametrize("eps", [1e-5, 1e-12, 2.0**-10, 0.0, 1e-6])
def test_eps_is_measured(eps):
    """Where no attribute says it, to the digits that somebody would write."""
    assert fixed_of(Plain(9, eps), "layer_norm")[0].eps == eps


def test_what_cannot_be_measured_is_asked():
    """Another formula has no such eps: it has to be declared, and then shows."""
    with pytest.raises(WrongSignature, match="say --fixed eps=1e-6"):
        fixed_of(Beside(9), "layer_norm")
    assert fixed_of(Beside(9), "layer_norm", fixed={"eps": "1e-5"})[0].eps == 1e-5


def test_a_class_takes_what_its_constructor_takes():
    """Size and eps can vary; of parameters there is one choice, and of axes one."""
    fixed, binding = fixed_of(Plain, "layer_norm")
    assert (fixed.eps, fixed.shape, fixed.axes, fixed.given) == (None, (), 1, (("gamma", "beta"),))
    assert binding.operator == "layer_norm"


def test_a_layer_of_torch_is_found_out_to_vary_as_it_does():
    """Several axes, and parameters that may be absent; it follows the same conventions as torch's own binding."""
    fixed, binding = fixed_of(nn.LayerNorm)
    assert (fixed.axes, fixed.given) == (None, (("gamma", "beta"), ("gamma",), ()))
    assert binding.conventions == {"storage": "H2"}


class Derived(nn.LayerNorm):
    """LayerNorm derived from torch's, with its own computation."""

    def forward(self, input):
        return Plain.forward(self, input)  # type: ignore[arg-type]

    hidden = (1e-5,)


class Around(nn.LayerNorm):
    """The same, but calling torch's function."""

    def forward(self, input):
        return nn.functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)


class Holding(nn.Module):
    """A layer that contains one of torch's only for its parameters."""

    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / (x.var(-1, correction=0, keepdim=True) + 1e-5).sqrt() * self.norm.weight


@pytest.mark.parametrize(
    ("layer", "conventions"),
    [(Derived, {}), (Holding(8), {}), (Around, {"storage": "H2"}), (nn.LayerNorm, {"storage": "H2"})],
)
def test_only_what_computes_with_a_layer_of_torch_may_differ_as_that_does(layer, conventions):
    """Whatever it derives from or contains, torch's own function has to be called."""
    _, binding = fixed_of(layer, "layer_norm")
    assert binding.conventions == conventions
    assert bool(binding.known_violations) is bool(conventions)


def test_a_rank_and_a_layout_are_found_out():
    """A layer for images with their channels first gets such images, whatever x is."""
    fixed, binding = fixed_of(OnImages(8), "layer_norm")
    assert (fixed.native, fixed.shape) == ((4,), (8,))
    for shape in ((8,), (3, 8), (2, 3, 8), (2, 3, 1, 2, 8)):
        x = torch.randn(shape, dtype=torch.float64)
        y = binding.call(x, torch.ones(8).double(), torch.zeros(8).double(), eps=1e-5, axes=(-1,), mode="training")
        torch.testing.assert_close(y, nn.functional.layer_norm(x, (8,)), rtol=1e-9, atol=1e-9)


class ChannelsLast(nn.Module):
    """A layer of torch's for images, on images with their channels last."""

    def __init__(self, layer, rank=None):
        super().__init__()
        self.layer, self.rank = layer, rank

    def forward(self, x):
        assert x.ndim in (self.rank, self.rank or x.ndim)
        return self.layer(x.movedim(-1, 1)).movedim(1, -1)


def by_channel(num_features):
    """BatchNorm1d of all positions: in rank 2 nothing tells where it takes the channels to lie."""

    class Flat(nn.Module):
        def __init__(self):
            super().__init__()
            self.bn = nn.BatchNorm1d(num_features)

        def forward(self, x):
            return self.bn(x.reshape(-1, x.shape[-1])).reshape(x.shape)

    return Flat()


@pytest.mark.parametrize(
    ("operator", "layer", "ranks"),
    [
        ("instance_norm", ChannelsLast(nn.InstanceNorm2d(5, affine=True)), (4,)),
        ("instance_norm", ChannelsLast(nn.InstanceNorm2d(5), rank=4), (4,)),
        ("instance_norm", ChannelsLast(nn.InstanceNorm3d(5)), (5,)),
        ("group_norm", ChannelsLast(nn.GroupNorm(2, 6)), ()),
        ("group_norm", ChannelsLast(nn.GroupNorm(2, 6, affine=False)), ()),
        ("batch_norm", ChannelsLast(nn.BatchNorm2d(5)), (4,)),
        ("batch_norm", by_channel, ()),
    ],
)
def test_channels_that_lie_last_are_found_out(operator, layer, ranks):
    """By the size of the parameters, or without any by which values of y one value of x reaches."""
    fixed, _ = fixed_of(layer, operator)
    assert (fixed.channel_axis, fixed.ranks) == (-1, ranks)


@pytest.mark.parametrize(
    ("operator", "layer", "ranks"),
    [
        ("instance_norm", nn.InstanceNorm2d(5), (4,)),
        ("instance_norm", nn.InstanceNorm2d(1), (3, 4)),  # with one channel a sample is a group
        ("instance_norm", nn.InstanceNorm2d(1, affine=True), (4,)),
        ("group_norm", nn.GroupNorm(2, 6, affine=False), ()),
        ("batch_norm", nn.BatchNorm1d(5, affine=False), (2, 3)),
    ],
)
def test_channels_that_lie_first_stay_there(operator, layer, ranks):
    """As the framework's own layers take them."""
    fixed, _ = fixed_of(layer, operator)
    assert (fixed.channel_axis, fixed.ranks) == (1, ranks)


def test_the_layout_is_found_out_for_a_declared_rank_too():
    """Only the layout itself, declared, stops the search."""
    layer = ChannelsLast(nn.GroupNorm(2, 6, affine=False))
    fixed, _ = fixed_of(layer, "group_norm", fixed={"rank": "4"})
    assert (fixed.channel_axis, fixed.ranks) == (-1, (4,))


def test_a_composed_layer_with_a_declaration_lacks_what_its_forward_lacks():
    """`__call__` of a module takes anything; what `forward` does not take is not passed."""

    class Residual(nn.Module):
        def forward(self, x, branch, *, shortcut=None):
            return (x if shortcut is None else shortcut(x)) + branch(x)

    (binding,) = from_callable(Residual(), ("residual",), "torch", Declarations(fixed={"rank": "3"})).bindings
    assert binding.unsupported_keywords == {"activation"}
    x = torch.ones(1, 2, 3)
    torch.testing.assert_close(binding.call(x, lambda x: 5 * x, shortcut=lambda x: 7 * x, mode="training"), 12 * x)


class OfAnyArguments(nn.LayerNorm):
    """As a compiled layer, it does not say what its forward takes."""

    def forward(self, *arguments, **named):
        return super().forward(*arguments, **named)


class Of32Groups(nn.GroupNorm):
    """Of a size that its number of groups has to divide."""

    def __init__(self, channels):
        super().__init__(32, channels)


def make_of_32_groups(channels):
    """As diffusion models have it."""
    return nn.GroupNorm(32, channels)


def make_of_a_shape(normalized_shape):
    """Takes no number."""
    return nn.LayerNorm([*normalized_shape])


@pytest.mark.parametrize(
    ("operator", "layer", "found"),
    [
        ("layer_norm", OfAnyArguments(8), {"shape": (8,)}),
        ("layer_norm", nn.LayerNorm((8, 1)), {"shape": (8, 1)}),
        ("layer_norm", nn.LayerNorm((1, 8, 1)), {"shape": (1, 8, 1)}),
        ("layer_norm", make_of_a_shape, {"shape": ()}),
        ("group_norm", make_of_32_groups, {"groups": 32, "channels": None}),
        ("group_norm", Of32Groups, {"groups": 32, "channels": None}),
    ],
)
def test_sizes_of_layers_that_take_few_are_found(operator, layer, found):
    """Extents of one, a number of groups that must divide, a size that must be a tuple, and any arguments."""
    fixed, _ = fixed_of(layer, operator)
    assert {name: getattr(fixed, name) for name in found} == found


def with_a_lock():
    """No copy can be made of it."""
    layer = nn.LayerNorm(8)
    layer.lock = threading.Lock()
    return layer


def scripted():
    """torch warns that this is deprecated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(nn.LayerNorm(8))


def parametrized():
    """What is lent as its weight would not be the weight that it computes."""
    return nn.utils.parametrizations.weight_norm(nn.LayerNorm(8), dim=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (parametrized, r"computes its weight from other parameters.*remove_parametrizations\(layer, 'weight'\)"),
        (with_a_lock, "cannot be copied and given other parameters: TypeError"),
        (scripted, "name the module as it was before"),
    ],
)
def test_a_layer_that_cannot_be_copied_or_lent_parameters_is_told(make, message):
    """One sentence says why."""
    layer = make()
    with pytest.raises(WrongSignature, match=message):
        fixed_of(layer, "layer_norm")


def test_a_layer_without_a_size_is_told():
    """It gets its parameters in the first call."""
    with pytest.raises(WrongSignature, match="LazyBatchNorm1d gets its size from its first call: name the class"):
        fixed_of(nn.LazyBatchNorm1d(), "batch_norm")


class FrozenAfterTheFirstBatch(nn.BatchNorm2d):
    """Updates its running statistics in the first batch alone, which it knows by a buffer that is no argument."""

    def forward(self, x):
        if not self.training:
            return super().forward(x)
        self.num_batches_tracked.add_(1)
        weight = self.momentum if int(self.num_batches_tracked) == 1 else 0.0
        return nn.functional.batch_norm(
            x, self.running_mean, self.running_var, self.weight, self.bias, True, weight, self.eps
        )


def test_what_a_layer_keeps_in_its_buffers_reaches_the_next_call():
    """Else each call would be a first one, and a layer that is wrong from the second batch on would conform."""
    options = {"op": "batch_norm", "only": "BN-S1", "dtypes": ["float32"], "profile": "quick"}
    assert not normspec.check(FrozenAfterTheFirstBatch, **options).conforms
    assert normspec.check(nn.BatchNorm2d, **options).conforms


class OtherInInferenceOfFourAxes(nn.LayerNorm):
    """Takes another path in inference where x has four axes and there is no weight."""

    def forward(self, x):
        y = super().forward(x)
        return y if self.training or x.ndim != 4 or self.weight is not None else y * 1.01


def test_each_choice_of_parameters_is_judged_in_inference_on_each_place():
    """LN-L15: a path of inference for x of some axes, without some parameter."""
    options = {"op": "layer_norm", "only": "LN-L15", "dtypes": ["float32"], "profile": "quick"}
    assert not normspec.check(OtherInInferenceOfFourAxes, **options).conforms
    assert normspec.check(nn.LayerNorm, **options).conforms


def test_an_average_over_all_batches_has_no_momentum():
    """It is refused where it would be trained, and judged in inference."""
    layer = nn.BatchNorm2d(3, momentum=None)
    with pytest.raises(WrongSignature, match="gives a new batch another weight in each call, as an average over all"):
        fixed_of(layer, "batch_norm")
    assert fixed_of(layer, "batch_norm", fixed={"training": "no"})[0].training is False


def test_a_declared_layout_is_not_questioned():
    """Whatever the layer seems to do: the user may check exactly that."""
    layer = ChannelsLast(nn.GroupNorm(2, 6, affine=False))
    assert fixed_of(layer, "group_norm", layout="channels-first")[0].channel_axis == 1
    assert fixed_of(layer, "group_norm", fixed={"channel_axis": "1"})[0].channel_axis == 1


class Bare(nn.Module):
    """The same as OnImages, in any rank and without parameters: no size tells where the features lie."""

    def forward(self, x):
        centred = x - x.mean(1, keepdim=True)
        return centred * torch.rsqrt(centred.square().mean(1, keepdim=True) + 1e-5)


@pytest.mark.parametrize(("declared", "axis"), [({}, -2), ({"layout": "channels-first"}, -1)])
def test_a_layer_over_axis_1_that_no_size_tells_has_to_be_declared(declared, axis):
    """It may be wrong: undeclared it is called as it is, on features in the last axis, and fails."""
    _, binding = fixed_of(Bare(), "layer_norm", **declared)
    x = torch.randn((2, 3, 8), dtype=torch.float64)
    y = binding.call(x, None, None, eps=1e-5, axes=(-1,), mode="training")
    right = nn.functional.layer_norm(x.movedim(axis, -1), (x.shape[axis],)).movedim(-1, axis)
    torch.testing.assert_close(y, right, rtol=1e-9, atol=1e-9)


def test_momentum_is_measured_and_statistics_are_returned():
    """Also for a layer that replaces them by new tensors; its own are not changed."""
    layer = Moving(4)
    fixed, binding = fixed_of(layer, "batch_norm")
    assert fixed.momentum == 0.25
    ones, x = torch.ones(4), torch.full((3, 4), 2.0)
    settings = {"eps": 1e-5, "momentum": 0.25, "training": True, "channel_axis": 1}
    _, mean, variance = binding.call(x, ones, ones, 0 * ones, ones, mode="training", **settings)
    assert torch.equal(mean, 0.5 * ones)
    assert torch.equal(variance, ones)
    assert torch.equal(layer.bn.running_mean, 0 * ones)


def test_another_size_of_a_parameter_cannot_be_lent():
    """The layer does not refuse anything here: nobody can pass it one."""
    _, binding = fixed_of(Plain(8), "layer_norm")
    with pytest.raises(CannotVary, match="of the size"):
        binding.call(torch.ones(2, 8), torch.ones(7), torch.ones(8), eps=1e-5, axes=(-1,), mode="training")


@pytest.mark.parametrize(
    ("layer", "options", "message"),
    [
        (nn.Linear(3, 3), {"op": "layer_norm"}, "has to take only x|has an eps|no attribute"),
        (nn.Linear(3, 4), {"op": "layer_norm"}, r"x of shape \(4, 3\) its parameters are not all of the size"),
        (nn.Linear, {"op": "layer_norm"}, "takes in_features, out_features, whose meaning"),
        (nn.BatchNorm1d(3, track_running_stats=False), {}, "has no running_mean and no running_var"),
        (
            nn.Sequential(nn.LayerNorm(3), nn.LayerNorm(3)),
            {"op": "layer_norm"},
            "say which is gamma, .*; --layers checks each layer of a model",
        ),
        (nn.LayerNorm((1024, 1024)), {}, "262,144 can be judged exactly"),
        (Plain(3), {"op": "rms_norm"}, "has a parameter bias: rms_norm has no parameter for it"),
        (nn.RMSNorm(8), {}, "has an eps for each dtype"),
        (nn.TransformerEncoderLayer, {"op": "pre_norm"}, "which of them take the parts of pre_norm from"),
    ],
)
def test_what_cannot_be_checked_is_told(layer, options, message):
    """One line says why, and what to do."""
    with pytest.raises(WrongSignature, match=message):
        resolve(layer, **options)


def test_an_operator_that_no_name_tells_is_asked():
    """A class whose names do not reveal the operator needs --op."""
    with pytest.raises(UnknownOperator, match="which operator is Plain"):
        resolve(Plain)


def test_parameters_are_declared_by_their_names():
    """--parameters says which is which, and an unknown name is reported."""

    class Odd(Plain):
        def __init__(self, dim, eps=1e-5):
            nn.Module.__init__(self)
            self.amplitude, self.pedestal = nn.Parameter(torch.ones(dim)), nn.Parameter(torch.zeros(dim))
            self.hidden = (eps,)

        @property
        def weight(self):
            return self.amplitude

        @property
        def bias(self):
            return self.pedestal

    with pytest.raises(WrongSignature, match="a parameter amplitude: say which it is, --parameters gamma=amplitude"):
        fixed_of(Odd, "layer_norm")
    names = {"gamma": "amplitude", "beta": "pedestal"}
    assert fixed_of(Odd, "layer_norm", parameters=names)[0].given == (("gamma", "beta"),)
    with pytest.raises(WrongSignature, match="has no parameter height"):
        fixed_of(Odd, "layer_norm", parameters={"gamma": "height"})


def test_a_name_that_is_not_there_is_answered_with_classes_too(tmp_path):
    """A package offers what it exports; of very many names, first those of operators. A file offers its layers."""
    with pytest.raises(
        NoSuchName, match=r"torch.nn has no 'LayerNrm'; did you mean 'LayerNorm'\? choose from Batch"
    ) as told:
        resolve("torch.nn:LayerNrm")
    assert "Linear" not in str(told.value) and str(told.value).endswith(" more")
    path = tmp_path / "norms.py"
    path.write_text(
        "from torch import nn\ndef rms_norm(x): ...\nclass MyLayerNorm(nn.LayerNorm): ...\nclass Other: ...\n"
    )
    with pytest.raises(NoSuchName, match=r"has no 'rms'; choose from rms_norm, MyLayerNorm$"):
        resolve(f"{path}:rms")


def test_an_optional_key_is_the_factory_s_own():
    """Only a constructor that needs one gets Equinox's random key."""

    def layer_norm(dim, eps=1e-5, key="weight", rngs=None):
        assert (key, rngs) == ("weight", None)
        return nn.LayerNorm(dim, eps=eps)

    assert resolve(layer_norm).bindings[0].operator == "layer_norm"

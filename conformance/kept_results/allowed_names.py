"""
Names that reach nothing outside a program: names of Python, of array libraries, and of the layers of frameworks.

A source that uses any other name of an installed package is always run. A name missing here costs only a run. A name
listed by mistake could make a verdict wrong. Therefore no name is here that, in any of PACKAGES, may read a file, a
variable, a clock, the network or the machine, or call a compiler of the system.
"""

from __future__ import annotations

#: Modules of the standard library.
MODULES = frozenset({
    "__future__", "abc", "array", "bisect", "cmath", "collections", "contextlib", "copy", "dataclasses", "decimal",
    "enum", "fractions", "functools", "heapq", "itertools", "keyword", "math", "numbers", "operator", "re",
    "statistics", "string", "struct", "textwrap", "types", "typing", "warnings", "weakref",
})  # fmt: skip

#: Installed packages whose names are known here. It is not known what any other package does when imported or called.
PACKAGES = frozenset({
    "attr", "attrs", "einops", "equinox", "flax", "jax", "jaxtyping", "keras", "ml_dtypes", "mxnet", "numpy", "scipy",
    "tensorflow", "torch", "transformers", "triton", "typing_extensions",
})  # fmt: skip

#: Functions and classes of Python itself, except its exceptions.
BUILT_IN = frozenset({
    "Ellipsis", "NotImplemented", "__debug__", "__name__", "abs", "all", "any", "bool", "bytearray", "bytes",
    "callable", "chr", "classmethod", "complex", "dict", "divmod", "enumerate", "filter", "float", "format",
    "frozenset", "getattr", "hasattr", "int", "isinstance", "issubclass", "iter", "len", "list", "map",
    "max", "memoryview", "min", "next", "object", "ord", "pow", "print", "property", "range", "repr", "reversed",
    "round", "set", "setattr", "slice", "sorted", "staticmethod", "str", "sum", "super", "tuple", "type", "zip",
})  # fmt: skip

#: Built-in functions that take the name of an attribute. The name is known only if it is a literal text.
LOOK_UPS = frozenset({"getattr", "hasattr", "setattr"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Attribute names, and names imported from one of PACKAGES.
NAMES = (
    # Python's own types
    _words(
        "__add__ __call__ __class__ __init__ __len__ __mul__ __name__ __post_init__ add append capitalize clear"
        " count discard endswith extend get index insert intersection isidentifier items join keys lower lstrip"
        " partition pop popitem remove removeprefix removesuffix reverse rpartition rsplit rstrip setdefault sort"
        " split startswith strip title union update upper values"
    )
    # the submodules of packages, and what they hold
    | _words(
        "abc activations autograd backend core custom_derivatives experimental enable_x64 flax func functional"
        " initializers jax keras lax language layers libdevice linalg linen math modules native ops nn nnx"
        " normalization numpy ops_math optim parameter pallas raw_ops scipy special struct tensorflow tf torch"
        " tree_util triton types typing"
    )
    # dtypes, and what describes an array
    | _words(
        "T bfloat16 bool bool_ complex128 complex64 device double dtype dtypes eps finfo flags float float16"
        " float32 float64 floating half iinfo inexact inf int int16 int32 int64 int8 integer is_contiguous"
        " is_floating_point is_nested is_sparse itemsize layout mT max min name nan nbytes ndim newaxis numel pi"
        " promote_types result_type shape single size stride strides storage_offset tiny uint16 uint32 uint64 uint8"
        " issubdtype can_cast number generic dim element_size get_shape rank as_list is_fully_defined e"
    )
    # making arrays
    | _words(
        "Array Tensor ndarray arange array asanyarray asarray ascontiguousarray as_tensor broadcast_arrays"
        " broadcast_shapes broadcast_tensors broadcast_to clone constant contiguous convert_to_tensor copy detach"
        " empty empty_like expand expand_as eye full full_like identity item linspace new_empty new_full new_ones"
        " new_zeros ones ones_like tensor tolist zeros zeros_like fill fill_ fill_diagonal from_numpy frombuffer"
        " iota device_put block_until_ready cpu to type astype type_as view view_as cast bitcast"
        " bitcast_convert_type convert_element_type nan_to_num stop_gradient copyto copy_ zero_"
    )
    # moving values about
    | _words(
        "at atleast_1d atleast_2d batch chunk columns concat concatenate cat diag diagonal dstack expand_dims flat"
        " flatten flip gather hstack index_add index_select indexing masked_fill masked_fill_ mask movedim moveaxis"
        " narrow nonzero pad permute permute_dims ravel rearrange reduce_window repeat reshape reshape_as resize"
        " roll rollaxis rot90 scatter scatter_add select set slice squeeze stack swapaxes swapdims take"
        " take_along_axis tile transpose t tril triu unbind unflatten unfold unpack unsqueeze vstack where"
        " dynamic_slice broadcast_in_dim unstack searchsorted sort argsort argmax argmin topk unique"
    )
    # arithmetic, value by value
    | _words(
        "abs absolute acos add_ addcdiv addcmul allclose arccos arcsin arctan arctan2 asin atan atan2 ceil clamp"
        " clamp_max clamp_min clip conj conjugate copysign cos cosh cube deg2rad div div_ divide divmod equal erf"
        " erfc exp exp2 expm1 fabs float_power floor floor_divide fma fmax fmin fmod frexp greater greater_equal"
        " hypot imag invert isclose iscomplex isfinite isinf isnan isneginf isposinf isreal ldexp lerp less"
        " less_equal lgamma log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor logit"
        " maximum minimum mod modf mul mul_ multiply multiply_no_nan divide_no_nan neg negative nextafter not_equal"
        " positive power pow ratio real reciprocal reciprocal_ remainder rint round round_ rsqrt rsqrt_ sigmoid sign"
        " signbit sin sinh spacing sqrt sqrt_ square square_ sub sub_ subtract tan tanh true_divide trunc rsub"
        " heaviside ne lt le gt ge eq inv cbrt erfinv fix squared_difference sinc softsign"
    )
    # sums
    | _words(
        "add_n accumulate all amax amin any at average bincount bmm count_nonzero cov cross cummax cumprod cumsum"
        " diff dot einsum fsum inner kahan logsumexp matmul matvec mean median mm moments nanmax nanmean nanmin"
        " nansum nanvar norm outer prod ptp reduce reduce_all reduce_any reduce_max reduce_mean reduce_min"
        " reduce_prod reduce_std reduce_sum reduce_variance reduceat std std_mean sum sum_to_size tensordot trace"
        " var var_mean vdot vecdot vector_norm weighted_moments normalize l2_normalize associative_scan"
        " sufficient_statistics normalize_moments"
    )
    # control flow and programs
    | _words(
        "apply checkpoint closed_call cond custom_gradient custom_jvp custom_vjp defjvp defvjp eval_shape"
        " filter_grad filter_jit filter_vmap filter_vjp fori_loop forward function grad GradientTape gradient"
        " gradients jacfwd jacrev jit jvp linear_transpose linearize map named_call once_differentiable pmean psum"
        " remat scan switch tree_map value_and_grad vjp vmap watch while_loop wraps partial reduce_precision"
        " lru_cache cached_property singledispatch dataclass field fields replace asdict astuple namedtuple"
        " defaultdict OrderedDict deque Counter chain product zip_longest islice errstate seterr suppress"
        " contextmanager nullcontext deepcopy vectorize frompyfunc apply_along_axis"
    )
    # derivatives and layers of PyTorch
    | _words(
        "Function Module ModuleDict ModuleList Parameter ParameterList Sequential Identity Linear Conv1d Conv2d"
        " BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d LayerNorm"
        " LocalResponseNorm RMSNorm Dropout ReLU GELU SiLU Sigmoid Softmax Tanh affine backward batch_norm bias"
        " buffers children constant_ ctx elementwise_affine enable_grad eval extra_repr forward gelu group_norm init"
        " inference_mode instance_norm is_grad_enabled kaiming_uniform_ layer_norm linear mark_dirty"
        " mark_non_differentiable momentum named_buffers named_modules named_parameters needs_input_grad no_grad"
        " normal_ normalized_shape num_batches_tracked num_channels num_features num_groups ones_ parameters"
        " register_buffer register_parameter relu requires_grad requires_grad_ reset_parameters reset_running_stats"
        " retain_grad rms_norm running_mean running_var saved_tensors save_for_backward set_grad_enabled"
        " set_materialize_grads silu softmax log_softmax softplus swish hardtanh leaky_relu elu track_running_stats"
        " train training trunc_normal_ uniform_ weight weight_norm xavier_uniform_ zeros_ native_layer_norm"
        " native_layer_norm_backward native_batch_norm native_group_norm Size memory_format channels_last"
        " channels_last_3d contiguous_format preserve_format strided is_tensor is_complex glu functional_call rand"
        " randn manual_seed"
    )
    # layers of Flax, Equinox and Keras
    | _words(
        "AbstractRMSNorm BatchNorm BatchNormalization BatchStat Dense Embed GroupNormalization InstanceNorm Layer"
        " LayerNormalization Lambda Metric Param Rngs RMSNormalization StateIndex UnitNormalization Variable"
        " VariableSpec WeightNorm add_weight assign assign_add axis beta beta_initializer build built call center"
        " compact compute_dtype epsilon filter_eval_shape gamma gamma_initializer get_config static_field"
        " init_with_output initializer is_initializing kernel make_with_state moving_mean moving_variance ones_init"
        " param params scale serialize setup state trainable value variable variables zeros_init use_running_average"
        " use_bias use_scale standardize trainable_variables trainable_weights non_trainable_weights"
        " register_keras_serializable saving compute_output_shape config hidden_size layer_norm_eps rms_norm_eps"
    )
    # layers of transformers, and kernels in Triton
    | _words(
        "LlamaRMSNorm T5LayerNorm GemmaRMSNorm MistralRMSNorm Qwen2RMSNorm variance_epsilon cdiv constexpr"
        " next_power_of_2 num_programs program_id store tl debug_barrier static_range static_assert"
    )
    # types and their parts
    | _words(
        "ABC ABCMeta Any Callable ClassVar Dict Final FrozenSet Generic Iterable Iterator List Literal Mapping"
        " NamedTuple NoReturn Optional Protocol Sequence Set Tuple Type TypeAlias TypeVar Union TYPE_CHECKING"
        " abstractmethod annotations overload override Annotated ArrayLike NDArray Float Int Enum IntEnum"
        " SimpleNamespace auto define frozen evolve warn catch_warnings simplefilter filterwarnings conforms"
    )
)

"""Derivatives of any order for any phlox backend."""

from phlox_tensor.public import publish as _publish

from ._autodiff import Autodiff as Autodiff
from ._autodiff import rule_kind as rule_kind
from ._backward import Gradients as Gradients
from ._batched import Batched as Batched
from ._checkpoint_call import checkpoint as checkpoint
from ._checkpoint_strategies import BalancedCheckpointing as BalancedCheckpointing
from ._checkpoint_strategies import Checkpointing as Checkpointing
from ._checkpoint_strategies import NoCheckpointing as NoCheckpointing
from ._custom import custom_gradient as custom_gradient
from ._custom import custom_jvp as custom_jvp
from ._drawing import Graph as Graph
from ._drawing import graph as graph
from ._forward import Forward as Forward
from ._forward import jvp as jvp
from ._gradcheck import gradcheck as gradcheck
from ._jacobian import hessian as hessian
from ._jacobian import hvp as hvp
from ._jacobian import jacobian as jacobian
from ._mode import no_grad as no_grad
from ._nan import detect_nan as detect_nan
from ._transform import grad as grad
from ._transform import stop_gradient as stop_gradient
from ._transform import value_and_grad as value_and_grad
from ._transform import vjp as vjp
from ._vmap import vmap as vmap
from ._watch import register_hook as register_hook
from ._watch import retain_grad as retain_grad
from .batching import batching_kind as batching_kind

_publish(__name__)

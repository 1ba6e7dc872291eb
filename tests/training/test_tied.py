"""One parameter at two places of a module is one part of it, for every transform."""

from __future__ import annotations

import phlox as px
from phlox import Cpu, Tensor, nn, optim


class Tied(nn.Module):
    """Looks rows up in a table, and compares them with all rows of the same one."""

    table: nn.Param
    output: nn.Param

    def forward(self, index: Tensor[px.Int]) -> Tensor[px.Float]:
        return px.take(self.table.value, index, axis=0) @ self.output.value.T


def tied() -> Tied:
    table = nn.Param(px.random.normal((5, 3), device=Cpu()))
    return Tied(table, table)


def test_the_gradient_of_a_module_sums_over_both_places_and_a_step_takes_it() -> None:
    model, index = tied(), px.asarray([1, 2], device=Cpu())
    grads = px.grad(lambda m: m(index).square().sum())(model)

    def loss(table: Tensor[px.Float]) -> Tensor[px.Float]:
        return (px.take(table, index, axis=0) @ table.T).square().sum()

    whole = px.grad(loss)(model.table.value)
    assert grads.table is grads.output
    px.testing.assert_close(grads.table.value, whole)
    stepped = optim.SgdConfig().init().step(1.0, model, grads)
    assert stepped.table is stepped.output
    px.testing.assert_close(stepped.table.value, model.table.value - whole)


def test_mapping_keeps_the_tie_and_counts_its_leaf_once() -> None:
    model = tied()
    doubled = px.tree.map(lambda x: x * 2.0, model)
    assert doubled.table is doubled.output
    assert len(px.tree.leaves(model)) == 1
    assert px.tree.map(lambda a, b: a + b, model, doubled).num_params() == 15

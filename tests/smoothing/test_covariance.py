import numpy as np
import pytest
import torch

from bigcn.smoothing.covariance import covariance_graph, noise_floor


def correlated(rows: int = 400, columns: int = 6) -> torch.Tensor:
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(rows, columns)) @ rng.normal(size=(columns, columns)))
    return x - x.mean(dim=0)


def test_the_laplacian_is_the_inverse_covariance():
    x = correlated()
    epsilon = 0.1 * float(x.square().mean())
    covariance = x.numpy().T @ x.numpy() / len(x)
    expected = epsilon * np.linalg.inv(covariance + epsilon * np.eye(6))
    np.testing.assert_allclose(covariance_graph(x, ridge=0.1).laplacian().numpy(), expected, atol=1e-10)


def test_noise_is_taken_off_the_variances():
    x = correlated()
    noise, epsilon = 0.3, 0.1 * float(x.square().mean())
    values, vectors = np.linalg.eigh(x.numpy().T @ x.numpy() / len(x))
    values = np.clip(values - noise, 0, None)
    expected = (vectors * (epsilon / (values + epsilon))) @ vectors.T
    np.testing.assert_allclose(covariance_graph(x, noise, 0.1).laplacian().numpy(), expected, atol=1e-10)


def test_constant_columns_do_no_harm():
    assert bool(torch.isfinite(covariance_graph(torch.zeros(5, 3)).laplacian()).all())


def test_wide_tables_keep_leading_directions():
    x = torch.randn(200, 3, generator=torch.Generator().manual_seed(0)) @ torch.randn(
        3, 600, generator=torch.Generator().manual_seed(1)
    )
    graph = covariance_graph(x - x.mean(dim=0))
    # The rows lie in three directions, which smoothing along the graph must leave alone.
    assert graph.vectors is not None
    assert graph.vectors.size(1) == 128
    block = (x - x.mean(dim=0))[:4].t()
    left = graph.product(graph.operand(), block)
    assert float((left - block).norm() / block.norm()) < 0.05


@pytest.mark.parametrize("columns", [8, 40])
def test_the_floor_is_the_variance_of_noise(columns):
    rng = np.random.default_rng(1)
    signal = 3 * rng.normal(size=(800, 2)) @ rng.normal(size=(2, columns))
    x = torch.from_numpy(signal + 0.7 * rng.normal(size=(800, columns)))
    assert noise_floor(x - x.mean(dim=0)) == pytest.approx(0.49, rel=0.1)


def test_nothing_is_said_of_tables_with_few_rows():
    assert noise_floor(torch.randn(10, 8)) == 0

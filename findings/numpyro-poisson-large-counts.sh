#!/usr/bin/env bash
# numpyro 0.22.0 (jax 0.10.2): Poisson log probabilities of large counts are off by 0.8, so the probability doubles.
#
# Guess: a relative error of float32 in the answer: about -7.827 for a count of a million at a rate of a million, where
# the page "Distributions" says log_prob and float32 resolves 5e-7 at such a value.
# Done: Poisson, Gamma and negative binomial log probabilities at their means, for growing counts, beside SciPy's.
# Seen: -7.0 for a million. count * log(rate) - rate - lgamma(count + 1) takes numbers of 1e7 from each other in
# float32, where one step is 1. A Gamma of shape 1e7 has exp(16) where exp(7.1) is right, and a negative binomial of
# concentration 1e8 gives a count of 1 at a mean of 1 the probability 1. Photon counts and word counts are that large.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpyro==0.22.0 jax==0.10.2 jaxlib==0.10.2 numpy==2.4.6 scipy==1.17.1
"$folder/venv/bin/python" - <<'PYTHON'
import numpyro.distributions as dist
from scipy import stats

for rate in (1e2, 1e4, 1e6):
    found, right = float(dist.Poisson(rate).log_prob(rate)), stats.poisson.logpmf(rate, rate)
    print(f"Poisson at {rate:g}: {found:.4f}, SciPy {right:.4f}")
assert abs(found - right) > 0.5, "Poisson is right now"
found, right = float(dist.Gamma(1e7, 1e7).log_prob(1.0)), stats.gamma.logpdf(1.0, 1e7, scale=1e-7)
print(f"Gamma of shape 1e7 at its mean: {found:.4f}, SciPy {right:.4f}")
assert found - right > 5, "Gamma is right now"
found = float(dist.NegativeBinomial2(1.0, 1e8).log_prob(1.0))
right = stats.nbinom.logpmf(1, 1e8, 1e8 / (1e8 + 1))
print(f"negative binomial at its mean of 1: {found:.4f}, SciPy {right:.4f}")
assert found == 0.0 and abs(right + 1) < 1e-6
PYTHON

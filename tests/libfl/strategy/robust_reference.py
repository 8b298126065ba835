"""The robust rules in numpy, written from the papers, and compared with those of the aggregation on random cases.

    robust_reference.py PROGRAM CASES

PROGRAM is robust_cases. Cases have ties, duplicates, zeros, huge and denormal values.
"""
import itertools
import math
import subprocess
import sys

import numpy as np


def squared(x, y):
    with np.errstate(over="ignore"):
        return float(np.sum((x - y) ** 2))


def distances(x):
    return np.array([[squared(a, b) for b in x] for a in x])


def first(values, k):
    """Places of the k smallest; of equal ones the lower place."""
    return sorted(range(len(values)), key=lambda i: (values[i], i))[:k]


def median(x, **_):
    return np.median(x, axis=0)


def trimmed_mean(x, f, **_):
    return np.sort(x, axis=0)[f:len(x) - f].mean(axis=0)


def meamed(x, f, **_):
    middle = np.median(x, axis=0)
    out = []
    for c in range(x.shape[1]):
        near = sorted(x[:, c], key=lambda v, c=c: (abs(v - middle[c]), v))
        out.append(np.mean(near[:len(x) - f]))
    return np.array(out)


def krum_order(x, f):
    sums = []
    for i, row in enumerate(distances(x)):
        others = np.sort(np.delete(row, i))
        sums.append(others[:len(x) - f - 1].sum())
    return first(sums, len(x))


def krum(x, f, **_):
    return x[krum_order(x, f)[0]]


def multi_krum(x, f, **_):
    return x[sorted(krum_order(x, f)[:len(x) - f])].mean(axis=0)


def mda(x, f, **_):
    between = distances(x)
    best, chosen = np.inf, None
    for members in itertools.combinations(range(len(x)), len(x) - f):
        diameter = max((between[i][j] for i, j in itertools.combinations(members, 2)), default=0)
        if diameter < best:
            best, chosen = diameter, members
    return x[list(chosen)].mean(axis=0)


def geometric_median(x, nu=0.1, iterations=3, **_):
    z = np.zeros(x.shape[1])
    for _ in range(int(iterations)):
        pull = 1 / np.maximum(nu, np.sqrt([squared(a, z) for a in x]))
        z = (pull[:, None] * x).sum(axis=0) / pull.sum()
    return z


def centered_clipping(x, centre, tau=0, iterations=1, **_):
    v = centre
    for _ in range(int(iterations)):
        length = np.sqrt([squared(a, v) for a in x])
        limit = tau or np.median(length)
        factor = np.array([min(1, limit / a) if a > 0 else 1 for a in length])
        v = v + ((x - v) * factor[:, None]).mean(axis=0)
    return v


def clipping(x, f, weights, threshold="median", c=2.0, **_):
    norm = np.sqrt((x ** 2).sum(axis=1))
    n = len(x)
    limit = {"median": c * np.median(norm), "static": c,
             "arc": np.sort(norm)[n - int((2 * f / n) * (n - f)) - 1]}[threshold]
    factor = np.array([min(1, limit / a) if a > 0 else 1 for a in norm])
    return ((weights * factor)[:, None] * x).sum(axis=0)


def dnc(x, f, c=1.0, **_):
    y = x - x.mean(axis=0)
    direction = np.linalg.svd(y, full_matrices=False)[2][0]
    kept = first((y @ direction) ** 2, max(1, len(x) - int(np.rint(c * f))))
    return x[sorted(kept)].mean(axis=0)


def mean_shift(x, quantile):
    """Largest cluster of mean shift with a flat kernel from every point, as in scikit-learn; of points farther than the bandwidth
    from all centres none is in a cluster."""
    n, slack, tiny = len(x), 1 + 1e-9, 1e-24

    def apart(a, b):
        return sum((p - q) * (p - q) for p, q in zip(a, b))

    k = max(1, int(quantile * n))
    limit = (sum(math.sqrt(sorted(apart(a, b) for b in x)[k - 1]) for a in x) / n) ** 2 * slack + tiny
    centres = []
    for point in x:
        at = point
        for _ in range(300):
            near = [b for b in x if apart(at, b) <= limit]
            if not near:
                break
            mean = tuple(sum(b[q] for b in near) / len(near) for q in range(len(at)))
            if apart(mean, at) <= tiny:
                break
            at = mean
        centres.append((len(near), at))
    kept = []
    for _, at in sorted(centres, key=lambda c: -c[0]):  # of equal ones the first
        if all(apart(at, other) > limit for other in kept):
            kept.append(at)
    labels = []
    for point in x:
        best = None
        for j, at in enumerate(kept):
            if apart(point, at) <= limit and (best is None or apart(point, at) * slack < apart(point, kept[best])):
                best = j
        labels.append(best)
    sizes = [labels.count(j) for j in range(len(kept))]
    return {i for i in range(n) if labels[i] is not None and labels[i] == sizes.index(max(sizes))}


def signguard(x, centre, lower=0.1, upper=3.0, bandwidth_quantile=0.5, feature="none", **_):
    norm = np.sqrt((x ** 2).sum(axis=1))
    middle = np.sort(norm)[(len(x) - 1) // 2]
    counts = np.array([[(a > 0).sum(), (a == 0).sum(), (a < 0).sum()] for a in x])
    most = counts.max(axis=0)
    features = [tuple(float(c) / float(m) if m else 0.0 for c, m in zip(row, most)) for row in counts]
    if feature != "none" and centre @ centre > 0:
        if feature == "similarity":
            found = [a @ centre / (math.sqrt(a @ a) * math.sqrt(centre @ centre)) if a @ a > 0 else 0 for a in x]
            m = sorted(found)[(len(x) - 1) // 2]
            found = [min(max(0, c), m) / m / 5 if m > 0 else 0.0 for c in found]
        else:
            found = [math.sqrt(squared(a, centre)) for a in x]
            m = sorted(found)[(len(x) - 1) // 2]
            found = [0.2 if d > 1.1 * m else 0.0 for d in found]
        features = [row + (q,) for row, q in zip(features, found)]
    kept = [i for i in sorted(mean_shift(features, bandwidth_quantile)) if lower * middle <= norm[i] <= upper * middle]
    if not kept:
        return 0 * x[0]
    return np.mean([x[i] * min(1, middle / norm[i]) if norm[i] > 0 else x[i] for i in kept], axis=0)


def fltrust(x, centre, **_):
    def cosine(a, b):
        return a @ b / (math.sqrt(a @ a) * math.sqrt(b @ b)) if a @ a > 0 and b @ b > 0 else 0

    trust = [max(0, cosine(a, centre)) for a in x]
    if not sum(trust):
        return 0 * centre
    scaled = [t * math.sqrt(centre @ centre) / math.sqrt(a @ a) * a if t else 0 * a for t, a in zip(trust, x)]
    return np.sum(scaled, axis=0) / sum(trust)


def fltrust_used(x, centre):
    """Of an equal share; 0 for an update that has no trust."""
    trust = np.array([max(0, a @ centre / (math.sqrt(a @ a) * math.sqrt(centre @ centre)))
                      if a @ a > 0 and centre @ centre > 0 else 0 for a in x])
    return np.minimum(1, trust / trust.sum() * len(x)) if trust.sum() else trust


def nnm(x, f):
    out = []
    for i, row in enumerate(distances(x)):
        row[i] = -1
        out.append(x[first(row, len(x) - f)].mean(axis=0))
    return np.array(out)


RULES = {rule.__name__: rule for rule in (median, trimmed_mean, meamed, krum, multi_krum, mda, geometric_median,
                                          centered_clipping, clipping, dnc, signguard)}
WITH_REFERENCE = {"fltrust": fltrust, "signguard": signguard}  # with an update to compare with
NEEDS = {"krum": 3, "multi_krum": 3}


def values(rng, n, d, kind):
    x = rng.standard_normal((n, d))
    if kind == "ties":
        x = rng.integers(-2, 3, (n, d)).astype(float)
    elif kind == "zeros":
        x *= rng.random((n, d)) < 0.3
        x[rng.integers(n)] = 0
    elif kind == "duplicates":
        x[rng.integers(n)] = x[rng.integers(n)]
        x[rng.integers(n)] = x[rng.integers(n)]
    elif kind == "huge":
        x[rng.integers(n)] *= 1e30
    elif kind == "denormal":
        x *= 1e-40
    elif kind == "near":
        x = rng.standard_normal(d) * (1 + 1e-3 * x)
    return x.astype(np.float32).astype(float)


def options_of(rng, rule, f):
    if rule == "fltrust":
        return {"report": "no"}
    options = {"f": f}
    if rule == "geometric_median":
        options |= {"nu": float(rng.choice([0.1, 1e-3])), "iterations": int(rng.integers(1, 6))}
    if rule == "centered_clipping":
        options |= {"tau": float(rng.choice([0, 0.5, 100])), "iterations": int(rng.integers(1, 4))}
    if rule == "clipping":
        options |= {"threshold": str(rng.choice(["median", "static", "arc"])), "c": float(rng.choice([0.5, 2]))}
    if rule == "signguard":
        options |= {"lower": float(rng.choice([0.1, 0.9])), "upper": float(rng.choice([1.2, 3])),
                    "bandwidth_quantile": float(rng.choice([0, 0.3, 0.5, 0.9]))}
    return options


def draw(rng, rules):
    rule = str(rng.choice(list(rules)))
    mix = str(rng.choice(["none", "none", "bucketing", "nnm"]))
    mix = "none" if rule in ("signguard", "fltrust") else mix
    f = int(rng.integers(0, 3))
    n = int(rng.integers(2 * f + NEEDS.get(rule, 1), 2 * f + 8)) * (2 if mix == "bucketing" else 1)
    kind = str(rng.choice(["normal", "ties", "zeros", "duplicates", "huge", "denormal", "near"]))
    # With equal distances a sum of distances depends on the order of the terms, so which of two is smaller does not say
    # anything about rules through mixtures; and the direction of dnc is not unique.
    if (mix != "none" or rule == "dnc") and kind in ("ties", "zeros", "duplicates"):
        kind = "normal"
    # Neighbourhoods with the same members have equal mixtures, and which of them a rule chooses is left to rounding; so is the
    # second update that dnc leaves out when one is 10^30 times as long as all others.
    if rule in ("meamed", "dnc", "krum", "multi_krum", "mda") and mix == "nnm":
        mix = "none"
    if rule == "dnc" and kind == "huge":
        kind = "normal"
    x = values(rng, n, int(rng.integers(1, 150)) + (n if rule == "dnc" else 0), kind)
    options = options_of(rng, rule, f)
    if rules is WITH_REFERENCE and rule == "signguard":
        options["feature"] = str(rng.choice(["similarity", "distance"]))
    return rule, mix, f, x, options, kind


def centre_of(rng, rule, x, kind, options):
    """The last result, or the reference: like the updates, opposite to all of them, or zero."""
    draw = rng.standard_normal(x.shape[1]).astype(np.float32).astype(float)
    if rule == "centered_clipping":
        return draw
    if rule != "fltrust" and "feature" not in options:
        return 0 * x[0]
    scale = {"denormal": 1e-40, "huge": float(rng.choice([1, 1e30]))}.get(kind, 1)
    if kind in ("ties", "duplicates"):
        return rng.integers(-1, 2, x.shape[1]).astype(float)
    return (rng.choice([0, 1, 1, 1]) * scale * (draw + rng.choice([-1, 1, 3]) * x.mean(axis=0) /
                                               max(np.abs(x).max(), 1e-300))).astype(np.float32).astype(float)


def draw_case(rng, rules, drawn, text):
    rule, mix, f, x, options, kind = draw(rng, rules)
    weights = rng.integers(1, 100, len(x)).astype(float)
    centre = centre_of(rng, rule, x, kind, options)
    given = options if rule == "fltrust" else options | {"mix": mix}
    written = ",".join(f"{key}={value!r}".replace("'", "") for key, value in given.items())
    text.append(f"{rule} {written} {len(x)} {x.shape[1]}")
    text += [" ".join([repr(float(w))] + [float(v).hex() for v in row]) for w, row in zip(weights, x)]
    text.append(" ".join(float(v).hex() for v in centre))
    drawn.append((rule, mix, f, x, options, kind, weights / weights.sum(), centre))


def main():
    program, cases = sys.argv[1], int(sys.argv[2])
    drawn = []
    text = []
    for rules, rng, n in ((RULES, np.random.default_rng(17), cases),
                          (WITH_REFERENCE, np.random.default_rng(18), cases // 2)):
        for _ in range(n):
            draw_case(rng, rules, drawn, text)
    answers = subprocess.run([program], input="\n".join(text) + "\n", check=True, capture_output=True, text=True).stdout
    bad = 0
    for (rule, mix, f, x, options, kind, weights, centre), line in zip(drawn, answers.splitlines(), strict=True):
        answer = [float(word) for word in line.split()]
        n, d = x.shape
        seen = x
        if mix == "bucketing":
            buckets = np.array(answer[1:n + 1])
            sizes = sorted(np.bincount(buckets.astype(int), minlength=int(answer[0])))
            assert sizes == [2] * (n // 2), (n, sizes)
            seen = np.array([x[buckets == a].mean(axis=0) for a in range(int(answer[0]))])
            answer = answer[n + 1:]
        elif mix == "nnm":
            seen = nnm(x, f)
        if mix != "none":
            weights = np.full(len(seen), 1 / len(seen))
        expected = (RULES | WITH_REFERENCE)[rule](seen, **(options | {"weights": weights, "centre": centre}))
        scale = np.abs(x).max(axis=0) if kind != "huge" or n == 1 else np.sort(np.abs(x), axis=0)[-2]
        scale = np.maximum(scale, np.abs(centre))
        if rule == "fltrust":  # every update is brought to the length of the reference
            scale = np.full(d, math.sqrt(centre @ centre))
            used = np.abs(np.array(answer[d:]) - fltrust_used(x, centre)).max()
            bad += not used <= 1e-10
        error = np.max(np.abs(np.array(answer[:d]) - expected) / np.where(np.maximum(scale, np.abs(expected)) > 0,
                                                                          np.maximum(scale, np.abs(expected)), 1))
        if not error <= 1e-10 or not all(0 <= used <= 1 + 1e-12 for used in answer[d:]):
            bad += 1
            if bad < 20:
                print(f"{rule} mix {mix} {options} n {n} d {d} {kind}: differs by {error:.3g}; used {answer[d:]}")
    print(f"{len(drawn)} cases, {bad} differ")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()

"""The rules once more, in loops of plain Python numbers: nothing here is shared with cfgd.

Each function returns the points x_0, ..., x_n. `grad` is the gradient, `diagonal` that of the
Hessian; both take and return lists of numbers.
"""

import math

import numpy as np


def gamma(z):
    return math.gamma(z)


def weight(alpha, j):
    """(-1)^j binomial(alpha, j), from the product and not from a recurrence."""
    out = 1.0
    for i in range(j):
        out *= (i - alpha) / (i + 1)
    return out


def scaled(grad, x0, n, factor):
    """x - g factor(k, x_j, x_j of the previous point, j), one coordinate after the other."""
    points = [list(x0)]
    for k in range(n):
        x, before = points[-1], points[-2] if k else points[-1]
        g = grad(x)
        points.append([x[j] - g[j] * factor(k, x[j], before[j]) for j in range(len(x))])
    return np.array(points)


def wang(grad, x0, n, eta, alpha, delta=0.0):
    def factor(k, x, before):
        if k == 0 and delta == 0:
            return eta / gamma(2 - alpha)
        return eta * (abs(x - before) + delta) ** (1 - alpha) / gamma(2 - alpha)

    return scaled(grad, x0, n, factor)


def sheng(grad, x0, n, eta, alpha, delta):
    points, gradients = [list(x0)], []
    for k in range(n):
        x, before = points[-1], points[-2] if k else points[-1]
        gradients.append(grad(x))
        g = gradients[-2] if k else gradients[-1]
        points.append(
            [
                x[j]
                - eta * g[j] * (abs(x[j] - before[j]) + delta) ** (1 - alpha) / gamma(2 - alpha)
                for j in range(len(x))
            ]
        )
    return np.array(points)


def lou(grad, x0, n, eta, alpha, rate, delta):
    def factor(k, x, before):
        a = 1 - (1 - alpha) / (1 + rate * k)
        return eta * (abs(x - before) + delta) ** (1 - a) / gamma(2 - a)

    return scaled(grad, x0, n, factor)


def xue(grad, x0, n, eta, alpha, mu, delta):
    points, v = [list(x0)], [0.0] * len(x0)
    for k in range(n):
        x, before = points[-1], points[-2] if k else points[-1]
        g = grad(x)
        for j in range(len(x)):
            D = abs(x[j] - before[j]) + delta
            v[j] = mu * v[j] - eta * g[j] * D ** (1 - alpha) / gamma(2 - alpha)
        points.append([x[j] + v[j] for j in range(len(x))])
    return np.array(points)


def wei_on_a_quadratic(grad, diagonal, x0, n, eta, alpha, lag):
    """Both terms of the series: f''' and later derivatives are 0."""
    points = [list(x0)]
    for k in range(n):
        x, c = points[-1], points[max(0, k - lag)]
        g, h = grad(x), diagonal(x)
        new = []
        for j in range(len(x)):
            s = x[j] - c[j]
            D = abs(s) if k else 1.0
            first = g[j] * D ** (1 - alpha) / gamma(2 - alpha)
            second = (alpha - 1) * h[j] * s * D ** (1 - alpha) / gamma(3 - alpha)
            new.append(x[j] - eta * (first + second))
        points.append(new)
    return np.array(points)


def taresh(grad, diagonal, x0, n, mu, alpha, delta):
    points = [list(x0)]
    for k in range(n):
        x, before = points[-1], points[-2] if k else points[-1]
        g, h = grad(before), diagonal(before)
        new = []
        for j in range(len(x)):
            s = x[j] - before[j]
            D = abs(s) + delta
            first = g[j] * D ** (1 - alpha) / gamma(2 - alpha)
            new.append(x[j] - mu * (first + h[j] * s * D ** (1 - alpha) / gamma(3 - alpha)))
        points.append(new)
    return np.array(points)


def herrera(grad, x0, n, eta, nu, eps):
    return scaled(grad, x0, n, lambda k, x, _: eta * (abs(x) + eps) ** (1 - nu) / gamma(2 - nu))


def herrera_adam(grad, x0, n, eta, nu, eps, b1, b2):
    def of(x, g):
        return [
            gj * (abs(xj) + eps) ** (1 - nu) / gamma(2 - nu) for xj, gj in zip(x, g, strict=True)
        ]

    return _adam(grad, x0, n, lambda k, x, gs: (of(x, gs[-1]), [eta] * len(x)), eps, b1, b2)


def _adam(grad, x0, n, rule, eps, b1, b2):
    x, gradients, points = list(x0), [], [list(x0)]
    m, v = [0.0] * len(x), [0.0] * len(x)
    for k in range(n):
        gradients.append(grad(x))
        G, rates = rule(k, x, gradients)
        for j in range(len(x)):
            m[j] = b1 * m[j] + (1 - b1) * G[j]
            v[j] = b2 * v[j] + (1 - b2) * G[j] ** 2
            top = m[j] / (1 - b1 ** (k + 1))
            x[j] -= rates[j] * top / (math.sqrt(v[j] / (1 - b2 ** (k + 1))) + eps)
        points.append(list(x))
    return np.array(points)


def frac_adam(grad, x0, n, eta, alpha, terms, eps, b1, b2, short_term=False):
    def rule(k, x, gs):
        d = len(x)
        G = [
            sum(weight(alpha, i) * gs[k - i][j] for i in range(min(terms, k) + 1)) for j in range(d)
        ]
        before = gs[k - 1] if k else [0.0] * d
        C = [1.1 - 0.5 / (1 + abs(before[j] - gs[k][j])) for j in range(d)]
        return G, [eta * (C[j] if short_term else 1.0) for j in range(d)]

    return _adam(grad, x0, n, rule, eps, b1, b2)


def thabet(grad, x0, n, eta, alpha, rate):
    return scaled(
        grad, x0, n, lambda k, x, _: eta * abs(x) ** (1 - (1 - (1 - alpha) / (1 + rate * k)))
    )


def khan2019(grad, x0, n, eta, eta_f, alpha):
    return scaled(
        grad, x0, n, lambda k, x, _: eta + eta_f * abs(x) ** (1 - alpha) / gamma(2 - alpha)
    )


def khan2018(grad, x0, n, eta, alpha, mix):
    def factor(k, x, before):
        return eta * ((1 - mix) + mix * abs(x - before) ** (1 - alpha) / gamma(2 - alpha))

    return scaled(grad, x0, n, factor)


def liu(grad, x0, n, eta, mu, momentum, delta, lower, upper):
    """The points y_k at which the gradients are taken."""
    x, ys = list(x0), [list(x0)]
    for k in range(n):
        y, before = ys[-1], ys[-2] if k else ys[-1]
        length = math.sqrt(sum((a - b) ** 2 for a, b in zip(y, before, strict=True)))
        rate = eta * min(max((length + delta) ** (1 - mu), lower), upper)
        g = grad(y)
        new = [y[j] - rate * g[j] for j in range(len(x))]
        ys.append([new[j] + momentum * (new[j] - x[j]) for j in range(len(x))])
        x = new
    return np.array(ys)


def tan(grad, x0, n, eta, alpha, delta):
    return scaled(
        grad,
        x0,
        n,
        lambda k, x, before: eta * ((abs(x - before) + delta) ** (1 - alpha) if k else 1.0),
    )


def kan(grad, x0, n, eta, alpha, b, terms):
    x, vs, points = list(x0), [], [list(x0)]
    for k in range(n):
        g = grad(x)
        v = [
            (1 - b) * g[j]
            - b * sum(weight(alpha, i) * vs[k - i][j] for i in range(1, min(terms, k) + 1))
            for j in range(len(x))
        ]
        vs.append(v)
        x = [x[j] - eta * v[j] for j in range(len(x))]
        points.append(x)
    return np.array(points)


def xie(grad, x0, n, eta, alpha, terms):
    points = [list(x0)]
    for k in range(n):
        g = grad(points[k])
        points.append(
            [
                x0[j]
                - eta**alpha * g[j]
                - sum(
                    weight(alpha, k + 1 - i) * (points[i][j] - x0[j])
                    for i in range(max(0, k + 1 - terms), k + 1)
                )
                for j in range(len(x0))
            ]
        )
    return np.array(points)


def shin_on_a_quadratic(grad, diagonal, x0, n, eta, alpha, beta, lag):
    points, c_gamma = [list(x0)], beta - (1 - alpha) / (2 - alpha)
    for k in range(n):
        x, c = points[-1], points[max(0, k - lag)]
        g, h = grad(x), diagonal(x)
        points.append([x[j] - eta * (g[j] + c_gamma * h[j] * (x[j] - c[j])) for j in range(len(x))])
    return np.array(points)


def aggarwal_on_a_quadratic(grad, diagonal, x0, n, eta, lam, alpha, beta):
    points, c_gamma = [list(x0)], beta - (1 - alpha) / (2 - alpha)
    for _ in range(n):
        x = points[-1]
        g, h = grad(x), diagonal(x)
        points.append([x[j] - eta * (1 - c_gamma * lam * h[j]) * g[j] for j in range(len(x))])
    return np.array(points)

#!/usr/bin/env python3
"""Computes codegen/math/MathCoefficients.h: minimax polynomials for LowerMath.cpp.

Usage: fit_coefficients.py > MathCoefficients.h      (needs mpmath; takes a minute)

Each table is a polynomial in the stated variable, lowest degree first. The Remez exchange minimises
the weighted error; coefficients are then rounded to the target type one after the other, the
remaining ones being fitted again where the interval does not hold 0, which keeps the error close to
the unrounded one.
"""
import struct
import sys
from mpmath import mp, mpf, mpmathify, matrix, lu_solve, cos, pi, exp, log, sin, sqrt, erf, erfc, expm1, log1p, atanh, tanh, atan, asin, sinh, erfinv, loggamma, digamma

mp.prec = 500


def to_f32(x):
    return mpf(struct.unpack('f', struct.pack('f', float(x)))[0])


def to_f64(x):
    return mpf(float(x))


def remez(function, lo, hi, degree, weight):
    """Coefficients of the polynomial nearest to `function` in the weighted maximum norm."""
    count = degree + 2
    away_from_zero = lambda x: x if abs(x) > (hi - lo) / 1000 else (hi - lo) / 1000
    chebyshev = lambda k, n: away_from_zero((lo + hi) / 2 - (hi - lo) / 2 * cos(pi * k / (n - 1)))
    points = [chebyshev(k, count) for k in range(count)]
    grid_size = 40 * count
    grid = [chebyshev(k, grid_size) for k in range(grid_size)]
    samples = [(x, function(x), weight(x)) for x in grid]
    coefficients = None
    for _ in range(30):
        system = matrix(count, count)
        right = matrix(count, 1)
        for row, x in enumerate(points):
            for column in range(degree + 1):
                system[row, column] = x ** column
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = function(x)
        solution = lu_solve(system, right)
        coefficients = [solution[k] for k in range(degree + 1)]
        errors = [(polynomial(coefficients, x) - f) * w for x, f, w in samples]
        extrema = []
        for k, error in enumerate(errors):
            if extrema and (errors[extrema[-1]] > 0) == (error > 0):
                if abs(error) > abs(errors[extrema[-1]]):
                    extrema[-1] = k
            else:
                extrema.append(k)
        while len(extrema) > count:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        if len(extrema) < count:
            break
        levels = [abs(errors[k]) for k in extrema]
        points = [grid[k] for k in extrema]
        if max(levels) < min(levels) * mpf('1.001'):
            break
    return coefficients


def polynomial(coefficients, x):
    value = mpf(0)
    for c in reversed(coefficients):
        value = value * x + c
    return value


def fit(name, comment, function, lo, hi, degree, weight, rounding, ctype):
    """Prints one table; fits the coefficients after each rounding anew."""
    lo, hi = mpf(lo), mpf(hi)
    fixed = []
    if lo < 0: # fitting again would divide by powers of x, which vanish inside the interval
        fixed = [rounding(c) for c in remez(function, lo, hi, degree, weight)]
    for k in range(len(fixed), degree + 1):
        rest = lambda x, k=k: (function(x) - polynomial(fixed, x)) / x ** k
        rest_weight = lambda x, k=k: weight(x) * abs(x) ** k
        coefficients = remez(rest, lo, hi, degree - k, rest_weight)
        fixed.append(rounding(coefficients[0]))
    error = max(abs((polynomial(fixed, x) - function(x)) * weight(x))
                for x in (lo + (hi - lo) * k / 997 for k in range(1, 997)))
    print(f'/// {comment}; weighted error 2^{float(log(error, 2)):.1f}.')
    values = ', '.join(float(c).hex() for c in fixed)
    lines, line = [], '   '
    for value in values.split(', '):
        if len(line) + len(value) > 95:
            lines.append(line)
            line = '   '
        line += f' {value},'
    lines.append(line.rstrip(','))
    print(f'inline constexpr {ctype} {name}[] = {{\n' + '\n'.join(lines) + '};')
    sys.stdout.flush()


def series(function, terms):
    """`function`, or near 0 its Taylor series given as coefficients (no cancellation)."""
    def value(x):
        if abs(x) < mpf('1e-4'):
            return polynomial(terms, x)
        return function(x)
    return value


def split(name, comment, value, bits, parts, last, ctype):
    """Prints `value` as a sum of `parts` numbers of `bits` bits each, the last rounded by `last`."""
    result = []
    for k in range(parts):
        if k == parts - 1:
            piece = last(value)
        else:
            exponent = mp.floor(log(abs(value), 2))
            scale = mpf(2) ** (bits - 1 - exponent)
            piece = mp.nint(value * scale) / scale
        result.append(piece)
        value -= piece
    print(f'/// {comment}.')
    print(f'inline constexpr {ctype} {name}[] = {{' + ', '.join(float(p).hex() for p in result) + '};')


def fact(n):
    return mp.factorial(n)


def tables(suffix, rounding, ctype, single):
    half = log(mpf(2)) / 2 * mpf('1.01')
    quarter = (pi / 4 * mpf('1.01')) ** 2
    eps = mpf('1e-12')

    def degree(f32, f64):
        return f32 if single else f64

    terms = 24
    exp_tail = series(lambda r: (expm1(r) - r) / r ** 2, [1 / fact(k + 2) for k in range(terms)])
    fit(f'expTail{suffix}', '(e^r - 1 - r)/r^2 in r, |r| <= ln(2)/2', exp_tail, -half, half,
        degree(4, 10), lambda r: r ** 2 / exp(r), rounding, ctype)
    fit(f'expm1Tail{suffix}', '(e^r - 1 - r)/r^2 in r, |r| <= ln(2)/2, relative to e^r - 1', exp_tail,
        -half, half, degree(5, 11), lambda r: abs(r ** 2 / expm1(r)) if r else mpf(0), rounding, ctype)
    ln2 = log(mpf(2))
    fit(f'exp2Tail{suffix}', '(2^r - 1)/r in r, |r| <= 1/2',
        series(lambda r: expm1(r * ln2) / r, [ln2 ** (k + 1) / fact(k + 1) for k in range(terms)]),
        mpf('-0.501'), mpf('0.501'), degree(5, 11), lambda r: abs(r) / 2 ** r, rounding, ctype)
    if single:
        low, high = sqrt(mpf('0.5')) - 1 - mpf('1e-3'), sqrt(mpf(2)) - 1 + mpf('1e-3')
        fit(f'logTail{suffix}', '(log(1+f) - f + f^2/2)/f^3 in f, 1+f in [sqrt(1/2), sqrt(2)]',
            series(lambda f: (log1p(f) - f + f * f / 2) / f ** 3,
                   [mpf((-1) ** k) / (k + 3) for k in range(terms)]),
            low, high, 8, lambda f: abs(f ** 3 / log1p(f)) if f else mpf(0), rounding, ctype)
    else:
        high = (mpf('0.1716') * mpf('1.01')) ** 2
        def atanh_tail(z):
            s = sqrt(z)
            return (2 * atanh(s) - 2 * s) / (s * z)
        fit(f'atanhTail{suffix}', '(2 atanh(s) - 2s)/s^3 in s^2, |s| <= 3 - 2 sqrt(2)',
            series(atanh_tail, [mpf(2) / (2 * k + 3) for k in range(terms)]), eps, high, 7,
            lambda z: z, rounding, ctype)
    fit(f'sinTail{suffix}', '(sin r - r)/r^3 in r^2, |r| <= pi/4',
        series(lambda z: (sin(sqrt(z)) - sqrt(z)) / sqrt(z) ** 3,
               [mpf((-1) ** (k + 1)) / fact(2 * k + 3) for k in range(terms)]),
        eps, quarter, degree(3, 6), lambda z: z, rounding, ctype)
    fit(f'cosTail{suffix}', '(cos r - 1 + r^2/2)/r^4 in r^2, |r| <= pi/4',
        series(lambda z: (cos(sqrt(z)) - 1 + z / 2) / z ** 2,
               [mpf((-1) ** k) / fact(2 * k + 4) for k in range(terms)]),
        eps, quarter, degree(2, 5), lambda z: z ** 2, rounding, ctype)
    tanh_bound = mpf('0.56')
    def tanh_tail(z):
        x = sqrt(z)
        return (tanh(x) - x) / (x * z)
    fit(f'tanhTail{suffix}', '(tanh x - x)/x^3 in x^2, |x| <= 0.55',
        series(tanh_tail, [mpf(-1) / 3, mpf(2) / 15, mpf(-17) / 315, mpf(62) / 2835, mpf(-1382) / 155925]),
        eps, tanh_bound ** 2, degree(4, 12), lambda z: z, rounding, ctype)
    two_over_root_pi = 2 / sqrt(pi)
    fit(f'erfNear{suffix}', 'erf(x)/x - 1 in x^2, |x| <= 1',
        series(lambda z: erf(sqrt(z)) / sqrt(z) - 1,
               [two_over_root_pi * mpf((-1) ** k) / (fact(k) * (2 * k + 1)) - (k == 0)
                for k in range(terms)]),
        eps, mpf('1.01'), degree(7, 14), lambda z: mpf(1), rounding, ctype)
    if single:
        fit(f'erfFar{suffix}', '-log(1 - erf(x)) in x, 1 <= x <= 4', lambda x: -log(erfc(x)),
            mpf('0.98'), mpf('4.0'), 8, lambda x: erfc(x) / erf(x), rounding, ctype)
        fit('erfNearShort', 'erf(x)/x - 1 in x^2, |x| <= 1',
            series(lambda z: erf(sqrt(z)) / sqrt(z) - 1,
                   [two_over_root_pi * mpf((-1) ** k) / (fact(k) * (2 * k + 1)) - (k == 0)
                    for k in range(terms)]),
            eps, mpf('1.01'), 5, lambda z: mpf(1), rounding, ctype)
        fit('erfFarShort', 'log2(1 - erf(x)) in x, 1 <= x <= 4', lambda x: log(erfc(x), 2),
            mpf('0.98'), mpf('4.0'), 6, lambda x: erfc(x) * log(mpf(2)) / erf(x), rounding, ctype)
    else:
        centers = [mpf(c) for c in ('1.375', '2.125', '2.875', '3.625', '4.375', '5.125', '5.875')]
        for index, center in enumerate(centers):
            scale = lambda t, c=center: erfc(c + t) / erf(c + t)
            fit(f'erfFar{suffix}_{index}', f'-log(1 - erf(x)) in x - {float(center)}, |x - {float(center)}| <= 3/8',
                lambda t, c=center: -log(erfc(c + t)), mpf('-0.376'), mpf('0.376'), 11, scale, rounding, ctype)


def inverse_tables(suffix, rounding, ctype, single):
    """Inverses of the circular functions, and sinh."""
    def degree(f32, f64):
        return f32 if single else f64
    eps = mpf('1e-12')
    def tail(function):
        def value(z):
            x = sqrt(z)
            return (function(x) - x) / (x * z)
        return value
    odd = lambda terms: [mpf(t) for t in terms]
    fit(f'atanTail{suffix}', '(atan x - x)/x^3 in x^2, |x| <= tan(pi/8)',
        series(tail(atan), [mpf((-1) ** (k + 1)) / (2 * k + 3) for k in range(24)]),
        eps, mpf('0.1733'), degree(4, 10), lambda z: z, rounding, ctype)
    asin_terms, t = [], mpf(1)
    for k in range(1, 25):
        t *= mpf(2 * k - 1) / (2 * k)
        asin_terms.append(t / (2 * k + 1))
    fit(f'asinTail{suffix}', '(asin x - x)/x^3 in x^2, |x| <= 1/2', series(tail(asin), asin_terms),
        eps, mpf('0.2505'), degree(5, 12), lambda z: z, rounding, ctype)
    fit(f'sinhTail{suffix}', '(sinh x - x)/x^3 in x^2, |x| <= 1',
        series(tail(sinh), [1 / fact(2 * k + 3) for k in range(24)]),
        eps, mpf('1.01'), degree(3, 8), lambda z: z, rounding, ctype)


def special_tables():
    """Functions that f32 takes from f64."""
    rounding, ctype = to_f64, 'double'
    def erfc_scaled(t):
        x = 4 * (1 + t) / (1 - t)
        return (1 + 2 * x) * exp(x * x) * erfc(x)
    fit('erfcFarF64', '(1 + 2x) exp(x^2) erfc(x) in t = (x - 4)/(x + 4), 1/2 <= x <= 28', erfc_scaled,
        mpf('-0.7785'), mpf('0.7505'), 23, lambda t: 1 / erfc_scaled(t), rounding, ctype)
    def gamma_part(center):
        def value(u):
            x = center + u
            for root in (1, 2):
                if abs(x - root) < mpf('1e-30'):
                    x += mpf('1e-30')
            return loggamma(x) / ((x - 1) * (x - 2))
        return value
    low, high = gamma_part(mpf(1)), gamma_part(mpf('2.25'))
    fit('lgammaLowF64', 'lgamma(x)/((x - 1)(x - 2)) in x - 1, 1/2 <= x <= 3/2', low, mpf('-0.501'), mpf('0.501'), 28,
        lambda u: 1 / low(u), rounding, ctype)
    fit('lgammaHighF64', 'lgamma(x)/((x - 1)(x - 2)) in x - 9/4, 3/2 <= x <= 3', high, mpf('-0.751'), mpf('0.751'), 22,
        lambda u: 1 / high(u), rounding, ctype)
    def stirling(z):
        x = 1 / sqrt(z)
        return x * (loggamma(x) - (x - mpf('0.5')) * (log(x) - 1) - (log(2 * mp.pi) - 1) / 2)
    fit('lgammaTailF64', 'x (lgamma(x) - (x - 1/2)(log x - 1) - (log(2 pi) - 1)/2) in 1/x^2, x >= 8', stirling,
        mpf('1e-9'), mpf('0.01565'), 7, lambda z: mpf(1), rounding, ctype)
    def digamma_tail(z):
        x = 1 / sqrt(z)
        return (log(x) - 1 / (2 * x) - digamma(x)) / z
    fit('digammaTailF64', 'x^2 (log x - 1/(2x) - digamma(x)) in 1/x^2, x >= 10', digamma_tail,
        mpf('1e-9'), mpf('0.0101'), 7, lambda z: mpf('0.01'), rounding, ctype)
    # Where Halley's step begins.
    near = lambda t: erfinv(sqrt(1 - exp(-(t + mpf('2.5'))))) / sqrt(1 - exp(-(t + mpf('2.5'))))
    fit('erfinvNearF64', 'erfinv(x)/x in w - 5/2, w = -log(1 - x^2) <= 5', near, mpf('-2.4999999'), mpf('2.51'), 9,
        lambda t: mpf(1), rounding, ctype)
    far = lambda t: erfinv(sqrt(1 - exp(-(t + 4) ** 2))) / sqrt(1 - exp(-(t + 4) ** 2))
    fit('erfinvFarF64', 'erfinv(x)/x in sqrt(w) - 4, 5 <= w <= 37', far, mpf('-1.77'), mpf('2.1'), 9,
        lambda t: mpf(1) / 4, rounding, ctype)


print('''//===- MathCoefficients.h - Polynomials of the elementary functions ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Written by fit_coefficients.py; change that file instead. Lowest degree first.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_CODEGEN_MATH_MATHCOEFFICIENTS_H
#define TEGULA_CODEGEN_MATH_MATHCOEFFICIENTS_H

#include <cstdint>

namespace tegula::coefficients {
// clang-format off
''')
tables('F32', to_f32, 'float', True)
tables('F64', to_f64, 'double', False)
inverse_tables('F32', to_f32, 'float', True)
inverse_tables('F64', to_f64, 'double', False)
special_tables()
split('ln2F32', 'ln(2) in two parts, the first of 16 bits: products with exponents are exact', log(mpf(2)), 16, 2, to_f32, 'float')
split('ln2F64', 'ln(2) in two parts, the first of 40 bits', log(mpf(2)), 40, 2, to_f64, 'double')
split('log2eF32', '1/ln(2) in two parts', 1 / log(mpf(2)), 24, 2, to_f32, 'float')
split('log2eF64', '1/ln(2) in two parts', 1 / log(mpf(2)), 53, 2, to_f64, 'double')
split('log10eF32', '1/ln(10) in two parts', 1 / log(mpf(10)), 24, 2, to_f32, 'float')
split('log10eF64', '1/ln(10) in two parts', 1 / log(mpf(10)), 53, 2, to_f64, 'double')
split('log10Of2F32', 'log10(2) in two parts, the first of 16 bits', log(mpf(2)) / log(mpf(10)), 16, 2, to_f32, 'float')
split('log10Of2F64', 'log10(2) in two parts, the first of 40 bits', log(mpf(2)) / log(mpf(10)), 40, 2, to_f64, 'double')
split('halfPiF32', 'pi/2 in three parts', pi / 2, 24, 3, to_f32, 'float')
split('halfPiF64', 'pi/2 in three parts', pi / 2, 53, 3, to_f64, 'double')
mp.prec = 1400
bits = int(mp.floor(2 / mp.pi * mpf(2) ** 1280))
words = [(bits >> (1280 - 64 * (k + 1))) & ((1 << 64) - 1) for k in range(20)]
print('/// The first 1280 bits of 2/pi after the binary point.')
print('inline constexpr uint64_t twoOverPi[] = {')
for k in range(0, 20, 4):
    print('    ' + ', '.join(f'0x{w:016x}' for w in words[k:k + 4]) + ',')
print('};')
print('''
// clang-format on
} // namespace tegula::coefficients

#endif // TEGULA_CODEGEN_MATH_MATHCOEFFICIENTS_H''')

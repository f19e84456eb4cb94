//===- ChunkedLoop.h - Writes a linear recurrence in chunks of steps --*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Of a loop of steps t = c*L + l (passes/analysis/LinearRecurrence.h) the equations become
//
//   scores[c, l, m] = where(m <= l, decay(m, l) * sum over i of query[c, l, i] * key[c, m, i], 0)
//   added[c, i, j]  = sum over l of key[c, l, i] * decay(l, L) * value[c, l, j]
//   states[c, i, j] = S;  S = decay(0, L) * S + added[c, i, j], in order of c
//   readout[t, j]   = decay(0, l) * sum over i of query * states[c, i, j]
//                     + sum over m of scores[c, l, m] * value[c, m, j]
//
// Values that a readout of the state corrects, value = base + scale*(sum over i of query * S),
// solve
//
//   value[c, l, j] = base + scale*(decay(0, l) * sum over i of query * states[c, i, j]
//                                  + sum over m < l of scores[c, l, m] * value[c, m, j])
//
// for a state that is not known yet (the WY form): value = fixed[c, l, j] + sum over i of
// turned[c, l, i] * states[c, i, j]. Then the loop over chunks holds two products.
//
// Here decay(m, l) is the product of the decays of the steps after m, up to l. Sums of logarithms
// from the chunk's begin give it as exp(log[l] - log[m]), which is in range where the product is.
// Decays of 0 are counted beside: a product over one is 0. So are negative ones.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PASSES_CHUNKS_CHUNKEDLOOP_H
#define TEGULA_PASSES_CHUNKS_CHUNKEDLOOP_H

#include "passes/analysis/LinearRecurrence.h"

namespace tegula {

/// Whether keys, values and queries are of bf16, so that their products with decays, states between
/// chunks and scores may be rounded to it (SPEC 6.9).
bool roundsToBF16(const LinearRecurrence &found);

/// Replaces the loop by statements over chunks of `length` steps.
void writeInChunks(LinearRecurrence &found, int64_t length);

} // namespace tegula

#endif // TEGULA_PASSES_CHUNKS_CHUNKEDLOOP_H

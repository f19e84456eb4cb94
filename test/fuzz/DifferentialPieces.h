//===- DifferentialPieces.h - Random programs, run in pieces ----*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FUZZ_DIFFERENTIALPIECES_H
#define TEGULA_TEST_FUZZ_DIFFERENTIALPIECES_H

#include "compiler/Compiler.h"
#include <string>

namespace tegula::fuzz {

struct GeneratedProgram;

/// Runs a program of generateBatchProgram, and pieces of its batch that are cut at random places.
/// An empty message where they get the same bits; `didCompare` says whether a piece that is less
/// than the whole had any.
std::string comparePieces(const GeneratedProgram &program, const CompileOptions &options,
                          uint64_t seed, bool &didCompare);

} // namespace tegula::fuzz

#endif // TEGULA_TEST_FUZZ_DIFFERENTIALPIECES_H

//===- Certificate.h - What was proved, so that it can be repeated ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_PROVE_CERTIFICATE_H
#define TEGULA_PROVE_CERTIFICATE_H

#include "prove/Equal.h"
#include "llvm/Support/JSON.h"

namespace tegula::prove {

/// The SHA-256 of a text, in hexadecimal digits.
std::string hashOf(llvm::StringRef text);

/// A verdict, with all that is needed to come to it again.
llvm::json::Object toJson(const Judgement &judgement, uint64_t seed);

/// The verdict in words, for a person.
std::string toText(const Judgement &judgement);

} // namespace tegula::prove

#endif // TEGULA_PROVE_CERTIFICATE_H

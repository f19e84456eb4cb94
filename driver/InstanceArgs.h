//===- InstanceArgs.h - Sizes, constants and types given on the command line ===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_INSTANCEARGS_H
#define TEGULA_DRIVER_INSTANCEARGS_H

#include "frontend/Check.h"
#include "llvm/ADT/ArrayRef.h"

namespace tegula {

/// Says on standard error that this is given twice. False.
bool givenTwice(const llvm::Twine &what);

/// `M=64,N=128` in each text. False, with the reason on standard error, where one is malformed.
bool parseSizes(llvm::ArrayRef<std::string> texts, std::map<std::string, int64_t> &sizes);

/// `eps=1e-3`, `causal=true`, `stride=2`, `stride=2,3` (a tuple), several joined by commas.
bool parseConstants(llvm::ArrayRef<std::string> texts,
                    decltype(InstanceOptions::constants) &constants);

/// `T=f16`.
bool parseTypes(llvm::ArrayRef<std::string> texts, std::map<std::string, checked::DType> &types);

/// What -d, -p and --type say, as names and texts. False, with the reason on standard error, where
/// one is malformed.
bool readSettings(std::initializer_list<llvm::ArrayRef<std::string>> lists,
                  std::vector<std::pair<std::string, std::string>> &settings);

/// Whether it is a precision (checked::isPrecision), or empty. False, with a message on standard
/// error, where not.
bool isPrecision(llvm::StringRef name);

/// Whether it is what PipelineOptions::tensorTile takes. False, with the names of all tiles on
/// standard error, where not.
bool isTensorTile(llvm::StringRef name);

} // namespace tegula

#endif // TEGULA_DRIVER_INSTANCEARGS_H

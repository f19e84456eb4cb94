//===- Card.h - What a card reaches, measured -------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Rates that code reaches on a card, where data sheets (bench/report/Occupancy.h) say what nobody
// exceeds. The model of expected times (strategies/expected) takes them.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TARGET_CARD_H
#define TEGULA_TARGET_CARD_H

#include "llvm/ADT/StringRef.h"

namespace tegula {

struct Card {
  llvm::StringRef name; ///< as after --machine
  double multiprocessors;
  double clock; ///< of multiprocessors under load, in cycles a second
  /// Bytes a second: read and written by a copy of 1 GiB; of the second-level cache.
  double copyRate, cacheRate;
  /// Operations a second, multiply and add as two, of cuBLAS's products of 16 bits.
  double tensorRate;
};

/// Null: nothing was measured on a card of that name.
const Card *cardNamed(llvm::StringRef name);

} // namespace tegula

#endif // TEGULA_TARGET_CARD_H

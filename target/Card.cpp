//===- Card.cpp - What a card reaches, measured ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "target/Card.h"
#include "llvm/ADT/STLExtras.h"

using namespace tegula;

// docs/results/real.md has the rates of copies and products.
static constexpr Card cards[] = {
    {"h100", 132, 1.98e9, 3.0e12, 6.5e12, 790e12},
    {"h200", 132, 1.98e9, 4.2e12, 6.5e12, 790e12},
};

const Card *tegula::cardNamed(llvm::StringRef name) {
  const auto *found = llvm::find_if(cards, [&](const Card &card) { return card.name == name; });
  return found == std::end(cards) ? nullptr : found;
}

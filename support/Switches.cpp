//===- Switches.cpp - Names that --disable takes beside those of passes ---===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "support/Switches.h"
#include "llvm/ADT/StringSwitch.h"

using namespace tegula;

llvm::ArrayRef<Switch> tegula::switches() {
  static const Switch all[] = {
#define TEGULA_STRATEGY(name, sentence) {/*isStrategy=*/true, name, sentence},
#define TEGULA_SWITCH(name, sentence) {/*isStrategy=*/false, name, sentence},
#include "support/Switches.def"
  };
  return all;
}

llvm::StringRef tegula::currentName(llvm::StringRef name) {
  return llvm::StringSwitch<llvm::StringRef>(name)
#define TEGULA_RENAMED(old, name) .Case(old, name)
#include "support/Switches.def"
      .Default(name);
}

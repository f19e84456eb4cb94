//===- Fibre.h - Threads that take turns on one -----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_FIBRE_H
#define TEGULA_RUNTIME_EMULATOR_FIBRE_H

#include <csetjmp>
#include <cstddef>
#include <memory>
#include <ucontext.h>
#include <utility>
#include <vector>

namespace tegula::emulator {

/// Memory for stacks, with a page below each that nobody may touch. Used ones are given out again.
class Stacks {
public:
  static constexpr size_t bytes = 1024 << 10;
  Stacks() = default;
  Stacks(const Stacks &) = delete;
  Stacks &operator=(const Stacks &) = delete;
  ~Stacks();
  /// The lowest address; null where there is no memory.
  char *take();
  void giveBack(char *stack) { unused.push_back(stack); }

private:
  std::vector<char *> all, unused;
};

/// A function on a stack of its own. It runs while somebody is in resume(), until it suspends
/// itself or ends. A fibre that has not ended may be destroyed: what is on its stack is forgotten.
class Fibre {
public:
  using Function = void (*)(void *argument);
  Fibre() = default;
  Fibre(const Fibre &) = delete;
  Fibre &operator=(const Fibre &) = delete;

  /// `stack` has Stacks::bytes bytes. Nothing runs yet.
  void start(char *stack, Function function, void *argument);
  void resume();
  void suspend();
  bool hasEnded() const { return ended; }
  char *stackMemory() const { return stack; }
  bool holds(const void *address) const {
    return address >= stack && address < stack + Stacks::bytes;
  }

private:
  static void enter(unsigned low, unsigned high);
  /// A function's state on its stack. swapcontext asks the kernel for the signal mask, which is the
  /// same everywhere here and costs more than all else; so it only begins a fibre.
  struct Place {
#if defined(__x86_64__)
    void *registers[5]; // what __builtin_setjmp keeps
#else
    jmp_buf registers;
#endif
    ucontext_t context;
  };
  static void change(Place &from, Place &to, bool begins);
  Place own, caller;
  bool begun = false;
  char *stack = nullptr;
  Function function = nullptr;
  void *argument = nullptr;
  bool ended = false;
};

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_FIBRE_H

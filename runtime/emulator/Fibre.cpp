//===- Fibre.cpp - Threads that take turns on one ---------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/emulator/Fibre.h"

#include "llvm/Support/ErrorHandling.h"
#include <cstdint>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEGULA_ADDRESS_SANITIZER 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif

using namespace tegula::emulator;

static constexpr size_t guardBytes = 4096;

Stacks::~Stacks() {
  for (char *stack : all)
    munmap(stack - guardBytes, bytes + guardBytes);
}

char *Stacks::take() {
  if (!unused.empty()) {
    char *stack = unused.back();
    unused.pop_back();
    return stack;
  }
  void *memory = mmap(nullptr, bytes + guardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED)
    return nullptr;
  mprotect(memory, guardBytes, PROT_NONE);
  all.push_back(static_cast<char *>(memory) + guardBytes);
  return all.back();
}

// AddressSanitizer keeps a map of the stack it believes to be on.
static void announceSwitch([[maybe_unused]] const void *stack, [[maybe_unused]] size_t bytes,
                           [[maybe_unused]] void **saved) {
#ifdef TEGULA_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(saved, stack, bytes);
#endif
}
static void announceArrival([[maybe_unused]] void *saved, [[maybe_unused]] const void **stack,
                            [[maybe_unused]] size_t *bytes) {
#ifdef TEGULA_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(saved, stack, bytes);
#endif
}
static thread_local const void *callerStack = nullptr;
static thread_local size_t callerBytes = 0;

/// The compiler's own setjmp keeps three registers, and needs no call; it is not there for all
/// processors. The frame has all others, so that nothing may take its place (by inlining, or by a
/// tail call of setcontext) until the function returns.
[[gnu::noinline]] void Fibre::change(Place &from, Place &to, bool begins) {
#if defined(TEGULA_ADDRESS_SANITIZER) // which follows swapcontext alone
  swapcontext(&from.context, &to.context);
#elif defined(__x86_64__)
  if (__builtin_setjmp(from.registers))
    return;
  if (!begins)
    __builtin_longjmp(to.registers, 1);
  setcontext(&to.context);
  llvm_unreachable("the fibre's stack is there");
#else
  if (_setjmp(from.registers))
    return;
  if (begins)
    setcontext(&to.context);
  else
    _longjmp(to.registers, 1);
#endif
}

void Fibre::enter(unsigned low, unsigned high) {
  announceArrival(nullptr, &callerStack, &callerBytes);
  auto *fibre = reinterpret_cast<Fibre *>(uintptr_t(high) << 32 | low);
  fibre->function(fibre->argument);
  fibre->ended = true;
  announceSwitch(callerStack, callerBytes, nullptr);
  change(fibre->own, fibre->caller, /*begins=*/false);
}

void Fibre::start(char *on, Function what, void *with) {
  stack = on;
  function = what;
  argument = with;
  ended = begun = false;
  ucontext_t &context = own.context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack;
  // Stacks that begin at different places of their pages do not share a few sets of the caches.
  auto self = reinterpret_cast<uintptr_t>(this);
  context.uc_stack.ss_size = Stacks::bytes - self / sizeof(Fibre) % 61 * 64;
  context.uc_link = nullptr;
  // The arguments of makecontext are ints.
  makecontext(&context, reinterpret_cast<void (*)()>(&Fibre::enter), 2, unsigned(self),
              unsigned(self >> 32));
}

void Fibre::resume() {
  void *saved = nullptr;
  announceSwitch(stack, Stacks::bytes, &saved);
  change(caller, own, /*begins=*/!std::exchange(begun, true));
  announceArrival(saved, nullptr, nullptr);
}

void Fibre::suspend() {
  void *saved = nullptr;
  announceSwitch(callerStack, callerBytes, &saved);
  change(own, caller, /*begins=*/false);
  announceArrival(saved, &callerStack, &callerBytes);
}

//===- Crash.cpp - Our own mistakes ------------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handler may run on a broken heap and a full stack: everything that it writes is prepared
// before.
//
//===----------------------------------------------------------------------===//
#include "driver/Crash.h"

#include "driver/ExitCode.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <string>
#include <unistd.h>

using namespace llvm;

namespace tegula {

static std::string commandLine; // as comments of the language
static std::string program;
static char fileName[64], fallbackName[64];
static volatile sig_atomic_t crashing = 0;

static void say(const char *text) {
  [[maybe_unused]] ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
}

static bool writeReproducer(const char *path, const char *reason) {
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0)
    return false;
  bool written = true;
  auto put = [&](const char *data, size_t size) {
    written &= write(file, data, size) == static_cast<ssize_t>(size);
  };
  put("# crash: ", 9);
  put(reason, strlen(reason));
  put("\n", 1);
  put(commandLine.data(), commandLine.size());
  put(program.data(), program.size());
  close(file);
  return written;
}

[[noreturn]] static void crash(const char *reason) {
  if (crashing)
    _exit(ExitInternalError);
  crashing = 1;
  // What follows can hang on a broken heap.
  signal(SIGALRM, [](int) { _exit(ExitInternalError); });
  alarm(10);
  say("tegula: internal error: ");
  say(reason);
  say("\n");
  const char *path = writeReproducer(fileName, reason)       ? fileName
                     : writeReproducer(fallbackName, reason) ? fallbackName
                                                             : nullptr;
  say(path ? "tegula: please report it with the reproducer "
           : "tegula: no reproducer could be written");
  if (path)
    say(path);
  say("\n");
  sys::RunInterruptHandlers(); // removes temporary files
  sys::PrintStackTrace(errs());
  _exit(ExitInternalError);
}

static void onSignal(int number) {
  switch (number) {
  case SIGSEGV:
    crash("segmentation fault");
  case SIGBUS:
    crash("bus error");
  case SIGILL:
    crash("illegal instruction");
  case SIGFPE:
    crash("arithmetic fault");
  default:
    crash("aborted");
  }
}

void installCrashHandler(int argc, const char *const *argv) {
  commandLine = "# command:";
  for (int i = 0; i != argc; ++i) {
    commandLine += ' ';
    for (char c : StringRef(argv[i]))
      commandLine += c == '\n' ? ' ' : c;
  }
  commandLine += '\n';
  snprintf(fileName, sizeof fileName, "tegula-crash-%d.tgl", getpid());
  snprintf(fallbackName, sizeof fallbackName, "/tmp/tegula-crash-%d.tgl", getpid());

  // Its own stack, so that an overflow of the main one can be reported.
  static char alternate[256 * 1024];
  stack_t stack{};
  stack.ss_sp = alternate;
  stack.ss_size = sizeof alternate;
  sigaltstack(&stack, nullptr);
  struct sigaction action{};
  action.sa_handler = onSignal;
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (int number : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    sigaction(number, &action, nullptr);

  install_fatal_error_handler([](void *, const char *reason, bool) { crash(reason); });
  auto outOfMemory = [] {
    say("tegula: out of memory\n");
    sys::RunInterruptHandlers();
    _exit(ExitMissingResource);
  };
  std::set_new_handler(outOfMemory);
  install_bad_alloc_error_handler([](void *, const char *, bool) {
    say("tegula: out of memory\n");
    _exit(ExitMissingResource);
  });
}

void setCrashProgram(StringRef path, StringRef text) {
  std::string line = ("# file: " + path).str();
  for (char &c : line)
    c = c == '\n' ? ' ' : c;
  program = line + "\n" + text.str();
}

} // namespace tegula

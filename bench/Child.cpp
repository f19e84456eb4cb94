//===- Child.cpp - Work done in a process of its own -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Child.h"

#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;

namespace tegula::bench {
namespace {

void writeAll(int file, StringRef text) {
  while (!text.empty()) {
    ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      _exit(1); // the parent has gone
    text = text.drop_front(written);
  }
}

ChildEnd failed(const char *what) {
  return {ChildEnd::Failed, errno, (Twine(what) + ": " + std::strerror(errno)).str()};
}

ChildEnd endOf(int status) {
  if (WIFEXITED(status)) {
    int code = WEXITSTATUS(status);
    return {ChildEnd::Exited, code, code ? ("exited with " + Twine(code)).str() : ""};
  }
  int signal = WTERMSIG(status);
  return {ChildEnd::Signalled, signal,
          ("ended by signal " + Twine(signal) + " (" + strsignal(signal) + ")").str()};
}

} // namespace

ChildEnd runInChild(function_ref<int(function_ref<void(StringRef)> send)> work,
                    function_ref<void(StringRef line)> receive, double seconds) {
  int ends[2];
  if (::pipe(ends))
    return failed("pipe");
  outs().flush();
  pid_t child = ::fork();
  if (child < 0) {
    ::close(ends[0]);
    ::close(ends[1]);
    return failed("fork");
  }
  if (child == 0) {
    ::close(ends[0]);
    // Ctrl-C or the death of the parent ends the child too.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int signal : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
      ::signal(signal, SIG_DFL); // the parent's handlers would write a report of their own
    int code = work([&](StringRef line) { writeAll(ends[1], (line + "\n").str()); });
    outs().flush();
    // No destructors: libtorch and the kernel's threads are still there.
    _exit(code);
  }
  ::close(ends[1]);

  ChildEnd end;
  bool killed = false;
  std::string pending;
  for (;;) {
    pollfd waiting = {ends[0], POLLIN, 0};
    int ready = ::poll(&waiting, 1, static_cast<int>(seconds * 1000));
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0 && !killed) {
      killed = true;
      ::kill(child, SIGKILL);
      continue;
    }
    char buffer[65536];
    ssize_t count = ::read(ends[0], buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      break;
    pending.append(buffer, count);
    size_t begin = 0;
    for (size_t newline; (newline = pending.find('\n', begin)) != std::string::npos;
         begin = newline + 1)
      receive(StringRef(pending).slice(begin, newline));
    pending.erase(0, begin);
  }
  ::close(ends[0]);
  int status;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR)
      return failed("waitpid");
  if (killed)
    return {ChildEnd::TimedOut, 0,
            ("did not end within " + Twine(static_cast<int>(seconds)) + " s").str()};
  return endOf(status);
}

} // namespace tegula::bench

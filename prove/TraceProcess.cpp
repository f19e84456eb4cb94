//===- TraceProcess.cpp - A Python that takes functions apart -------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "prove/EvaluateImpl.h"
#include "prove/Reference.h"
#include "prove/TraceScript.h"
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace llvm;
using namespace tegula::prove;

std::unique_ptr<TraceProcess> TraceProcess::start(const std::string &python, std::string &error) {
  int toChild[2], fromChild[2];
  if (pipe2(toChild, O_CLOEXEC) || pipe2(fromChild, O_CLOEXEC)) {
    error = std::string("cannot make a pipe: ") + strerror(errno);
    return nullptr;
  }
  std::string script(traceScript);
  const char *arguments[] = {python.c_str(), "-c", script.c_str(), nullptr};
  int child = fork();
  if (child == 0) {
    dup2(toChild[0], STDIN_FILENO);
    dup2(fromChild[1], STDOUT_FILENO);
    execvp(arguments[0], const_cast<char *const *>(arguments));
    _exit(127);
  }
  close(toChild[0]);
  close(fromChild[1]);
  if (child < 0) {
    error = std::string("cannot start a process: ") + strerror(errno);
    close(toChild[1]);
    close(fromChild[0]);
    return nullptr;
  }
  signal(SIGPIPE, SIG_IGN); // a child that has ended is an error of its write
  return std::unique_ptr<TraceProcess>(new TraceProcess(child, toChild[1], fromChild[0]));
}

std::unique_ptr<TraceProcess> TraceProcess::attach(int in, int out) {
  signal(SIGPIPE, SIG_IGN);
  return std::unique_ptr<TraceProcess>(new TraceProcess(/*pid=*/-1, in, out));
}

TraceProcess::~TraceProcess() {
  close(in);
  close(out);
  if (pid > 0)
    waitpid(pid, nullptr, 0);
}

Expected<json::Value> TraceProcess::ask(const json::Value &question) {
  std::string text;
  raw_string_ostream(text) << question << '\n';
  auto fail = [] {
    return createStringError("the Python that runs the reference has ended; it needs PyTorch "
                             "(TEGULA_PYTHON says which Python it is)");
  };
  for (size_t written = 0; written < text.size();) {
    ssize_t count = write(in, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail();
    written += size_t(count);
  }
  size_t end;
  while ((end = rest.find('\n')) == std::string::npos) {
    char buffer[1 << 16];
    ssize_t count = read(out, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return fail();
    rest.append(buffer, size_t(count));
  }
  std::string line = rest.substr(0, end);
  rest.erase(0, end + 1);
  return json::parse(line);
}

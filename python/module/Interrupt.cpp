//===- Interrupt.cpp - Ctrl-C while the C interface runs ----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python's handler notes a signal and returns; the interpreter looks at the note once a call of C
// has returned. So a handler of our own is put around Python's when a call begins. It lets Python
// note the signal, and asks the call to stop. A thread that sleeps on a semaphore until then ends
// the process where the call does not.
//
//===----------------------------------------------------------------------===//
#include "python/module/Interrupt.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

namespace tegula::python {

static std::atomic<unsigned> serial{0}; // odd while a call runs on the main thread
static int stopNow = 0;
static std::atomic<unsigned> interrupted{0}; // the serial of the call that was asked to stop
static struct sigaction previous;            // Python's
static sem_t came;
static bool hasWatcher = false;

static void handle(int number, siginfo_t *info, void *context) {
  int saved = errno;
  if (previous.sa_flags & SA_SIGINFO)
    previous.sa_sigaction(number, info, context);
  else
    previous.sa_handler(number);
  if (unsigned now = serial.load(); now % 2) {
    __atomic_store_n(&stopNow, 1, __ATOMIC_RELAXED);
    interrupted.store(now);
    sem_post(&came);
  }
  errno = saved;
}

/// A busy machine takes seconds for the points that threads are at.
static constexpr int pausesToWait = 1000;

static void *watch(void *) {
  for (;;) {
    while (sem_wait(&came) != 0) {
    }
    unsigned call = interrupted.load();
    timespec pause = {0, 10000000};
    for (int round = 0; round < pausesToWait && serial.load() == call; ++round)
      nanosleep(&pause, nullptr);
    if (serial.load() != call)
      continue;
    static const char words[] = "tegula: what runs cannot be interrupted: the process ends\n";
    (void)!write(2, words, sizeof(words) - 1);
    signal(SIGINT, SIG_DFL);
    kill(getpid(), SIGINT);
  }
  return nullptr;
}

/// Once for a process; a forked one has no such thread.
static bool startWatcher() {
  if (hasWatcher)
    return true;
  static bool isFirst = true;
  if (isFirst)
    pthread_atfork(nullptr, nullptr, [] { hasWatcher = false; });
  isFirst = false;
  sem_init(&came, 0, 0);
  sigset_t all, before; // signals are for the threads of the program
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread;
  hasWatcher = pthread_create(&thread, nullptr, watch, nullptr) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (hasWatcher)
    pthread_detach(thread);
  return hasWatcher;
}

static bool isMainThread() {
  static thread_local pid_t of = 0, own = 0; // a forked process's main thread is another one
  pid_t process = getpid();
  if (of != process) {
    of = process;
    own = gettid();
  }
  return own == process;
}

/// Whether Ctrl-C is to raise KeyboardInterrupt.
static bool isPythonsDefault() {
  nb::module_ signals = nb::module_::import_("signal");
  return signals.attr("getsignal")(SIGINT).is(signals.attr("default_int_handler"));
}

Interruptible::Interruptible() {
  if (!isMainThread())
    return;
  struct sigaction now;
  if (sigaction(SIGINT, nullptr, &now) != 0 || now.sa_handler == SIG_DFL ||
      now.sa_handler == SIG_IGN)
    return;
  if (now.sa_sigaction != handle) {
    if (!isPythonsDefault() || !startWatcher())
      return;
    previous = now;
    struct sigaction ours = {};
    ours.sa_sigaction = handle;
    ours.sa_flags = (now.sa_flags & ~SA_RESETHAND) | SA_SIGINFO;
    ours.sa_mask = now.sa_mask;
    sigaction(SIGINT, &ours, nullptr);
  } else if (!startWatcher()) {
    return;
  }
  __atomic_store_n(&stopNow, 0, __ATOMIC_RELAXED);
  isWatched = true;
  serial.fetch_add(1);
}

Interruptible::~Interruptible() {
  if (isWatched)
    serial.fetch_add(1);
}

const int *Interruptible::stop() const { return isWatched ? &stopNow : nullptr; }

void Interruptible::raise() {
  if (PyErr_CheckSignals() != 0)
    throw nb::python_error();
}

} // namespace tegula::python

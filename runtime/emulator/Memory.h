//===- Memory.h - What emulated code may touch ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_RUNTIME_EMULATOR_MEMORY_H
#define TEGULA_RUNTIME_EMULATOR_MEMORY_H

#include "runtime/emulator/Shadow.h"
#include <map>
#include <memory>

namespace tegula {

/// What is in a buffer at first. Nobody may write to a constant.
enum class BufferContents { Undefined, Defined, Constant };

} // namespace tegula

namespace tegula::emulator {

class Block;
class Thread;

/// A buffer of device memory, or an object of a block's shared memory.
struct Region {
  std::string name;
  const char *begin = nullptr;
  uint64_t bytes = 0;
  Block *block = nullptr; // whose shared memory it is in; null: it is a buffer
  bool isReadOnly = false;
  std::unique_ptr<Shadow> shadow;
  uint64_t launch = 0; // whose accesses the shadow has
  const char *end() const { return begin + bytes; }
};

/// The memory of one run of a plan. Every access of emulated code is held against it.
class Memory {
public:
  explicit Memory(const EmulatedCode &code);
  Memory(const Memory &) = delete;
  Memory &operator=(const Memory &) = delete;
  ~Memory();

  void addGlobal(llvm::StringRef name, const void *begin, uint64_t bytes, BufferContents contents);
  /// Says that a buffer has been written by the host.
  void define(const void *begin);
  /// Takes away what begins there.
  void removeGlobal(const void *begin);
  /// From here on blocks are those of this function.
  void startLaunch(llvm::StringRef function, uint64_t dynamicSharedBytes);
  /// Shared memory for `block`, of which nothing is defined; null where there is no memory.
  char *enterBlock(Block &block);
  void leaveBlock(char *shared);

  /// Where an address is, for messages.
  std::string nameOf(const void *address) const;
  /// Ends the launch where the running thread may not do this.
  void check(Thread &thread, const void *address, uint64_t bytes, uint32_t access,
             AccessTime time = AccessTime::Now);
  /// The same of an access to a thread's own object.
  void checkLocal(Thread &thread, const void *object, uint64_t size, const void *address,
                  uint32_t access);
  /// Ends the launch where what has been written there, which the thread may read, is not yet what
  /// products read.
  void checkShown(Thread &thread, const void *address, uint64_t bytes, uint32_t access);

  /// What the clocks tell: how often they have been read in this run.
  uint64_t readClock() { return ++clock; }

private:
  Region *find(const char *address) const;
  void forgetRegions();
  void insert(Region region, BufferContents contents);
  std::string describe(const Thread &thread, const Shadow::Record &earlier) const;
  [[noreturn]] void failOutside(Thread &thread, const char *begin, uint64_t bytes,
                                const EmulatedAccess &access);
  void checkAlignment(Thread &thread, const void *address, const EmulatedAccess &access);
  uint64_t clock = 0;
  const EmulatedCode &code;
  std::map<const char *, Region> regions; // by address
  std::string function;
  uint64_t dynamicBytes = 0;
  std::vector<char *> arenas, unusedArenas;
  uint64_t arenaBytes = 0;
  uint64_t launch = 0;
  std::vector<Region *> lastOf; // by access: the region that it was in last
};

} // namespace tegula::emulator

#endif // TEGULA_RUNTIME_EMULATOR_MEMORY_H

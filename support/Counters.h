//===- Counters.h - Counters of passes --------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's own pass statistics are compiled out of release builds of LLVM; these always count.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_SUPPORT_COUNTERS_H
#define TEGULA_SUPPORT_COUNTERS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

namespace tegula {

/// Sums over all runs of all passes of a pipeline. Thread-safe.
class Counters {
public:
  void add(llvm::StringRef pass, llvm::StringRef what, uint64_t by);
  uint64_t get(llvm::StringRef pass, llvm::StringRef what) const;
  /// One line for each counter that is not 0: `tgl-fuse: 3 statements merged`.
  void print(llvm::raw_ostream &os) const;

private:
  mutable std::mutex mutex;
  std::map<std::pair<std::string, std::string>, uint64_t> counts;
};

/// What a pass with counters is, for whoever wants to see them.
class CountedBase {
public:
  virtual ~CountedBase() = default;
  std::shared_ptr<Counters> counters;
};

/// `struct FooPass : Counted<impl::FooPassBase<FooPass>>`; in it, `count("things done")`.
template <typename Base> class Counted : public Base, public CountedBase {
public:
  using Base::Base;
  void count(llvm::StringRef what, uint64_t by = 1) {
    if (counters && by)
      counters->add(this->getArgument(), what, by);
  }
};

} // namespace tegula

#endif // TEGULA_SUPPORT_COUNTERS_H

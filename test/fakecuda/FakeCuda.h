//===- FakeCuda.h - What a test asks of the driver that stands in ------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A libcuda.so.1 for machines without a device. It has one device of capability 9.0 whose memory is
// the host's, checks handles and addresses as the driver does, keeps a record of calls, and runs
// nothing: a launch leaves memory as it was. The loader finds it by its name, so what is tested is
// what ships. Other processes are given it by LD_LIBRARY_PATH and told what to do by the
// environment:
//
//   FAKE_CUDA_FAIL=cuMemAllocAsync:2:0     the call with this number (from 0; * all) of a function
//   gives an error FAKE_CUDA_MEMORY=1000000               bytes of device memory
//   FAKE_CUDA_HANG=launch                  whatever waits for the device never returns after a
//   launch FAKE_CUDA_HANG=always                  never returns FAKE_CUDA_CLOCK=blocks a launch
//   takes a microsecond, and one for each block; else nothing FAKE_CUDA_DEVICES=0,
//   FAKE_CUDA_CAPABILITY=90 FAKE_CUDA_LOG=file                     the functions called, a line
//   each, are appended
//
//   FAKE_CUDA_LAUNCHES=file         launches are appended: function, blocks, threads, parameters
//   FAKE_CUDA_QUIET=1                      keep no record, to measure what calls cost
//
// A module's image is PTX, or what test/fakecuda/ptxas.sh makes of it: a line `fake-cubin sm_90a`
// and the PTX. Only names and parameters of its entries are read.
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_TEST_FAKECUDA_FAKECUDA_H
#define TEGULA_TEST_FAKECUDA_FAKECUDA_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fakecuda {

struct Launch {
  std::string function;
  unsigned blocks, threads;
  void *stream;
  std::vector<uint64_t> parameters; // as wide as declared, the rest zero
  bool isDependent = false; // may start before what is in front of it on the stream has finished
};

struct Record {
  std::map<std::string, unsigned> calls; // by function
  std::vector<Launch> launches;
  uint64_t bytesHeld = 0, maxBytesHeld = 0;

  unsigned count(const std::string &function) const {
    auto found = calls.find(function);
    return found == calls.end() ? 0 : found->second;
  }
};

/// Of all threads, since the last reset. While isQuiet calls are counted and nothing else is kept.
Record &record();
void reset();
void beQuiet(bool quiet);
/// From now on the call of `function` after `skip` others gives `code`.
void failCall(const std::string &function, int code, unsigned skip = 0);
/// As if the stream were destroyed and a new one had its handle.
void replaceStream(void *stream);
void setCapturing(void *stream, bool capturing);

} // namespace fakecuda

#endif // TEGULA_TEST_FAKECUDA_FAKECUDA_H

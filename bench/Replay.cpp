//===- Replay.cpp - Times of calls captured in graphs -----------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Replay.h"

#include "runtime/CudaGraph.h"

using namespace llvm;

namespace tegula::bench {

Expected<TimedPair> timeReplays(ArrayRef<Launch *> sets, const Reference &reference, unsigned calls,
                                const TimingLimits &limits) {
  for (Launch *launch : sets)
    if (Error error = launch->prepare())
      return std::move(error);
  CudaDevice &device = *sets.front()->cudaDevice();
  Expected<std::unique_ptr<CudaGraph>> ours =
      CudaGraph::capture(device, [&](void *stream) -> Error {
        for (unsigned call = 0; call < calls; ++call)
          if (Error error = sets[call % sets.size()]->queue(stream))
            return error;
        return Error::success();
      });
  if (!ours)
    return ours.takeError();
  std::vector<RefValues> values;
  for (Launch *launch : sets)
    values.push_back(launch->refValues());
  std::string why;
  std::unique_ptr<Reference::Graph> theirs = reference.capture(values, calls, why);
  if (!theirs)
    return make_error<LaunchError>(LaunchError::WrongResult,
                                   "the reference cannot be captured: " + why);
  Error failure = Error::success();
  std::optional<TimedPair> pair = timeInTurns(
      [&](unsigned) -> std::optional<double> {
        Expected<double> microseconds = (*ours)->replay();
        if (microseconds)
          return *microseconds * 1e-6 / calls;
        failure = joinErrors(std::move(failure), microseconds.takeError());
        return std::nullopt;
      },
      [&](unsigned) -> std::optional<double> {
        std::optional<double> seconds = theirs->replay(why);
        if (seconds)
          return *seconds / calls;
        failure =
            joinErrors(std::move(failure), make_error<LaunchError>(LaunchError::WrongResult,
                                                                   "the reference fails: " + why));
        return std::nullopt;
      },
      limits, [] {});
  if (failure)
    return std::move(failure);
  // The last to run is ours, so that its results can be looked at.
  for (Launch *launch : sets)
    if (Error error = launch->prepare())
      return std::move(error);
  Expected<double> last = (*ours)->replay();
  if (!last)
    return last.takeError();
  return *pair;
}

} // namespace tegula::bench

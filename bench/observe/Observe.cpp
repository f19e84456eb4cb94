//===- Observe.cpp - What print and assert of a program saw ---------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/observe/Observe.h"

using namespace llvm;

namespace tegula::bench {

char FailedAssertion::ID;

Error tellObservations(Launch &launch, unsigned points, raw_ostream &os) {
  Expected<Observed> observed = launch.observed();
  if (!observed)
    return observed.takeError();
  os << observed->lines(points);
  os.flush();
  if (std::optional<std::string> failure = observed->failure())
    return make_error<FailedAssertion>(std::move(*failure));
  return Error::success();
}

} // namespace tegula::bench

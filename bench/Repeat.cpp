//===- Repeat.cpp - The same bits, run after run ----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/Repeat.h"

#include "target/TargetInfo.h"
#include <cstring>

using namespace llvm;

namespace tegula::bench {

/// A block has a multiprocessor's shared memory to itself. It fills it and waits for up to 2^15
/// clocks, about 18 us.
static constexpr char fillText[] = R"(
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 all[];
.visible .entry fill(.param .u32 bytes, .param .u32 turn)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %c<3>;
  ld.param.u32 %r0, [bytes];
  ld.param.u32 %r1, [turn];
  mov.u32 %r2, %tid.x;
  shl.b32 %r2, %r2, 4;
  mov.u32 %r3, all;
  mov.u32 %r4, -1;
fill:
  setp.ge.u32 %p, %r2, %r0;
  @%p bra filled;
  add.u32 %r5, %r3, %r2;
  st.volatile.shared.v4.u32 [%r5], {%r4, %r4, %r4, %r4};
  add.u32 %r2, %r2, 16384;
  bra fill;
filled:
  mov.u32 %r6, %smid;
  mad.lo.u32 %r6, %r6, 0x9E3779B1, %r1;
  shr.u32 %r7, %r6, 15;
  xor.b32 %r6, %r6, %r7;
  mul.lo.u32 %r6, %r6, 0x2C1B3C6D;
  shr.u32 %r6, %r6, 17;
  cvt.u64.u32 %c0, %r6;
  mov.u64 %c1, %clock64;
  add.u64 %c1, %c1, %c0;
wait:
  mov.u64 %c2, %clock64;
  setp.lt.u64 %p, %c2, %c1;
  @%p bra wait;
  ret;
}
)";
static constexpr unsigned fillThreads = 1024;

namespace {
/// A stream beside which the launch runs: it waits for nothing of it but multiprocessors.
class SharedMemoryFill {
public:
  static Expected<std::unique_ptr<SharedMemoryFill>> make(CudaDevice &device) {
    std::unique_ptr<SharedMemoryFill> made(new SharedMemoryFill(device));
    auto module = device.load(ArrayRef(fillText, sizeof(fillText)));
    if (!module)
      return module.takeError();
    made->module = std::move(*module);
    Expected<void *> function = made->module->find("fill");
    if (!function)
      return function.takeError();
    made->function = *function;
    if (Error error = made->module->allowSharedBytes(*function, made->bytes))
      return std::move(error);
    constexpr unsigned nonBlocking = 1; // CU_STREAM_NON_BLOCKING
    for (void **stream : {&made->own, &made->other})
      if (Error error =
              checkCuda(CudaDriver::get().streamCreate(stream, nonBlocking), "cuStreamCreate"))
        return std::move(error);
    return std::move(made);
  }

  ~SharedMemoryFill() {
    for (void *stream : {own, other})
      if (stream && !device.enter())
        CudaDriver::get().streamDestroy(stream);
  }

  /// Queues it; another `turn` lets multiprocessors become free at other times.
  Error queue(uint32_t turn) {
    turn *= 0x9E3779B9;
    void *arguments[] = {&bytes, &turn};
    return checkCuda(CudaDriver::get().launchKernel(function, device.info().multiprocessors, 1, 1,
                                                    fillThreads, 1, 1, bytes, own, arguments,
                                                    nullptr),
                     "cuLaunchKernel");
  }
  void *streamBeside() const { return other; }
  Error wait() {
    if (Error error = device.synchronize(own))
      return error;
    return device.synchronize(other);
  }

private:
  explicit SharedMemoryFill(CudaDevice &device)
      : device(device),
        bytes(TargetInfo::gpu(std::max(80, 10 * device.info().major + device.info().minor), false)
                  .sharedBytes) {}
  CudaDevice &device;
  std::shared_ptr<CudaModule> module;
  void *function = nullptr, *own = nullptr, *other = nullptr;
  uint32_t bytes;
};
} // namespace

std::optional<size_t> findOther(ArrayRef<Tensor> first, ArrayRef<Tensor> second) {
  for (size_t number = 0; number < first.size(); ++number)
    if (std::memcmp(first[number].data(), second[number].data(), first[number].bytes()))
      return number;
  return std::nullopt;
}

Expected<std::optional<OtherBits>> findOtherBits(Launch &launch, ArrayRef<unsigned> arguments,
                                                 ArrayRef<Tensor> expected, unsigned runs,
                                                 LaunchWatch *watch) {
  std::unique_ptr<SharedMemoryFill> fill;
  if (CudaDevice *device = launch.cudaDevice()) {
    Expected<std::unique_ptr<SharedMemoryFill>> made = SharedMemoryFill::make(*device);
    if (!made)
      return made.takeError();
    fill = std::move(*made);
  }
  auto runOnce = [&](unsigned number) -> Error {
    if (Error error = launch.prepare())
      return error;
    if (!fill) {
      launch.setOrder(number);
      return launch.run().takeError();
    }
    if (Error error = fill->queue(number))
      return error;
    if (Error error = launch.queue(fill->streamBeside()))
      return error;
    return fill->wait();
  };
  for (unsigned number = 1; number <= runs; ++number) {
    if (watch)
      watch->begin({launch.kernel().name});
    if (Error error = runOnce(number))
      return std::move(error);
    if (watch)
      watch->end();
    Expected<std::vector<Tensor>> results = launch.read(arguments);
    if (!results)
      return results.takeError();
    if (std::optional<size_t> other = findOther(expected, *results))
      return OtherBits{number, *other};
  }
  return std::nullopt;
}

} // namespace tegula::bench

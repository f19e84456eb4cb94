//===- CudaGraph.cpp - Work captured once and launched as one ----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "runtime/CudaGraph.h"

using namespace llvm;
using namespace tegula;

// CUstreamCaptureMode and CUstream_flags, cuda.h.
static constexpr int captureRelaxed = 2; // `work` may allocate, which is no part of the graph
static constexpr unsigned streamNonBlocking = 1;

Expected<std::unique_ptr<CudaGraph>> CudaGraph::capture(CudaDevice &device,
                                                        function_ref<Error(void *)> work) {
  const CudaDriver &driver = CudaDriver::get();
  if (!driver.hasGraphs())
    return make_error<MissingDeviceError>("the CUDA driver is too old for graphs");
  if (Error error = device.enter())
    return std::move(error);
  std::unique_ptr<CudaGraph> made(new CudaGraph(device));
  if (Error error =
          checkCuda(driver.streamCreate(&made->stream, streamNonBlocking), "cuStreamCreate"))
    return std::move(error);
  if (Error error = checkCuda(driver.streamBeginCapture(made->stream, captureRelaxed),
                              "cuStreamBeginCapture"))
    return std::move(error);
  Error failed = work(made->stream);
  void *graph = nullptr;
  int ended = driver.streamEndCapture(made->stream, &graph);
  if (!failed && !ended)
    failed = checkCuda(driver.graphInstantiate(&made->executable, graph, 0), "cuGraphInstantiate");
  else if (!failed)
    failed = checkCuda(ended, "cuStreamEndCapture");
  if (graph)
    driver.graphDestroy(graph);
  if (failed)
    return std::move(failed);
  return std::move(made);
}

CudaGraph::~CudaGraph() {
  if (device.enter())
    return;
  if (executable)
    CudaDriver::get().graphExecDestroy(executable);
  if (stream)
    CudaDriver::get().streamDestroy(stream);
}

Expected<double> CudaGraph::replay() {
  return device.time(
      [&] { return checkCuda(CudaDriver::get().graphLaunch(executable, stream), "cuGraphLaunch"); },
      stream);
}

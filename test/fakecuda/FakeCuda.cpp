//===- FakeCuda.cpp - A CUDA driver without a device -------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "FakeCuda.h"
#include "FakeModule.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <sstream>
#include <thread>
#include <unistd.h>

using namespace fakecuda;

namespace {
// CUresult, cuda.h.
enum : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  NotFound = 500,
  StreamCaptureUnsupported = 900
};

struct Event {
  std::chrono::steady_clock::time_point recorded;
  double work = 0; // of the device so far, microseconds
};

std::string environment(const char *name, const char *otherwise = "") {
  const char *value = getenv(name);
  return value ? value : otherwise;
}

struct Graph {
  std::vector<Launch> launches;
};

struct Failure {
  std::string function; // "*": any
  int code;
  long skip; // calls that pass before it; negative: over
  bool isAlways;
};

struct State {
  std::recursive_mutex mutex;
  Record record;
  std::vector<Failure> failures;
  std::map<uint64_t, size_t> allocations;
  std::set<void *> capturing;
  std::map<void *, std::vector<Launch>> captured; // by stream, while it is captured
  std::map<void *, unsigned long long> streamIds;
  unsigned long long lastStreamId = 0;
  std::set<Module *> modules;
  uint64_t memoryBytes = 1ull << 34;
  int devices = 1, capability = 90;
  bool hangs = false, launched = false, countsBlocks = false;
  bool forbidsAllocation = false; // a stream is being captured, and its mode says so
  double work = 0;                // of the device so far, microseconds
  std::string log, launchLog;

  State() {
    if (std::string text = environment("FAKE_CUDA_MEMORY"); !text.empty())
      memoryBytes = std::stoull(text);
    devices = std::stoi(environment("FAKE_CUDA_DEVICES", "1"));
    capability = std::stoi(environment("FAKE_CUDA_CAPABILITY", "90"));
    hangs = !environment("FAKE_CUDA_HANG").empty();
    launched = environment("FAKE_CUDA_HANG") == "always";
    log = environment("FAKE_CUDA_LOG");
    launchLog = environment("FAKE_CUDA_LAUNCHES");
    countsBlocks = environment("FAKE_CUDA_CLOCK") == "blocks";
    std::istringstream list(environment("FAKE_CUDA_FAIL"));
    for (std::string one; std::getline(list, one, ',');) {
      size_t first = one.find(':'), second = one.find(':', first + 1);
      std::string skip = one.substr(second + 1);
      failures.push_back({one.substr(0, first), std::stoi(one.substr(first + 1)),
                          skip == "*" ? 0 : std::stol(skip), skip == "*"});
    }
  }
  void start(Launch launch) {
    work += 1 + launch.blocks;
    if (!launchLog.empty())
      if (FILE *file = fopen(launchLog.c_str(), "a")) {
        fprintf(file, "%s %u %u", launch.function.c_str(), launch.blocks, launch.threads);
        for (uint64_t parameter : launch.parameters)
          fprintf(file, " %llu", static_cast<unsigned long long>(parameter));
        fprintf(file, "\n");
        fclose(file);
      }
    launched = true;
    record.launches.push_back(std::move(launch));
  }
  static State &get() {
    static State *state = new State(); // outlives whatever frees memory at exit
    return *state;
  }
};

std::atomic<bool> quiet = !environment("FAKE_CUDA_QUIET").empty();
std::atomic<uint64_t> quietCalls = 0;
int contextHandle = 0; // its address is the one context
thread_local std::vector<void *> contexts = {nullptr};

/// Counts a call; the code that it shall fail with, or 0.
int enter(const char *function) {
  if (quiet) {
    quietCalls.fetch_add(1, std::memory_order_relaxed);
    return Success;
  }
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  ++state.record.calls[function];
  if (!state.log.empty())
    if (FILE *file = fopen(state.log.c_str(), "a")) {
      fprintf(file, "%s\n", function);
      fclose(file);
    }
  for (Failure &failure : state.failures) {
    if (failure.function != "*" && failure.function != function)
      continue;
    if (failure.isAlways || failure.skip-- == 0)
      return failure.code;
  }
  return Success;
}

int needContext() { return contexts.back() ? Success : InvalidContext; }

int allocate(uint64_t *address, size_t bytes) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  if (!bytes)
    return InvalidValue;
  if (state.record.bytesHeld + bytes > state.memoryBytes)
    return OutOfMemory;
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory)
    return OutOfMemory;
  memset(memory, 0xa5, bytes); // whoever reads what was not written shall notice
  *address = reinterpret_cast<uint64_t>(memory);
  state.allocations[*address] = bytes;
  state.record.bytesHeld += bytes;
  state.record.maxBytesHeld = std::max(state.record.maxBytesHeld, state.record.bytesHeld);
  return Success;
}

int release(uint64_t address) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  auto found = state.allocations.find(address);
  if (found == state.allocations.end())
    return InvalidValue;
  state.record.bytesHeld -= found->second;
  state.allocations.erase(found);
  free(reinterpret_cast<void *>(address));
  return Success;
}

/// Whether [address, address + bytes) lies in one allocation.
bool isHeld(uint64_t address, size_t bytes) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  auto after = state.allocations.upper_bound(address);
  if (after == state.allocations.begin())
    return false;
  --after;
  return address - after->first <= after->second &&
         bytes <= after->second - (address - after->first);
}

void waitForWork() {
  State &state = State::get();
  bool hangs;
  {
    std::lock_guard<std::recursive_mutex> lock(state.mutex);
    hangs = state.hangs && state.launched;
  }
  while (hangs)
    std::this_thread::sleep_for(std::chrono::seconds(1));
}

int launch(void *handle, unsigned blocks, unsigned threads, void *stream, void **parameters,
           bool isDependent) {
  if (quiet)
    return Success;
  if (int code = needContext())
    return code;
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  auto *function = static_cast<Function *>(handle);
  if (!function || !blocks || !threads || threads > 1024)
    return InvalidValue;
  Launch made{function->name, blocks, threads, stream, {}, isDependent};
  for (size_t index = 0; index < function->parameterBytes.size(); ++index) {
    uint64_t value = 0;
    memcpy(&value, parameters[index], std::min<size_t>(8, function->parameterBytes[index]));
    made.parameters.push_back(value);
  }
  if (auto capture = state.captured.find(stream); capture != state.captured.end())
    capture->second.push_back(std::move(made));
  else
    state.start(std::move(made));
  return Success;
}
} // namespace

//===----------------------------------------------------------------------===//
// What tests ask
//===----------------------------------------------------------------------===//

namespace fakecuda {
Record &record() { return State::get().record; }

void reset() {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  uint64_t held = state.record.bytesHeld;
  state.record = Record();
  state.record.bytesHeld = state.record.maxBytesHeld = held;
  state.failures.clear();
}

void beQuiet(bool now) { quiet = now; }

void failCall(const std::string &function, int code, unsigned skip) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  state.failures.push_back({function, code, long(skip), false});
}

void replaceStream(void *stream) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  state.streamIds[stream] = ++state.lastStreamId;
}

void setCapturing(void *stream, bool capturing) {
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  capturing ? void(state.capturing.insert(stream)) : void(state.capturing.erase(stream));
}
} // namespace fakecuda

//===----------------------------------------------------------------------===//
// The driver's interface (cuda.h of CUDA 12 and 13), as far as it is used
//===----------------------------------------------------------------------===//

#define ENTER()                                                                                    \
  if (int code = enter(__func__))                                                                  \
  return code

extern "C" {
int cuInit(unsigned) {
  ENTER();
  return Success;
}
int cuDriverGetVersion(int *version) {
  ENTER();
  *version = 13000;
  return Success;
}
int cuDeviceGetCount(int *count) {
  ENTER();
  *count = State::get().devices;
  return Success;
}
int cuDeviceGet(int *device, int ordinal) {
  ENTER();
  *device = ordinal;
  return ordinal < State::get().devices ? Success : 101;
}
int cuDeviceGetName(char *name, int bytes, int) {
  ENTER();
  snprintf(name, bytes, "Fake device");
  return Success;
}
int cuDeviceTotalMem_v2(size_t *bytes, int) {
  ENTER();
  *bytes = State::get().memoryBytes;
  return Success;
}
int cuDeviceGetAttribute(int *value, int attribute, int) {
  ENTER();
  // A small second-level cache: what times kernels empties it before each of hundreds of calls.
  static const std::map<int, int> values = {{16, 132}, {38, 1 << 20}, {39, 2048}};
  if (attribute == 75 || attribute == 76) {
    int capability = State::get().capability;
    *value = attribute == 75 ? capability / 10 : capability % 10;
    return Success;
  }
  auto found = values.find(attribute);
  if (found == values.end())
    return InvalidValue;
  *value = found->second;
  return Success;
}
int cuDevicePrimaryCtxRetain(void **context, int) {
  ENTER();
  *context = &contextHandle;
  return Success;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  ENTER();
  return Success;
}
int cuCtxGetCurrent(void **context) {
  ENTER();
  *context = contexts.back();
  return Success;
}
int cuCtxSetCurrent(void *context) {
  ENTER();
  contexts.back() = context;
  return Success;
}
int cuCtxPushCurrent_v2(void *context) {
  ENTER();
  contexts.push_back(context);
  return Success;
}
int cuCtxPopCurrent_v2(void **context) {
  ENTER();
  if (contexts.size() < 2)
    return InvalidContext;
  *context = contexts.back();
  contexts.pop_back();
  return Success;
}
int cuGetErrorName(int code, const char **name) {
  static const std::map<int, const char *> names = {
      {InvalidValue, "CUDA_ERROR_INVALID_VALUE"},
      {OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
      {InvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
      {InvalidContext, "CUDA_ERROR_INVALID_CONTEXT"},
      {NoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  auto found = names.find(code);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? InvalidValue : Success;
}
int cuGetErrorString(int code, const char **text) {
  *text = code == OutOfMemory ? "out of memory" : nullptr;
  return Success;
}
int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  ENTER();
  if (int code = needContext())
    return code;
  if (State::get().forbidsAllocation)
    return StreamCaptureUnsupported;
  return allocate(address, bytes);
}
int cuMemFree_v2(uint64_t address) {
  ENTER();
  return release(address);
}
int cuMemAllocAsync(uint64_t *address, size_t bytes, void *) {
  ENTER();
  if (int code = needContext())
    return code;
  return allocate(address, bytes);
}
int cuMemFreeAsync(uint64_t address, void *) {
  ENTER();
  return release(address);
}
int cuDeviceGetDefaultMemPool(void **pool, int) {
  ENTER();
  static char thePool;
  *pool = &thePool;
  return 0;
}
int cuMemPoolSetAttribute(void *pool, int, void *) {
  ENTER();
  return pool ? 0 : 1;
}
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes) {
  ENTER();
  if (!isHeld(to, bytes))
    return InvalidValue;
  memcpy(reinterpret_cast<void *>(to), from, bytes);
  return Success;
}
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes) {
  ENTER();
  waitForWork();
  if (!isHeld(from, bytes))
    return InvalidValue;
  memcpy(to, reinterpret_cast<void *>(from), bytes);
  return Success;
}
int cuMemsetD8Async(uint64_t address, unsigned char value, size_t bytes, void *) {
  ENTER();
  if (!isHeld(address, bytes))
    return InvalidValue;
  memset(reinterpret_cast<void *>(address), value, bytes);
  return Success;
}
int cuStreamSynchronize(void *) {
  ENTER();
  waitForWork();
  return Success;
}
int cuStreamIsCapturing(void *stream, int *status) {
  ENTER();
  if (quiet) {
    *status = 0;
    return Success;
  }
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  *status = state.capturing.count(stream);
  return Success;
}
int cuStreamCreate(void **stream, unsigned) {
  ENTER();
  *stream = new char;
  return Success;
}
int cuStreamDestroy_v2(void *stream) {
  ENTER();
  delete static_cast<char *>(stream);
  return Success;
}
int cuStreamBeginCapture_v2(void *stream, int mode) {
  ENTER();
  constexpr int relaxed = 2;
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  bool isNew = state.captured.try_emplace(stream).second;
  state.forbidsAllocation = mode != relaxed;
  state.capturing.insert(stream);
  return isNew ? Success : InvalidValue;
}
int cuStreamEndCapture(void *stream, void **graph) {
  ENTER();
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  auto found = state.captured.find(stream);
  if (found == state.captured.end())
    return InvalidValue;
  state.capturing.erase(stream);
  state.forbidsAllocation = false;
  *graph = new Graph{std::move(found->second)};
  state.captured.erase(found);
  return Success;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long) {
  ENTER();
  *executable = new Graph(*static_cast<Graph *>(graph));
  return Success;
}
int cuGraphLaunch(void *executable, void *stream) {
  ENTER();
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  for (Launch launch : static_cast<Graph *>(executable)->launches) {
    launch.stream = stream;
    state.start(std::move(launch));
  }
  return Success;
}
int cuGraphExecDestroy(void *executable) {
  ENTER();
  delete static_cast<Graph *>(executable);
  return Success;
}
int cuGraphDestroy(void *graph) {
  ENTER();
  delete static_cast<Graph *>(graph);
  return Success;
}
int cuStreamGetId(void *stream, unsigned long long *id) {
  ENTER();
  if (quiet) {
    *id = 1;
    return Success;
  }
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  auto [found, isNew] = state.streamIds.try_emplace(stream, state.lastStreamId + 1);
  state.lastStreamId += isNew;
  *id = found->second;
  return Success;
}
int cuEventCreate(void **event, unsigned) {
  ENTER();
  *event = new Event();
  return Success;
}
int cuEventRecord(void *event, void *) {
  ENTER();
  static_cast<Event *>(event)->recorded = std::chrono::steady_clock::now();
  static_cast<Event *>(event)->work = State::get().work;
  return Success;
}
int cuEventSynchronize(void *) {
  ENTER();
  waitForWork();
  return Success;
}
int cuEventElapsedTime(float *milliseconds, void *start, void *end) {
  ENTER();
  if (State::get().countsBlocks) {
    *milliseconds = (static_cast<Event *>(end)->work - static_cast<Event *>(start)->work) / 1000;
    return Success;
  }
  *milliseconds = std::chrono::duration<float, std::milli>(static_cast<Event *>(end)->recorded -
                                                           static_cast<Event *>(start)->recorded)
                      .count();
  return Success;
}
int cuEventDestroy_v2(void *event) {
  ENTER();
  delete static_cast<Event *>(event);
  return Success;
}
int cuModuleLoadData(void **module, const void *image) {
  ENTER();
  if (int code = needContext())
    return code;
  std::string text = static_cast<const char *>(image), mark = "fake-cubin ";
  if (text.rfind(mark, 0) == 0) {
    std::string arch = "sm_" + std::to_string(State::get().capability);
    if (text.compare(mark.size(), arch.size(), arch) != 0)
      return NoBinaryForGpu;
  } else if (text.find(".version") == std::string::npos) {
    return InvalidImage;
  }
  auto made = std::make_unique<Module>();
  readEntries(text, *made);
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  state.modules.insert(made.get());
  *module = made.release();
  return Success;
}
int cuModuleLoadDataEx(void **module, const void *image, unsigned, int *, void **) {
  return cuModuleLoadData(module, image);
}
int cuModuleUnload(void *module) {
  ENTER();
  State &state = State::get();
  std::lock_guard<std::recursive_mutex> lock(state.mutex);
  if (!state.modules.erase(static_cast<Module *>(module)))
    return InvalidValue;
  delete static_cast<Module *>(module);
  return Success;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  ENTER();
  auto &functions = static_cast<Module *>(module)->functions;
  auto found = functions.find(name);
  if (found == functions.end())
    return NotFound;
  *function = found->second.get();
  return Success;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int threads, size_t) {
  ENTER();
  *blocks = 2048 / threads;
  return Success;
}
int cuFuncSetAttribute(void *, int, int) {
  ENTER();
  return Success;
}
int cuLaunchKernel(void *function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                   unsigned, unsigned, void *stream, void **parameters, void **) {
  ENTER();
  return launch(function, blocks, threads, stream, parameters, false);
}
struct LaunchAttribute {
  int id, padding, value[16];
};
struct LaunchConfig {
  unsigned grid[3], block[3], sharedBytes;
  void *stream;
  const LaunchAttribute *attributes;
  unsigned numAttributes;
};
int cuLaunchKernelEx(const LaunchConfig *config, void *function, void **parameters, void **) {
  ENTER();
  bool isDependent = false;
  for (unsigned index = 0; index < config->numAttributes; ++index)
    isDependent |= config->attributes[index].id == 6 && config->attributes[index].value[0];
  return launch(function, config->grid[0], config->block[0], config->stream, parameters,
                isDependent);
}
} // extern "C"

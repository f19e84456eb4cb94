//===- Assemble.cpp - PTX to cubin ------------------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "codegen/ptx/Assemble.h"

#include "support/DiskCache.h"
#include "support/Workers.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include <dlfcn.h>
#include <mutex>
#include <unistd.h>

using namespace llvm;
using namespace tegula;

char MissingToolError::ID = 0;

static Error fail(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// nvJitLink
//===----------------------------------------------------------------------===//

namespace {
/// The part of nvJitLink's C interface that is used (nvJitLink.h of CUDA 12 and 13): every function
/// returns 0 on success.
struct NvJitLink {
  using Handle = void *;
  int (*create)(Handle *, uint32_t numOptions, const char **options);
  int (*destroy)(Handle *);
  int (*addData)(Handle, int inputType, const void *data, size_t bytes, const char *name);
  int (*complete)(Handle);
  int (*cubinSize)(Handle, size_t *);
  int (*cubin)(Handle, void *);
  int (*errorLogSize)(Handle, size_t *);
  int (*errorLog)(Handle, char *);
  int (*infoLogSize)(Handle, size_t *);
  int (*infoLog)(Handle, char *);
  int (*version)(unsigned *, unsigned *);

  static constexpr int inputPtx = 2; // NVJITLINK_INPUT_PTX
  bool loaded = false;

  NvJitLink() {
    void *library = open();
    if (!library)
      return;
    loaded = true;
    bind(library, create, "nvJitLinkCreate");
    bind(library, destroy, "nvJitLinkDestroy");
    bind(library, addData, "nvJitLinkAddData");
    bind(library, complete, "nvJitLinkComplete");
    bind(library, cubinSize, "nvJitLinkGetLinkedCubinSize");
    bind(library, cubin, "nvJitLinkGetLinkedCubin");
    bind(library, errorLogSize, "nvJitLinkGetErrorLogSize");
    bind(library, errorLog, "nvJitLinkGetErrorLog");
    bind(library, infoLogSize, "nvJitLinkGetInfoLogSize");
    bind(library, infoLog, "nvJitLinkGetInfoLog");
    bind(library, version, "nvJitLinkVersion");
  }

private:
  static void *open() {
    SmallVector<std::string> candidates;
    if (std::optional<std::string> path = sys::Process::GetEnv("TEGULA_NVJITLINK"))
      candidates.push_back(*path);
    SmallVector<std::string> folders = {""};
    if (std::optional<std::string> home = sys::Process::GetEnv("CUDA_HOME"))
      folders.append({*home + "/lib64/", *home + "/lib/"});
    folders.append({"/usr/local/cuda/lib64/", "/usr/local/cuda/lib/"});
    for (StringRef folder : folders)
      for (StringRef name : {"libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"})
        candidates.push_back((folder + name).str());
    for (const std::string &candidate : candidates)
      if (void *library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
    return nullptr;
  }

  template <typename Function> void bind(void *library, Function &function, const char *name) {
    function = reinterpret_cast<Function>(dlsym(library, name));
    loaded &= function != nullptr;
  }
};
} // namespace

static std::string readLog(NvJitLink::Handle handle, int (*size)(NvJitLink::Handle, size_t *),
                           int (*read)(NvJitLink::Handle, char *)) {
  size_t bytes = 0;
  if (size(handle, &bytes) || bytes <= 1)
    return {};
  std::string log(bytes, '\0');
  if (read(handle, log.data()))
    return {};
  log.resize(strlen(log.c_str())); // the size counts the closing NUL
  return log;
}

/// Loaded once, thread-safe, never unloaded.
static const NvJitLink &nvJitLink() {
  static const NvJitLink library;
  return library;
}

static std::string nvJitLinkVersion() {
  unsigned major = 0, minor = 0;
  nvJitLink().version(&major, &minor);
  return ("nvjitlink " + Twine(major) + "." + Twine(minor)).str();
}

/// Whether the text tells lines of the program, which the cubin is then to tell too.
static bool hasLines(StringRef ptx) { return ptx.contains("\n\t.loc\t"); }

/// Threads that have something to do: functions are optimised apart from each other, with the same
/// code as by one thread.
static unsigned threadsFor(StringRef ptx) {
  unsigned functions = std::max<size_t>(ptx.count(".entry "), 1);
  return std::min(functions, hardware_concurrency().compute_thread_count());
}

static Expected<Cubin> assembleInProcess(StringRef ptx, StringRef arch) {
  const NvJitLink &library = nvJitLink();
  if (!library.loaded)
    return make_error<MissingToolError>(
        "libnvJitLink was not found; set TEGULA_NVJITLINK or install CUDA 12 or 13");
  std::string archOption = ("-arch=" + arch).str();
  std::string threadsOption = ("-split-compile=" + Twine(threadsFor(ptx))).str();
  SmallVector<const char *> options = {archOption.c_str(), "-O3", "-verbose"};
  if (hasLines(ptx))
    options.push_back("-lineinfo");
  options.push_back(threadsOption.c_str());
  NvJitLink::Handle handle = nullptr;
  int refused = library.create(&handle, options.size(), options.data());
  if (refused) { // maybe one that does not know the last
    options.pop_back();
    refused = library.create(&handle, options.size(), options.data());
  }
  if (int code = refused)
    return fail("nvJitLink refused the target " + arch + " (result " + Twine(code) + ")");
  llvm::scope_exit cleanup([&] { library.destroy(&handle); });
  std::string text = ptx.str(); // the terminating NUL counts as part of PTX
  int code = library.addData(handle, NvJitLink::inputPtx, text.c_str(), text.size() + 1, "tegula");
  if (!code)
    code = library.complete(handle);
  if (code)
    return fail("nvJitLink (result " + Twine(code) +
                "): " + readLog(handle, library.errorLogSize, library.errorLog));
  Cubin result;
  size_t bytes = 0;
  if (library.cubinSize(handle, &bytes))
    return fail("nvJitLink gave no cubin");
  result.image.resize(bytes);
  if (library.cubin(handle, result.image.data()))
    return fail("nvJitLink gave no cubin");
  result.log = readLog(handle, library.infoLogSize, library.infoLog);
  result.assembler = nvJitLinkVersion();
  return result;
}

//===----------------------------------------------------------------------===//
// ptxas
//===----------------------------------------------------------------------===//

static std::string findPtxas() {
  std::optional<std::string> path = sys::Process::GetEnv("TEGULA_PTXAS");
  return path ? *path : findCudaTool("ptxas");
}

std::string tegula::findCudaTool(StringRef name) {
  SmallVector<std::string> folders;
  if (std::optional<std::string> ptxas = sys::Process::GetEnv("TEGULA_PTXAS"))
    folders.push_back(sys::path::parent_path(*ptxas).str());
  if (std::optional<std::string> home = sys::Process::GetEnv("CUDA_HOME"))
    folders.push_back(*home + "/bin");
  for (StringRef folder : folders)
    if (std::string path = (folder + "/" + name).str(); sys::fs::can_execute(path))
      return path;
  if (ErrorOr<std::string> path = sys::findProgramByName(name))
    return *path;
  std::string usual = ("/usr/local/cuda/bin/" + name).str();
  return sys::fs::can_execute(usual) ? usual : std::string();
}

static std::string readAll(StringRef path) {
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

/// `Cuda compilation tools, release 13.0, V13.0.88` → `V13.0.88`; asked once per process.
static std::string ptxasVersion(StringRef ptxas) {
  static std::once_flag once;
  static std::string version = "unknown";
  std::call_once(once, [&] {
    SmallString<128> out;
    if (sys::fs::createTemporaryFile("tegula-ptxas", "txt", out))
      return;
    FileRemover remover(out);
    std::optional<StringRef> redirects[] = {StringRef(), StringRef(out), StringRef()};
    if (sys::ExecuteAndWait(ptxas, {ptxas, "--version"}, std::nullopt,
                            redirects)) // limits are one alarm for all threads
      return;
    std::string text = readAll(out);
    size_t begin = StringRef(text).find(", V");
    if (begin != StringRef::npos)
      version = StringRef(text).substr(begin + 2).take_until(isSpace).str();
  });
  return version;
}

/// Where nothing is said of memory ptxas gets huge pages, and few calls for them: a tile of a
/// product takes 27 MB, and 7,000 page faults are a tenth of its time. Names that a C library does
/// not know it ignores.
static constexpr const char *tunablesName = "GLIBC_TUNABLES";
static constexpr const char *tunables =
    "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.top_pad=67108864:"
    "glibc.malloc.mmap_threshold=134217728";

static SmallVector<StringRef> environmentOfPtxas() {
  SmallVector<StringRef> variables;
  for (char **variable = environ; *variable; ++variable)
    variables.push_back(*variable);
  if (!sys::Process::GetEnv(tunablesName))
    variables.push_back(tunables);
  return variables;
}

static Expected<Cubin> assembleByCommand(StringRef ptx, StringRef arch) {
  std::string ptxas = findPtxas();
  if (ptxas.empty())
    return make_error<MissingToolError>(
        "ptxas was not found; set TEGULA_PTXAS or CUDA_HOME, or put ptxas on the path");
  if (!sys::fs::can_execute(ptxas))
    return make_error<MissingToolError>("'" + ptxas + "' is no program that can be run");
  SmallString<128> input, output, log;
  int descriptor;
  if (std::error_code error = sys::fs::createTemporaryFile("tegula", "ptx", descriptor, input))
    return make_error<MissingToolError>("cannot create a temporary file: " + error.message());
  FileRemover removeInput(input);
  {
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream << ptx;
    stream.flush();
    if (stream.has_error()) {
      std::error_code error = stream.error();
      stream.clear_error();
      return make_error<MissingToolError>(("cannot write " + input + ": " + error.message()).str());
    }
  }
  if (std::error_code error = sys::fs::createTemporaryFile("tegula", "cubin", output))
    return make_error<MissingToolError>("cannot create a temporary file: " + error.message());
  FileRemover removeOutput(output);
  if (std::error_code error = sys::fs::createTemporaryFile("tegula", "log", log))
    return make_error<MissingToolError>("cannot create a temporary file: " + error.message());
  FileRemover removeLog(log);

  std::string archOption = ("-arch=" + arch).str();
  SmallVector<StringRef> arguments = {ptxas, archOption, "-O3", "-v", input, "-o", output};
  if (hasLines(ptx))
    arguments.push_back("-lineinfo");
  unsigned threads = threadsFor(ptx);
  std::string threadsOption = ("--split-compile=" + Twine(threads)).str(), message;
  SmallVector<StringRef> environment = environmentOfPtxas();
  auto run = [&] {
    std::optional<StringRef> redirects[] = {StringRef(), StringRef(log), StringRef(log)};
    return sys::ExecuteAndWait(ptxas, arguments, ArrayRef(environment), redirects,
                               /*SecondsToWait=*/300,
                               /*MemoryLimit=*/0, &message);
  };
  Workers asker([&] { ptxasVersion(ptxas); }); // another process, where they may be slow to start
  if (!asker.start(1))                         // ptxas would get no thread either, and wait for it
    threads = 1;
  if (threads > 1)
    arguments.push_back(threadsOption);
  int code = run();
  if (code && threads > 1 &&
      StringRef(readAll(log)).contains("split-compile")) { // one that does not know it
    arguments.pop_back();
    code = run();
  }
  asker.join();
  if (code)
    return fail("ptxas (exit code " + Twine(code) + "): " + message + readAll(log));
  std::string image = readAll(output);
  if (image.empty())
    return fail("ptxas wrote no cubin: " + readAll(log));
  Cubin result;
  result.image.assign(image.begin(), image.end());
  result.log = readAll(log);
  result.assembler = "ptxas " + ptxasVersion(ptxas);
  return result;
}

//===----------------------------------------------------------------------===//
// Either, and what they made before
//===----------------------------------------------------------------------===//

/// What tells one assembler from another without running it: to ask ptxas for its version takes as
/// long as to find an entry saves on a small kernel. Empty where there is none.
static std::string identityOf(Assembler which) {
  if (which == Assembler::NvJitLink)
    return nvJitLink().loaded ? nvJitLinkVersion() : "";
  std::string path = findPtxas();
  SmallString<128> real;
  sys::fs::file_status status;
  if (path.empty() || sys::fs::real_path(path, real) || sys::fs::status(real, status))
    return "";
  return ("ptxas " + real + " " + Twine(status.getSize()) + " " +
          Twine(status.getLastModificationTime().time_since_epoch().count()))
      .str();
}

/// Entries are `ASSEMBLER\nBYTES OF THE LOG\nLOG IMAGE`.
static std::string entryOf(const Cubin &cubin) {
  return (cubin.assembler + "\n" + Twine(cubin.log.size()) + "\n" + cubin.log +
          StringRef(cubin.image.data(), cubin.image.size()))
      .str();
}

static std::optional<Cubin> cubinOf(StringRef entry) {
  Cubin cubin;
  auto [assembler, rest] = entry.split('\n');
  auto [number, contents] = rest.split('\n');
  size_t bytes;
  if (number.getAsInteger(10, bytes) || bytes >= contents.size())
    return std::nullopt;
  cubin.assembler = assembler.str();
  cubin.log = contents.take_front(bytes).str();
  StringRef image = contents.drop_front(bytes);
  cubin.image.assign(image.begin(), image.end());
  return cubin;
}

Expected<Cubin> tegula::assemble(StringRef ptx, StringRef arch, Assembler which) {
  if (which == Assembler::Any) {
    which = findPtxas().empty() ? Assembler::NvJitLink : Assembler::Ptxas;
    if (which == Assembler::NvJitLink && !nvJitLink().loaded)
      return make_error<MissingToolError>(
          "no assembler was found: neither ptxas (TEGULA_PTXAS, CUDA_HOME, "
          "PATH) nor libnvJitLink (TEGULA_NVJITLINK)");
  }
  DiskCache cache = DiskCache::fromEnvironment();
  std::string identity = cache.isOff() ? "" : identityOf(which);
  // The text is all that program, schedule and compiler come to; the rest is what reads it.
  StringRef key[] = {"cubin", ptx, arch, identity};
  if (!identity.empty())
    if (std::optional<std::string> entry = cache.find(key))
      if (std::optional<Cubin> cubin = cubinOf(*entry))
        return std::move(*cubin);
  Expected<Cubin> made =
      which == Assembler::Ptxas ? assembleByCommand(ptx, arch) : assembleInProcess(ptx, arch);
  if (made && !identity.empty())
    cache.insert(key, entryOf(*made));
  return made;
}

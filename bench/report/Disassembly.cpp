//===- Disassembly.cpp - What assembler and disassembler tell of a cubin ---------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Disassembly.h"
#include "codegen/ptx/Assemble.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <optional>

using namespace llvm;

namespace tegula::report {

//===----------------------------------------------------------------------===//
// What the assembler says
//===----------------------------------------------------------------------===//

std::map<std::string, AssembledFunction> readAssemblerLog(StringRef log) {
  std::map<std::string, AssembledFunction> functions;
  AssembledFunction *current = nullptr;
  SmallVector<StringRef> lines;
  log.split(lines, '\n');
  for (StringRef line : lines) {
    SmallVector<StringRef> words;
    line.split(words, ' ', -1, /*KeepEmpty=*/false);
    if (size_t at = line.find("Function properties for "); at != StringRef::npos)
      current = &functions[line.substr(at).rsplit(' ').second.trim().str()];
    if (size_t at = line.find("Compiling entry function '"); at != StringRef::npos)
      current = &functions[line.substr(at).split('\'').second.split('\'').first.str()];
    if (!current)
      continue;
    for (size_t at = 0; at + 1 < words.size(); ++at) {
      unsigned number;
      if (words[at].getAsInteger(10, number))
        continue;
      StringRef unit = words[at + 1], of = at + 2 < words.size() ? words[at + 2] : "";
      StringRef what = at + 3 < words.size() ? words[at + 3] : "";
      if (unit.starts_with("registers"))
        current->registers = number;
      else if (unit == "bytes" && of.starts_with("smem"))
        current->sharedBytes = number;
      else if (unit == "bytes" && of == "stack")
        current->stackBytes = number;
      else if (unit == "bytes" && of == "spill")
        (what.starts_with("stores") ? current->spillStores : current->spillLoads) = number;
    }
  }
  return functions;
}

//===----------------------------------------------------------------------===//
// Lines of the program
//===----------------------------------------------------------------------===//

std::vector<CodeLine> linesOfPtx(StringRef ptx) {
  std::map<unsigned, std::string> files;
  // Directives stand at the end too, after the code that refers to them.
  SmallVector<StringRef> lines;
  ptx.rtrim('\n').split(lines, '\n');
  auto isDirective = [](StringRef line, StringRef name) { return line.ltrim().starts_with(name); };
  for (StringRef line : lines) {
    auto [number, name] =
        line.ltrim().drop_front(std::min<size_t>(line.ltrim().size(), 6)).split(' ');
    unsigned file;
    if (isDirective(line, ".file\t") && !number.trim().getAsInteger(10, file))
      files[file] = name.trim().trim('"').str();
  }
  std::vector<CodeLine> result;
  CodeLine place;
  for (StringRef line : lines) {
    if (isDirective(line, ".file\t"))
      continue;
    if (isDirective(line, ".loc\t")) {
      SmallVector<StringRef> words;
      line.ltrim().drop_front(5).split(words, ' ', -1, /*KeepEmpty=*/false);
      unsigned file;
      if (words.size() < 2 || words[0].trim(",").getAsInteger(10, file) ||
          words[1].trim(",").getAsInteger(10, place.line))
        place.line = 0;
      else
        place.file = files[file];
      continue;
    }
    bool isCode = line.starts_with("\t") && !isDirective(line, ".") && !isDirective(line, "//");
    if (line.starts_with("}"))
      place = CodeLine();
    result.push_back({line.str(), isCode ? place.file : "", isCode ? place.line : 0});
  }
  return result;
}

std::vector<CodeLine> linesOfDisassembly(StringRef text) {
  std::vector<CodeLine> result;
  CodeLine place;
  SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (StringRef line : lines) {
    StringRef trimmed = line.trim();
    if (trimmed.consume_front("//## File \"")) { // of nvdisasm: `//## File "softmax.tgl", line 3`
      auto [file, rest] = trimmed.split('"');
      place.file = file.str();
      if (!rest.consume_front(", line ") || rest.take_while(isDigit).getAsInteger(10, place.line))
        place = CodeLine();
      continue;
    }
    StringRef function = trimmed;
    if (function.consume_front("Function : ") ||
        (function.consume_front(".text.") && function.consume_back(":"))) {
      place = CodeLine();
      result.push_back({(function + ":").str(), "", 0});
    } else if (trimmed.starts_with("/*") && trimmed.size() > 2 && isHexDigit(trimmed[2])) {
      // An instruction with its address; what comes after is its encoding, which goes on in a line
      // of its own.
      result.push_back({line.split(" /* 0x").first.rtrim().str(), place.file, place.line});
    } else if (trimmed.starts_with(".L_") && trimmed.ends_with(":")) {
      result.push_back({trimmed.str(), "", 0});
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// NVIDIA's disassemblers
//===----------------------------------------------------------------------===//

static Expected<std::string> runTool(ArrayRef<StringRef> arguments) {
  SmallString<128> out, errors;
  if (std::error_code code = sys::fs::createTemporaryFile("tegula-disassembly", "txt", out))
    return createStringError(code, "cannot create a temporary file: " + code.message());
  FileRemover removeOut(out);
  if (std::error_code code = sys::fs::createTemporaryFile("tegula-disassembly", "log", errors))
    return createStringError(code, "cannot create a temporary file: " + code.message());
  FileRemover removeErrors(errors);
  std::optional<StringRef> redirects[] = {StringRef(), StringRef(out), StringRef(errors)};
  std::string message;
  auto read = [](StringRef path) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> buffer = MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  };
  if (int code = sys::ExecuteAndWait(arguments[0], arguments, std::nullopt, redirects,
                                     /*SecondsToWait=*/120,
                                     /*MemoryLimit=*/0, &message))
    return createStringError(inconvertibleErrorCode(), arguments[0] + " (exit code " + Twine(code) +
                                                           "): " + message + read(errors));
  return read(out);
}

Expected<std::string> disassemble(ArrayRef<char> cubin) {
  std::string nvdisasm = findCudaTool("nvdisasm"), cuobjdump = findCudaTool("cuobjdump");
  if (nvdisasm.empty() && cuobjdump.empty())
    return make_error<MissingToolError>(
        "no disassembler was found: neither nvdisasm nor cuobjdump (beside "
        "TEGULA_PTXAS, CUDA_HOME, PATH)");
  SmallString<128> path;
  int descriptor;
  if (std::error_code code = sys::fs::createTemporaryFile("tegula", "cubin", descriptor, path))
    return createStringError(code, "cannot create a temporary file: " + code.message());
  FileRemover removePath(path);
  {
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream.write(cubin.data(), cubin.size());
    stream.flush();
    if (stream.has_error()) {
      std::error_code code = stream.error();
      stream.clear_error();
      return createStringError(code, "cannot write " + path + ": " + code.message());
    }
  }
  if (nvdisasm.empty())
    return runTool({cuobjdump, "-sass", path});
  return runTool({nvdisasm, "-c", "-g", path}); // code alone, with lines
}

} // namespace tegula::report

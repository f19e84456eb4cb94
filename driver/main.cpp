//===- main.cpp - The `tegula` command ---------------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "driver/Commands.h"
#include "driver/Crash.h"
#include "frontend/diagnostics/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <unistd.h>

using namespace llvm;
using namespace tegula;

static const Command *const commands[] = {&checkCommand,         &compileCommand, &runCommand,
                                          &benchCommand,         &bisectCommand,  &proveCommand,
                                          &publishCommand,       &tuneCommand,    &fmtCommand,
                                          &fixCommand,           &gradCommand,    &explainCommand,
                                          &explainLayoutCommand, &passesCommand,  &grammarCommand,
                                          &promptCommand,        &mcpCommand,     &lspCommand};

static void printVersion(raw_ostream &os) {
  os << "tegula " TEGULA_VERSION " (LLVM " LLVM_VERSION_STRING ")\n";
}

static void printUsage(raw_ostream &os) {
  os << "usage: tegula COMMAND [OPTIONS] [FILE...]\n\n";
  size_t width = 0;
  for (const Command *command : commands)
    width = std::max(width, command->options.getName().size() + 2);
  for (const Command *command : commands)
    os << "  " << left_justify(command->options.getName(), width)
       << command->options.getDescription() << '\n';
  os << "\n'tegula COMMAND --help' lists the options of a command; 'tegula --version' says the "
        "version.\nExit codes: 0 fine, 1 the program is wrong, 2 the call is wrong, 3 a resource "
        "or "
        "device is missing,\n4 the result is wrong, 5 nothing was decided, 70 a mistake of the "
        "compiler.\n";
}

/// What the first argument says, before LLVM's parser with its own ideas of errors sees it.
static std::optional<ExitCode> handleFirstArgument(int argc, char **argv) {
  if (argc < 2) {
    printUsage(errs());
    return ExitWrongCall;
  }
  StringRef first = argv[1];
  if (first == "--version" || first == "-version") {
    printVersion(outs());
    return ExitSuccess;
  }
  if (first == "--help" || first == "-help" || first == "-h" || first == "help") {
    printUsage(outs());
    return ExitSuccess;
  }
  SmallVector<StringRef> names;
  for (const Command *command : commands)
    names.push_back(command->options.getName());
  if (is_contained(names, first))
    return std::nullopt;
  errs() << "tegula: there is no command '" << first << "'";
  StringRef nearest = nearestName(first, names);
  if (!nearest.empty())
    errs() << "; nearest is '" << nearest << "'";
  errs() << "\n\n";
  printUsage(errs());
  return ExitWrongCall;
}

/// The files that a command must have, which LLVM's parser no longer asks for: dispatch does, in
/// its own words.
static SmallVector<cl::Option *> takeNeededFiles(cl::SubCommand &command) {
  SmallVector<cl::Option *> needed;
  for (cl::Option *option : command.PositionalOpts) {
    cl::NumOccurrencesFlag often = option->getNumOccurrencesFlag();
    if (often != cl::Required && often != cl::OneOrMore)
      continue;
    option->setNumOccurrencesFlag(often == cl::Required ? cl::Optional : cl::ZeroOrMore);
    needed.push_back(option);
  }
  return needed;
}

static ExitCode dispatch(int argc, char **argv) {
  if (std::optional<ExitCode> code = handleFirstArgument(argc, argv))
    return *code;
  cl::SetVersionPrinter(printVersion);
  const Command &command =
      **find_if(commands, [&](const Command *one) { return one->options.getName() == argv[1]; });
  SmallVector<cl::Option *> needed = takeNeededFiles(command.options);
  if (!cl::ParseCommandLineOptions(argc, argv, "", &errs()))
    return ExitWrongCall;
  if (any_of(needed, [](cl::Option *option) { return !option->getNumOccurrences(); })) {
    errs() << "tegula: " << argv[1] << " takes a file; 'tegula " << argv[1]
           << " --help' shows how\n";
    return ExitWrongCall;
  }
  return command.run();
}

/// A standard stream that is closed would give its number to the next file that is opened, and what
/// is printed would end in that file. Opened the wrong way round, each use of it is an error as
/// before.
static void occupyClosedStreams() {
  for (int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(stream, F_GETFD) == -1)
      open("/dev/null",
           stream == STDIN_FILENO ? O_WRONLY : O_RDONLY); // takes the lowest number that is free
}

/// The exit code in the place of `code` where what was printed could not be written.
static int finishOutput(int code) {
  outs().flush();
  if (outs().has_error()) {
    errs() << "tegula: cannot write standard output: " << outs().error().message() << '\n';
    outs().clear_error();
    code = ExitMissingResource;
  }
  if (errs().has_error()) {
    errs().clear_error();
    code = code ? code : ExitMissingResource;
  }
  return code;
}

int main(int argc, char **argv) {
  occupyClosedStreams();
  installCrashHandler(argc, argv);
  signal(SIGXFSZ, SIG_IGN); // a file that may not grow is an error of its write
  outs(), errs();           // made before, so destroyed after the handler runs
  // --help ends the process in LLVM's parser.
  atexit([] {
    if (int code = finishOutput(ExitSuccess))
      _exit(code);
  });
  return finishOutput(dispatch(argc, argv));
}

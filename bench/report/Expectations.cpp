//===- Expectations.cpp - What a kernel's time is held to -----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "bench/report/Expectations.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include <cmath>

using namespace llvm;

namespace tegula::bench {

std::optional<double> expectedShare(const ast::Kernel &kernel, StringRef machine) {
  std::optional<double> ofAll, ofMachine;
  for (const ast::StmtPtr &stmt : kernel.body) {
    if (stmt->kind != ast::Stmt::Schedule)
      continue;
    for (const ast::ScheduleItem &item : stmt->schedule)
      if (item.keyword.name == "expect")
        for (const auto &[name, value] : item.settings) {
          double share =
              value->kind == ast::Expr::Float ? value->floatValue : double(value->intValue);
          if (!name)
            ofAll = share;
          else if (name->name == machine)
            ofMachine = share;
        }
  }
  return ofMachine ? ofMachine : ofAll;
}

std::string lockPath(StringRef program) {
  SmallString<128> beside(program);
  sys::path::replace_extension(beside, "lock.json");
  return beside.str().str();
}

json::Object toJson(const LockedTime &time) {
  return json::Object{{"kernel", time.kernel},   {"case", time.text},      {"device", time.device},
                      {"threads", time.threads}, {"seconds", time.median}, {"noise", time.noise}};
}

std::optional<LockedTime> lockedTime(const json::Object &object) {
  std::optional<StringRef> kernel = object.getString("kernel"), text = object.getString("case"),
                           device = object.getString("device");
  std::optional<int64_t> threads = object.getInteger("threads");
  std::optional<double> seconds = object.getNumber("seconds"), noise = object.getNumber("noise");
  if (!kernel || !text || !device || !threads || !seconds || !noise || !(*seconds > 0) ||
      !(*noise >= 0))
    return std::nullopt;
  return LockedTime{kernel->str(), text->str(), device->str(), *threads, *seconds, *noise};
}

Expected<std::vector<LockedTime>> readLock(const std::string &path) {
  std::vector<LockedTime> times;
  if (!sys::fs::exists(path))
    return times;
  auto wrong = [&](const Twine &why) {
    return createStringError("the lock file '" + path + "' " + why +
                             "; tegula bench --lock writes a new one where there is none");
  };
  auto buffer = MemoryBuffer::getFile(path);
  if (!buffer)
    return wrong("cannot be read: " + buffer.getError().message());
  Expected<json::Value> value = json::parse((*buffer)->getBuffer());
  if (!value)
    return wrong("is no JSON: " + toString(value.takeError()));
  const json::Object *object = value->getAsObject();
  const json::Array *list = object ? object->getArray("times") : nullptr;
  if (!list || object->getString("schema") != StringRef("tegula.lock") ||
      object->getInteger("version") != 1)
    return wrong("does not follow the schema tegula.lock, version 1");
  for (const json::Value &each : *list) {
    const json::Object *one = each.getAsObject();
    std::optional<LockedTime> time = one ? lockedTime(*one) : std::nullopt;
    if (!time)
      return wrong("has an entry without kernel, case, device, threads, seconds or noise");
    times.push_back(std::move(*time));
  }
  return times;
}

Error writeLock(const std::string &path, ArrayRef<LockedTime> times) {
  Expected<std::vector<LockedTime>> all = readLock(path);
  if (!all)
    return all.takeError();
  for (const LockedTime &time : times) {
    auto old = find_if(*all, [&](const LockedTime &one) { return one.isOf(time); });
    if (old == all->end())
      all->push_back(time);
    else
      *old = time;
  }
  json::Array list;
  for (const LockedTime &time : *all)
    list.push_back(toJson(time));
  json::Value file =
      json::Object{{"schema", "tegula.lock"}, {"version", 1}, {"times", std::move(list)}};
  return writeToOutput(path, [&](raw_ostream &os) {
    os << formatv("{0:2}\n", file);
    return Error::success();
  });
}

} // namespace tegula::bench

//===- TargetInfo.cpp - Targets as text -----------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "target/TargetInfo.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include <cassert>

using namespace llvm;
using namespace tegula;

TargetInfo TargetInfo::gpu(unsigned capability, bool isSpecific) {
  assert(capability >= 80 && "no strategy is for GPUs before Ampere");
  return capability < 90    ? ampere(capability)
         : capability < 100 ? hopper(capability, isSpecific)
                            : blackwell(capability);
}

static std::optional<TargetInfo> named(StringRef name) {
  if (name == "cpu")
    return TargetInfo::host();
  bool isSpecific = name.ends_with("a");
  unsigned capability;
  if (!name.consume_front("sm_") || name.rtrim("af").getAsInteger(10, capability) ||
      capability < 80)
    return std::nullopt;
  return TargetInfo::gpu(capability, isSpecific && capability == 90);
}

std::optional<TargetInfo> TargetInfo::parse(StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, ':');
  std::optional<TargetInfo> info = named(parts.front());
  if (!info)
    return std::nullopt;
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [name, value] = part.split('=');
    unsigned *number = name == "cluster-blocks"    ? &info->clusterBlocks
                       : name == "shared-bytes"    ? &info->sharedBytes
                       : name == "multiprocessors" ? &info->multiprocessors
                                                   : nullptr;
    if (name == "min-tma-macs" ? value.getAsDouble(info->minTmaMacs)
                               : number && value.getAsInteger(10, *number))
      return std::nullopt;
    if (part == "no-wgmma")
      info->hasWgmma = false;
    else if (part == "no-bulk-copies")
      info->usesBulkLoads = false;
    else if (part == "no-tma-16bit")
      info->tma16Bit = false;
    else if (part == "no-joint-tiles")
      info->jointTiles = false;
    else if (!number && name != "min-tma-macs")
      return std::nullopt;
  }
  return info;
}

std::string TargetInfo::text() const {
  if (!isGpu())
    return "cpu";
  // Of Hopper's targets the one with warpgroups is the common one.
  TargetInfo plain = gpu(capability, capability == 90);
  std::string text = "sm_" + std::to_string(capability) + (capability == 90 ? "a" : "");
  auto add = [&](bool differs, const Twine &what) {
    if (differs)
      text += (":" + what).str();
  };
  add(hasWgmma != plain.hasWgmma, "no-wgmma");
  add(usesBulkLoads != plain.usesBulkLoads, "no-bulk-copies");
  add(tma16Bit != plain.tma16Bit, "no-tma-16bit");
  add(jointTiles != plain.jointTiles, "no-joint-tiles");
  add(clusterBlocks != plain.clusterBlocks, "cluster-blocks=" + Twine(clusterBlocks));
  add(sharedBytes != plain.sharedBytes, "shared-bytes=" + Twine(sharedBytes));
  add(multiprocessors != plain.multiprocessors, "multiprocessors=" + Twine(multiprocessors));
  add(minTmaMacs != plain.minTmaMacs, "min-tma-macs=" + Twine(uint64_t(minTmaMacs)));
  return text;
}

//===- PublishText.h - The Python files of driver/publish ------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_DRIVER_PUBLISH_PUBLISHTEXT_H
#define TEGULA_DRIVER_PUBLISH_PUBLISHTEXT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace tegula {

/// A file of a published kernel; KERNEL_NAME and KERNEL_ID in name and contents are to be replaced.
struct PublishText {
  llvm::StringRef name, contents;
};
llvm::ArrayRef<PublishText> publishTexts();

} // namespace tegula

#endif // TEGULA_DRIVER_PUBLISH_PUBLISHTEXT_H

//===- IndexProgram.cpp - Integer expressions made ready to run -----------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "symbolic/IndexProgram.h"
#include <algorithm>

using namespace tegula;

std::optional<IndexProgram>
IndexProgram::compile(const IndexExpr &expr,
                      llvm::function_ref<std::optional<unsigned>(const IndexVar &)> slotOf) {
  IndexProgram program;
  if (expr.isOverflow() || !program.emit(expr, slotOf))
    return std::nullopt;
  return program;
}

bool IndexProgram::emitAtom(const IndexExpr::Atom &atom,
                            llvm::function_ref<std::optional<unsigned>(const IndexVar &)> slotOf) {
  using Kind = IndexExpr::AtomKind;
  switch (atom.kind) {
  case Kind::Variable:
    if (std::optional<unsigned> slot = slotOf(atom.var)) {
      code.push_back({Op::Load, *slot});
      return true;
    }
    return false;
  case Kind::FloorDiv:
  case Kind::Min:
  case Kind::Max: {
    Op op = atom.kind == Kind::FloorDiv ? Op::FloorDiv : atom.kind == Kind::Min ? Op::Min : Op::Max;
    for (size_t i = 0; i < atom.operands.size(); ++i) {
      if (!emit(atom.operands[i], slotOf))
        return false;
      if (i)
        code.push_back({op, 0});
    }
    return true;
  }
  case Kind::Select: {
    if (!emit(atom.operands[0], slotOf) || !emit(atom.operands[1], slotOf))
      return false;
    Op test = Op::JumpUnlessEQ;
    switch (atom.cmp) {
    case IndexExpr::Cmp::EQ:
      test = Op::JumpUnlessEQ;
      break;
    case IndexExpr::Cmp::NE:
      test = Op::JumpUnlessNE;
      break;
    case IndexExpr::Cmp::LT:
      test = Op::JumpUnlessLT;
      break;
    case IndexExpr::Cmp::LE:
      test = Op::JumpUnlessLE;
      break;
    }
    size_t jumpToNo = code.size();
    code.push_back({test, 0});
    if (!emit(atom.operands[2], slotOf))
      return false;
    size_t jumpToEnd = code.size();
    code.push_back({Op::Jump, 0});
    code[jumpToNo].operand = code.size();
    if (!emit(atom.operands[3], slotOf))
      return false;
    code[jumpToEnd].operand = code.size();
    return true;
  }
  case Kind::Float:
    for (const IndexExpr &operand : atom.operands)
      if (!emit(operand, slotOf))
        return false;
    code.push_back({Op::Float, int64_t(atom.operands.size())});
    return true;
  }
  return false;
}

bool IndexProgram::emit(const IndexExpr &expr,
                        llvm::function_ref<std::optional<unsigned>(const IndexVar &)> slotOf) {
  bool first = true;
  for (const IndexExpr::Term &term : expr.terms()) {
    if (term.factors.empty()) {
      code.push_back({Op::Constant, term.coefficient});
    } else {
      for (size_t i = 0; i < term.factors.size(); ++i) {
        if (!emitAtom(*term.factors[i].first, slotOf))
          return false;
        if (term.factors[i].second > 1)
          code.push_back({Op::Power, term.factors[i].second});
        if (i)
          code.push_back({Op::Multiply, 0});
      }
      if (term.coefficient != 1)
        code.push_back({Op::Scale, term.coefficient});
    }
    if (!first)
      code.push_back({Op::Add, 0});
    first = false;
  }
  if (first)
    code.push_back({Op::Constant, 0});
  return true;
}

std::optional<int64_t> IndexProgram::run(llvm::ArrayRef<int64_t> slots, bool wraps) const {
  llvm::SmallVector<int64_t, 16> stack;
  auto pop = [&] { return stack.pop_back_val(); };
  for (size_t at = 0; at < code.size(); ++at) {
    const Instruction &instruction = code[at];
    switch (instruction.op) {
    case Op::Constant:
      stack.push_back(instruction.operand);
      break;
    case Op::Load:
      stack.push_back(slots[instruction.operand]);
      break;
    case Op::Add: {
      int64_t b = pop();
      if (__builtin_add_overflow(stack.back(), b, &stack.back()) && !wraps)
        return std::nullopt;
      break;
    }
    case Op::Multiply: {
      int64_t b = pop();
      if (__builtin_mul_overflow(stack.back(), b, &stack.back()) && !wraps)
        return std::nullopt;
      break;
    }
    case Op::Scale:
      if (__builtin_mul_overflow(stack.back(), instruction.operand, &stack.back()) && !wraps)
        return std::nullopt;
      break;
    case Op::Power: {
      int64_t base = stack.back();
      for (int64_t i = 1; i < instruction.operand; ++i)
        if (__builtin_mul_overflow(stack.back(), base, &stack.back()) && !wraps)
          return std::nullopt;
      break;
    }
    case Op::FloorDiv: {
      int64_t b = pop(), a = stack.back();
      if (b == -1 && a == INT64_MIN && wraps)
        break;
      if (b == 0 || (b == -1 && a == INT64_MIN))
        return std::nullopt;
      stack.back() = a / b - (a % b != 0 && (a < 0) != (b < 0));
      break;
    }
    case Op::Min: {
      int64_t b = pop();
      stack.back() = std::min(stack.back(), b);
      break;
    }
    case Op::Max: {
      int64_t b = pop();
      stack.back() = std::max(stack.back(), b);
      break;
    }
    case Op::JumpUnlessEQ:
    case Op::JumpUnlessNE:
    case Op::JumpUnlessLT:
    case Op::JumpUnlessLE: {
      int64_t b = pop(), a = pop();
      bool holds = instruction.op == Op::JumpUnlessEQ   ? a == b
                   : instruction.op == Op::JumpUnlessNE ? a != b
                   : instruction.op == Op::JumpUnlessLT ? a < b
                                                        : a <= b;
      if (!holds)
        at = instruction.operand - 1;
      break;
    }
    case Op::Jump:
      at = instruction.operand - 1;
      break;
    case Op::Float: {
      std::optional<int64_t> value =
          IndexExpr::runFloats(llvm::ArrayRef(stack).take_back(instruction.operand));
      if (!value)
        return std::nullopt;
      stack.truncate(stack.size() - instruction.operand);
      stack.push_back(*value);
      break;
    }
    }
  }
  return stack.back();
}

//===- CheckSuggest.cpp - Edits that mend a program ---------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "frontend/check/CheckSuggest.h"
#include "frontend/check/CheckArguments.h"
#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckSizes.h"

using namespace tegula;
using namespace tegula::checked;

void tegula::suggestInsertion(Report &record, llvm::StringRef message, Span span,
                              llvm::StringRef text, Applicability applicability) {
  record.fix(message.str(), {{span, text.str()}}, applicability);
}

//===----------------------------------------------------------------------===//
// Keywords
//===----------------------------------------------------------------------===//

static llvm::StringRef nearestKeyword(llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> names) {
  llvm::StringRef near = nearestName(name, names);
  if (!near.empty())
    return near;
  // `pad` for `padding`, `eps_value` for `eps`, `slope` for `negative_slope`.
  for (llvm::StringRef one : names)
    if (name.size() >= 3 && one.size() >= 3 &&
        (one.starts_with(name) || name.starts_with(one) || one.ends_with(("_" + name).str())))
      return one;
  return {};
}

void tegula::adviseKeyword(CheckContext &ctx, Report &record, const ast::Ident &keyword,
                           llvm::ArrayRef<llvm::StringRef> names) {
  llvm::StringRef near = nearestKeyword(keyword.name, names);
  if (!near.empty()) {
    record.fix("write '" + near.str() + "'", {{keyword.span, near.str()}});
    return;
  }
  const Invention *known = findInvention(Invention::Keyword, keyword.name);
  if (known)
    record.note(known->advice());
  // What has no meaning here is left out with the comma before it.
  if (!known || !known->isVoid())
    return;
  llvm::StringRef all = ctx.module.sourceManager().text(keyword.span.file);
  size_t comma = all.take_front(keyword.span.begin).rtrim().size();
  if (comma == 0 || all[comma - 1] != ',')
    return;
  size_t end = all.find_first_of(",)", keyword.span.end);
  if (end == llvm::StringRef::npos || all.slice(keyword.span.end, end).contains('('))
    return;
  suggestInsertion(
      record, "leave it out",
      {keyword.span.file, static_cast<uint32_t>(comma - 1), static_cast<uint32_t>(end)}, "");
}

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

/// The places where a name stands alone as a value, other than as an index of an inner reduction.
static void findName(const ast::Expr &e, llvm::StringRef name,
                     llvm::SmallVectorImpl<Span> &places) {
  if (e.kind == ast::Expr::Name && e.name.name == name)
    places.push_back(e.name.span);
  auto visitRange = [&](const std::optional<ast::Range> &range) {
    if (!range)
      return;
    if (range->lo)
      findName(*range->lo, name, places);
    findName(*range->hi, name, places);
  };
  auto visitSubscript = [&](auto &&self, const ast::Subscript &subscript) -> void {
    if (subscript.expr)
      findName(*subscript.expr, name, places);
    visitRange(subscript.range);
    for (const ast::Subscript &member : subscript.members)
      self(self, member);
  };
  for (const ast::ForItem &item : e.items)
    if (item.index.name == name)
      return;
  for (const ast::ExprPtr &operand : e.operands)
    findName(*operand, name, places);
  for (const ast::Argument &argument : e.arguments)
    findName(*argument.value, name, places);
  for (const ast::Subscript &subscript : e.subscripts)
    visitSubscript(visitSubscript, subscript);
  for (const ast::ForItem &item : e.items) {
    visitRange(item.range);
    if (item.filter)
      findName(*item.filter, name, places);
  }
}

/// The places of a name in a text, comments left out.
static void forEachWord(llvm::StringRef text, llvm::StringRef word,
                        llvm::function_ref<void(size_t)> visit) {
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = 0; (at = text.find(word, at)) != llvm::StringRef::npos; ++at) {
    bool whole = (at == 0 || !isWord(text[at - 1])) &&
                 (at + word.size() == text.size() || !isWord(text[at + word.size()]));
    llvm::StringRef line = text.take_front(at).rsplit('\n').second;
    if (whole && !line.contains('#'))
      visit(at);
  }
}

/// A name for an index that stands in none of the texts.
static std::string freeIndexName(CheckContext &ctx, llvm::ArrayRef<llvm::StringRef> texts) {
  auto isFree = [&](const std::string &name) {
    return !ctx.lookup(name) && !isReserved(name) &&
           llvm::none_of(texts, [&](llvm::StringRef one) { return one.contains(name); });
  };
  for (const char *name : {"k", "l", "m", "n", "r", "s", "q", "u", "v", "w"})
    if (isFree(name))
      return name;
  for (unsigned i = 2;; ++i)
    if (std::string name = "k" + std::to_string(i); isFree(name))
      return name;
}

void tegula::suggestIndexName(CheckContext &ctx, Report &record, const ast::Ident &index,
                              llvm::ArrayRef<ast::ForItem> items,
                              llvm::ArrayRef<const ast::Expr *> bodies) {
  llvm::SmallVector<llvm::StringRef> texts;
  for (const ast::Expr *body : bodies)
    if (body)
      texts.push_back(ctx.text(body->span));
  std::string name = freeIndexName(ctx, texts);
  llvm::SmallVector<Span> places{index.span};
  for (const ast::Expr *body : bodies)
    if (body)
      findName(*body, index.name, places);
  std::vector<Edit> edits;
  for (Span place : places)
    edits.push_back({place, name});
  // The reduction's own index is what its body meant.
  Entity *outer = ctx.lookup(index.name);
  bool certain = outer && outer->kind == Entity::Index && places.size() > 1;
  record.fix("name it '" + name + "'", std::move(edits),
             certain ? Applicability::Safe : Applicability::Maybe);
}

/// The innermost statement around a place.
static const ast::Stmt *statementAt(llvm::ArrayRef<ast::StmtPtr> body, Span place) {
  for (const ast::StmtPtr &stmt : body)
    if (stmt->span.begin <= place.begin && place.end <= stmt->span.end) {
      const ast::Stmt *inner = statementAt(stmt->body, place);
      return inner ? inner : stmt.get();
    }
  return nullptr;
}

void tegula::suggestIndexName(CheckContext &ctx, Report &record, const ast::Ident &index) {
  const ast::Stmt *stmt = statementAt(ctx.frame->kernel->body, index.span);
  if (!stmt)
    return;
  llvm::StringRef all = ctx.text(stmt->span);
  std::string name = freeIndexName(ctx, all);
  // With subscripts it is the tensor.
  std::vector<Edit> edits;
  forEachWord(all, index.name, [&](size_t at) {
    uint32_t begin = stmt->span.begin + static_cast<uint32_t>(at);
    uint32_t end = begin + static_cast<uint32_t>(index.name.size());
    if (!all.drop_front(at + index.name.size()).ltrim(' ').starts_with("["))
      edits.push_back({{stmt->span.file, begin, end}, name});
  });
  record.fix("name it '" + name + "'", std::move(edits));
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

void tegula::suggestFloor(CheckContext &ctx, Report &record, Span quotient) {
  llvm::StringRef found = ctx.text(quotient);
  size_t slash = found.rfind('/');
  if (found.count('/') != 1)
    return;
  uint32_t at = quotient.begin + static_cast<uint32_t>(slash);
  suggestInsertion(record, "round down", {quotient.file, at, at + 1}, "//");
}

void tegula::suggestInout(CheckContext &ctx, Report &record, const TensorInfo &info) {
  record.note("declare it 'inout' to update it in place, or give the result a new name",
              info.tensor->span);
  llvm::StringRef declared = ctx.text(info.tensor->span);
  size_t colon = declared.find(':');
  if (colon == llvm::StringRef::npos)
    return;
  uint32_t at = info.tensor->span.begin + static_cast<uint32_t>(colon) + 1;
  suggestInsertion(record, "declare it 'inout'", {info.tensor->span.file, at, at}, " inout");
}

void tegula::suggestAccumulation(CheckContext &ctx, Report &record, const LeftSide &left) {
  Span target = left.target->span;
  llvm::StringRef between =
      ctx.module.sourceManager().text(target.file).slice(target.end, left.valueSpan.begin);
  size_t at = between.find('=');
  // Only an output that nothing has defined begins as zeros: elsewhere a sum is another program.
  bool isOutput = left.info && left.info->tensor->kind == Tensor::Out && !left.info->isComplete;
  if (!isOutput || left.accumulate || at == llvm::StringRef::npos ||
      between.take_front(at).contains('+'))
    return;
  uint32_t place = target.end + static_cast<uint32_t>(at);
  suggestInsertion(record, "add up", {target.file, place, place}, "+");
}

static size_t countWord(llvm::StringRef text, llvm::StringRef word) {
  size_t count = 0;
  forEachWord(text, word, [&](size_t) { ++count; });
  return count;
}

/// Two names for one size: the second becomes the first wherever it stands in the kernel.
void tegula::suggestOneDim(CheckContext &ctx, Report &record, const IndexExpr &a,
                           const IndexExpr &b) {
  auto symbolOf = [](const IndexExpr &size) -> std::string {
    std::optional<IndexVar> var = size.asVariable();
    return var && var->isSymbol() ? var->name().str() : "";
  };
  std::string keep = symbolOf(a), drop = symbolOf(b);
  // Called kernels are checked in the sizes of the entry: the declaration is its own.
  const Frame *entry = ctx.frame;
  while (entry->caller)
    entry = entry->caller;
  Span kernel = entry->kernel->span;
  if (keep.empty() || drop.empty() || entry->isLibrary)
    return;
  for (const ast::SizeDef &size : entry->kernel->sizes)
    if (size.name.name == keep || size.name.name == drop)
      return; // derived from others: not one size
  std::vector<Edit> edits;
  forEachWord(ctx.text(kernel), drop, [&](size_t at) {
    uint32_t begin = kernel.begin + static_cast<uint32_t>(at);
    edits.push_back({{kernel.file, begin, begin + static_cast<uint32_t>(drop.size())}, keep});
  });
  record.fixAtCall("declare " + drop + " as " + keep, std::move(edits));
}

void tegula::suggestResult(CheckContext &ctx, Report &record, const ast::Expr &call,
                           const ast::Kernel *kernel) {
  size_t count = kernel ? kernel->outputs.size() : 1;
  std::string targets;
  for (size_t i = 0; i != count; ++i) {
    std::string name = kernel ? kernel->outputs[i].name.name : "h";
    while (ctx.lookup(name) || ctx.module.findKernel(name))
      name += "2";
    targets += (i ? ", " : "") + name;
  }
  suggestInsertion(record, "give it a name", {call.span.file, call.span.begin, call.span.begin},
                   targets + " = ");
}

/// `softmax(v for j)` and `softmax(v)` of one index: the index goes to `over=`.
void tegula::suggestOver(Report &record, const ast::Expr &scan,
                         llvm::ArrayRef<const ast::Expr *> values) {
  uint32_t file = scan.span.file;
  if (scan.isComprehension) {
    std::string names;
    for (const ast::ForItem &item : scan.items) {
      if (item.ellipsis || item.range || item.filter)
        return;
      names += (names.empty() ? "" : ", ") + item.index.name;
    }
    if (scan.items.size() > 1)
      names = "(" + names + ")";
    Span replaced{file, scan.operands[0]->span.end, scan.items.back().span.end};
    if (scan.operands[0]->parenthesized)
      return;
    if (keywordArgument(scan, "over")) {
      record.fix("leave 'for' out", {{replaced, ""}}, Applicability::Safe);
      return;
    }
    record.fix("write over=", {{replaced, ", over=" + names}}, Applicability::Safe);
    return;
  }
  // Without a word on the index there must be just one that the value has.
  if (values.size() != 1 || values[0]->kind != ast::Expr::Index ||
      values[0]->subscripts.size() != 1 || !values[0]->subscripts[0].expr ||
      values[0]->subscripts[0].expr->kind != ast::Expr::Name)
    return;
  uint32_t end = values[0]->span.end;
  suggestInsertion(record, "write over=", {file, end, end},
                   ", over=" + values[0]->subscripts[0].expr->name.name);
}

std::string tegula::elementText(llvm::StringRef name, size_t rank) {
  if (rank == 0)
    return name.str();
  std::string result = name.str() + "[";
  for (size_t i = 0; i != rank; ++i)
    result += (i ? ", " : "") + (i < 6 ? std::string(1, "ijklmn"[i]) : "i" + std::to_string(i));
  return result + "]";
}

/// What stands around e where `acc += e` is an assignment: ` = acc + `, or ` = maximum(acc, ` and
/// `)`.
std::pair<std::string, std::string> tegula::writtenOut(const ast::Stmt &stmt) {
  const std::string &name = stmt.targets[0].name.name;
  if (stmt.combine == ast::Stmt::Combine::Add)
    return {" = " + name + " + ", ""};
  std::string function = stmt.combine == ast::Stmt::Combine::Max ? "maximum" : "minimum";
  return {" = " + function + "(" + name + ", ", ")"};
}

/// `acc += e` of a plain name: what changes is a state, and is assigned.
void tegula::suggestState(Report record, const Entity &entity, const ast::Stmt &stmt) {
  if (entity.kind != Entity::Scalar || entity.isSize || entity.param || !entity.span.isValid())
    return;
  const std::string &name = stmt.targets[0].name.name;
  auto [before, after] = writtenOut(stmt);
  record.note("what changes from one iteration to the next is a state: state " + name +
              " = ..., then " + name + before + "..." + after);
  uint32_t file = stmt.span.file;
  if (entity.span.file != file)
    return;
  record.fix("make it a state", {{{file, entity.span.begin, entity.span.begin}, "state "},
                                 {{file, stmt.targets[0].span.end, stmt.value->span.begin}, before},
                                 {{file, stmt.value->span.end, stmt.value->span.end}, after}});
}

/// `w: f32[C3, C]`, of which C, 2*C and 3*C are read: declare it as f32[3*C, C].
void tegula::suggestDims(CheckContext &ctx) {
  const ast::Kernel &kernel = *ctx.frame->kernel;
  if (ctx.frame->isLibrary)
    return;
  for (size_t i = 0; i != ctx.wantedDims.size(); ++i) {
    const WantedDim &one = ctx.wantedDims[i];
    // The strongest of all that want this dim.
    auto isEnough = [&](const WantedDim &other) {
      return other.symbol != one.symbol ||
             ctx.prover->proves(Condition::nonNegative(one.needed - other.needed));
    };
    bool isFirst = std::none_of(ctx.wantedDims.begin(), ctx.wantedDims.begin() + i,
                                [&](const WantedDim &other) {
                                  return other.symbol == one.symbol && other.needed == one.needed;
                                });
    if (!isFirst || !llvm::all_of(ctx.wantedDims, isEnough))
      continue;
    bool isDerived = llvm::any_of(
        kernel.sizes, [&](const ast::SizeDef &size) { return size.name.name == one.symbol; });
    // The parameters that show it; elsewhere its name must not stand.
    const ast::Param *param = nullptr;
    std::vector<Edit> edits;
    std::string declared = show(ctx, one.needed);
    for (const std::vector<ast::Param> *params : {&kernel.params, &kernel.outputs})
      for (const ast::Param &each : *params)
        for (const ast::Dim &dim : each.dims)
          if (dim.expr && dim.expr->kind == ast::Expr::Name && dim.expr->name.name == one.symbol) {
            param = param ? param : &each;
            edits.push_back({dim.span, declared});
          }
    // Its other sizes must be bound by dims of their own.
    bool isBound = param && !isDerived;
    std::string all = ctx.text(kernel.span).str();
    for (const IndexVar &var : one.needed.variables())
      isBound &= var.isSymbol() && llvm::any_of(kernel.params, [&](const ast::Param &each) {
                   return llvm::any_of(each.dims, [&](const ast::Dim &dim) {
                     return dim.expr && dim.expr->kind == ast::Expr::Name &&
                            dim.expr->name.name == var.name();
                   });
                 });
    if (!isBound || countWord(all, one.symbol) != edits.size())
      continue;
    std::string advice =
        "declare '" + param->name.name + "' with dim " + declared + " instead of " + one.symbol;
    for (WantedDim &other : ctx.wantedDims) {
      if (other.symbol != one.symbol)
        continue;
      ctx.program->guards[other.guard].advice = advice;
      if (other.report)
        other.report->fixAtCall(advice, edits);
    }
  }
}

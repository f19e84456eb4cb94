//===- NameIndex.cpp - Which names of a file mean the same thing ----------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "lsp/NameIndex.h"

#include "frontend/ast/SubscriptNames.h"
#include "ir/DTypes.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include <map>

using namespace llvm;

namespace tegula {

StringRef Symbol::describe() const {
  static constexpr StringLiteral words[] = {
      "kernel", "function", "tensor",     "scalar",    "compile-time constant",
      "output", "type",     "size",       "temporary", "state",
      "index",  "argument", "local value"};
  return words[kind];
}

/// Walks a file; what is known of scopes while it does.
class NameIndexBuilder {
public:
  NameIndexBuilder(NameIndex &index, const Module &module) : index(index), module(module) {}
  void run();

private:
  struct Scope {
    StringMap<unsigned> names;
    uint32_t end = 0;
  };
  /// A scope for the length of a block of C++.
  struct InScope {
    InScope(NameIndexBuilder &builder, uint32_t end) : builder(builder) {
      builder.scopes.emplace_back().end = end;
    }
    ~InScope() { builder.scopes.pop_back(); }
    InScope(const InScope &) = delete;
    NameIndexBuilder &builder;
  };

  unsigned add(Symbol::Kind kind, const ast::Ident &name, uint32_t begin, uint32_t end);
  Symbol &define(Symbol::Kind kind, const ast::Ident &name);
  Symbol &defineIn(Scope &scope, Symbol::Kind kind, const ast::Ident &name, uint32_t begin);
  std::optional<unsigned> lookup(StringRef name) const;
  bool use(const ast::Ident &name, Occurrence::Role role = Occurrence::Read);
  void use(unsigned symbol, Span span, Occurrence::Role role = Occurrence::Read) {
    index.found.push_back({role, span, symbol});
  }

  void defineHeads();
  void defineParam(const ast::Kernel &kernel, const ast::Param &param, bool isOutput);
  void defineSizes(const ast::Kernel &kernel);
  void visitType(const ast::Ident &type, bool mayDefine);
  void visitKernel(const ast::Kernel &kernel);
  void visitFn(const ast::Fn &fn);
  void visit(const ast::Stmt &stmt);
  void visit(ArrayRef<ast::StmtPtr> body) {
    for (const ast::StmtPtr &stmt : body)
      visit(*stmt);
  }
  void visitEquation(const ast::Stmt &stmt);
  void visitObservation(const ast::Stmt &stmt);
  void visitLeft(const ast::Subscript &subscript, const ast::Stmt &stmt, Symbol::Kind fresh);
  void visitFreshNames(const ast::Expr &e, const ast::Stmt &stmt, Symbol::Kind fresh);
  void visitItems(const ast::Expr &call);
  void visitSchedule(const ast::Stmt &stmt);
  void visit(const ast::Expr *e);
  void visit(const ast::Range &range) {
    visit(range.lo.get());
    visit(range.hi.get());
  }
  void visit(const ast::Subscript &subscript);
  void visitCall(const ast::Expr &call);

  NameIndex &index;
  const Module &module;
  std::vector<Scope> scopes;
  StringMap<unsigned> definitions;                               // the file's kernels and fns
  std::map<const ast::Kernel *, StringMap<unsigned>> parameters; // by kernel
  std::map<const ast::Fn *, StringMap<unsigned>> arguments;
  StringMap<unsigned> types, indices; // of the kernel
  const ast::Kernel *kernel = nullptr;
  const ast::Fn *fn = nullptr;
};

NameIndex::NameIndex(const Module &module) {
  NameIndexBuilder(*this, module).run();
  llvm::sort(found, [](const Occurrence &one, const Occurrence &other) {
    return one.span.begin < other.span.begin;
  });
}

const Occurrence *NameIndex::at(uint32_t offset) const {
  auto behind = llvm::upper_bound(
      found, offset, [](uint32_t at, const Occurrence &one) { return at < one.span.begin; });
  if (behind == found.begin())
    return nullptr;
  const Occurrence &one = *std::prev(behind);
  return offset <= one.span.end ? &one : nullptr;
}

std::vector<Occurrence> NameIndex::occurrencesOf(unsigned symbol) const {
  std::vector<Occurrence> result;
  llvm::copy_if(found, std::back_inserter(result),
                [&](const Occurrence &one) { return one.symbol == symbol; });
  return result;
}

static bool touches(Span span, uint32_t offset) {
  return span.isValid() && span.begin <= offset && offset <= span.end;
}

const CallSite *NameIndex::calleeAt(uint32_t offset) const {
  for (const CallSite &site : callSites)
    if (touches(site.call->name.span, offset))
      return &site;
  return nullptr;
}

const CallSite *NameIndex::keywordAt(uint32_t offset, const ast::Argument *&argument) const {
  for (const CallSite &site : callSites)
    for (const ast::Argument &one : site.call->arguments)
      if (one.keyword && touches(one.keyword->span, offset)) {
        argument = &one;
        return &site;
      }
  return nullptr;
}

NameIndex::Callee NameIndex::calleeOf(const Module &module, StringRef name,
                                      const ast::Kernel *caller) {
  bool isOwnName = caller && caller->name.name == name;
  if (const ast::Kernel *kernel = module.findKernel(name, /*fromLibrary=*/isOwnName))
    return {kernel, nullptr};
  return {nullptr, module.findFn(name, /*fromLibrary=*/isOwnName)};
}

//===----------------------------------------------------------------------===//
// Symbols and scopes
//===----------------------------------------------------------------------===//

unsigned NameIndexBuilder::add(Symbol::Kind kind, const ast::Ident &name, uint32_t begin,
                               uint32_t end) {
  Symbol symbol;
  symbol.kind = kind;
  symbol.name = name.name;
  symbol.definition = name.span;
  symbol.kernel = kernel;
  symbol.fn = fn;
  symbol.scopeBegin = begin;
  symbol.scopeEnd = end;
  index.all.push_back(std::move(symbol));
  auto number = static_cast<unsigned>(index.all.size() - 1);
  use(number, name.span, Occurrence::Definition);
  return number;
}

Symbol &NameIndexBuilder::defineIn(Scope &scope, Symbol::Kind kind, const ast::Ident &name,
                                   uint32_t begin) {
  unsigned number = add(kind, name, begin, scope.end);
  scope.names.insert_or_assign(name.name, number);
  return index.all[number];
}

Symbol &NameIndexBuilder::define(Symbol::Kind kind, const ast::Ident &name) {
  return defineIn(scopes.back(), kind, name, name.span.begin);
}

std::optional<unsigned> NameIndexBuilder::lookup(StringRef name) const {
  for (const Scope &scope : llvm::reverse(scopes))
    if (auto it = scope.names.find(name); it != scope.names.end())
      return it->second;
  return std::nullopt;
}

bool NameIndexBuilder::use(const ast::Ident &name, Occurrence::Role role) {
  std::optional<unsigned> symbol = lookup(name.name);
  if (!symbol)
    if (auto type = types.find(name.name); type != types.end())
      symbol = type->second; // quantize(x, T)
  if (symbol)
    use(*symbol, name.span, role);
  return symbol.has_value();
}

//===----------------------------------------------------------------------===//
// Heads
//===----------------------------------------------------------------------===//

void NameIndexBuilder::run() {
  for (const auto &one : module.file().kernels) {
    kernel = one.get();
    definitions.try_emplace(
        one->name.name, add(Symbol::Kernel, one->name, 0, std::numeric_limits<uint32_t>::max()));
  }
  kernel = nullptr;
  for (const auto &one : module.file().fns) {
    fn = one.get();
    definitions.try_emplace(
        one->name.name, add(Symbol::Function, one->name, 0, std::numeric_limits<uint32_t>::max()));
  }
  fn = nullptr;
  // Calls may name the parameters of what stands further down.
  defineHeads();
  for (const auto &one : module.file().kernels)
    visitKernel(*one);
  for (const auto &one : module.file().fns)
    visitFn(*one);
}

static bool isConstantType(const ast::Param &param) {
  StringRef type = param.type.name;
  return type == "int" || type == "float" || (type == "bool" && !param.hasDims);
}

void NameIndexBuilder::defineParam(const ast::Kernel &of, const ast::Param &param, bool isOutput) {
  Symbol::Kind kind = isOutput                ? Symbol::Output
                      : isConstantType(param) ? Symbol::Constant
                      : param.hasDims         ? Symbol::Tensor
                                              : Symbol::Scalar;
  unsigned number = add(kind, param.name, of.span.begin, of.span.end);
  index.all[number].param = &param;
  parameters[&of].try_emplace(param.name.name, number);
}

void NameIndexBuilder::defineHeads() {
  for (const auto &one : module.file().kernels) {
    kernel = one.get();
    for (const ast::Param &param : one->params)
      defineParam(*one, param, /*isOutput=*/false);
    for (const ast::Param &param : one->outputs)
      defineParam(*one, param, /*isOutput=*/true);
  }
  kernel = nullptr;
  for (const auto &one : module.file().fns) {
    fn = one.get();
    for (const ast::Ident &param : one->params)
      arguments[one.get()].try_emplace(
          param.name, add(Symbol::Argument, param, one->span.begin, one->span.end));
  }
  fn = nullptr;
}

void NameIndexBuilder::visitType(const ast::Ident &type, bool mayDefine) {
  if (auto known = types.find(type.name); known != types.end())
    return use(known->second, type.span);
  StringRef name = type.name;
  bool isGeneric = !name.empty() && name[0] >= 'A' && name[0] <= 'Z' && !parseDType(name);
  if (mayDefine && isGeneric)
    types.try_emplace(name, add(Symbol::Type, type, kernel->span.begin, kernel->span.end));
}

/// A size is bound by the first tensor that shows it bare, else by an expression; `where` names
/// others [3.1, 3.6].
void NameIndexBuilder::defineSizes(const ast::Kernel &of) {
  Scope &scope = scopes.back();
  auto defineName = [&](const ast::Ident &name) {
    if (!lookup(name.name))
      defineIn(scope, Symbol::Size, name, of.span.begin);
  };
  auto forEachDim = [&](function_ref<void(const ast::Expr &)> visit) {
    for (const auto *list : {&of.params, &of.outputs})
      for (const ast::Param &param : *list)
        for (const ast::Dim &dim : param.dims)
          if (dim.expr && !isConstantType(param))
            visit(*dim.expr);
  };
  forEachDim([&](const ast::Expr &e) {
    if (e.kind == ast::Expr::Name)
      defineName(e.name);
  });
  for (const ast::SizeDef &size : of.sizes)
    defineName(size.name);
  auto defineInside = [&](auto &&self, const ast::Expr &e) -> void {
    if (e.kind == ast::Expr::Name)
      defineName(e.name);
    for (const ast::ExprPtr &operand : e.operands)
      self(self, *operand);
  };
  forEachDim([&](const ast::Expr &e) { defineInside(defineInside, e); });
}

void NameIndexBuilder::visitKernel(const ast::Kernel &of) {
  kernel = &of;
  types.clear();
  indices.clear();
  InScope scope(*this, of.span.end);
  scopes.back().names = parameters[&of];
  for (const auto *list : {&of.params, &of.outputs})
    for (const ast::Param &param : *list)
      if (!isConstantType(param))
        visitType(param.type, /*mayDefine=*/true);
  defineSizes(of);
  // What defines a name is found again, and is no second use.
  size_t first = index.found.size();
  for (const auto *list : {&of.params, &of.outputs})
    for (const ast::Param &param : *list) {
      for (const ast::Dim &dim : param.dims)
        visit(dim.expr.get());
      visit(param.defaultValue.get());
    }
  for (const ast::SizeDef &size : of.sizes) {
    if (std::optional<unsigned> symbol = lookup(size.name.name);
        symbol && index.all[*symbol].definition.begin != size.name.span.begin)
      use(*symbol, size.name.span, Occurrence::Write);
    visit(size.value.get());
  }
  index.found.erase(std::remove_if(index.found.begin() + first, index.found.end(),
                                   [&](const Occurrence &one) {
                                     return index.all[one.symbol].definition.begin ==
                                            one.span.begin;
                                   }),
                    index.found.end());
  visit(of.body);
  kernel = nullptr;
}

void NameIndexBuilder::visitFn(const ast::Fn &of) {
  fn = &of;
  types.clear();
  InScope scope(*this, of.span.end);
  scopes.back().names = arguments[&of];
  for (const ast::ExprPtr &value : of.defaults)
    visit(value.get());
  for (const auto &[name, value] : of.lets) {
    visit(value.get());
    define(Symbol::Local, name);
  }
  visit(of.result.get());
  fn = nullptr;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void NameIndexBuilder::visit(const ast::Stmt &stmt) {
  switch (stmt.kind) {
  case ast::Stmt::Assign:
  case ast::Stmt::State:
    return visitEquation(stmt);
  case ast::Stmt::Call:
    return visit(stmt.value.get());
  case ast::Stmt::Observe:
    return visitObservation(stmt);
  case ast::Stmt::Parallel: {
    InScope scope(*this, stmt.span.end);
    for (const ast::Binder &binder : stmt.binders) {
      visit(binder.range);
      Symbol &symbol = define(Symbol::Index, binder.index);
      symbol.stmt = &stmt;
      symbol.range = &binder.range;
      indices.try_emplace(binder.index.name, index.all.size() - 1);
    }
    return visit(stmt.body);
  }
  case ast::Stmt::ForTiles:
  case ast::Stmt::For: {
    if (stmt.range)
      visit(*stmt.range);
    InScope scope(*this, stmt.span.end);
    Symbol &symbol = define(Symbol::Index, stmt.index);
    symbol.stmt = &stmt;
    symbol.range = stmt.range ? &*stmt.range : nullptr;
    indices.try_emplace(stmt.index.name, index.all.size() - 1);
    return visit(stmt.body);
  }
  case ast::Stmt::Precision:
  case ast::Stmt::Deterministic:
    return;
  case ast::Stmt::Distinct:
    for (const std::vector<ast::Ident> &names : stmt.distinct)
      for (const ast::Ident &name : names)
        use(name);
    return;
  case ast::Stmt::Invariant:
    for (const ast::Ident &name : stmt.invariant)
      use(name);
    return;
  case ast::Stmt::Schedule:
    return visitSchedule(stmt);
  }
}

void NameIndexBuilder::visitSchedule(const ast::Stmt &stmt) {
  for (const ast::ScheduleItem &item : stmt.schedule)
    for (const auto &[axis, value] : item.settings) {
      if (axis)
        if (auto found = indices.find(axis->name); found != indices.end())
          use(found->second, axis->span);
      visit(value.get());
    }
}

/// Whether the value is a whole tensor, so that what is written behind the target's colon are dims.
static bool isKernelCall(const Module &module, const ast::Stmt &stmt, const ast::Kernel *caller) {
  const ast::Expr *value = stmt.value.get();
  return value && value->kind == ast::Expr::Call && !value->isComprehension &&
         NameIndex::calleeOf(module, value->name.name, caller).kernel;
}

void NameIndexBuilder::visitEquation(const ast::Stmt &stmt) {
  bool isWhole = isKernelCall(module, stmt, kernel);
  {
    InScope scope(*this, stmt.span.end);
    for (const ast::ForItem &item : stmt.trailing) // where an index is bound it has its range
      if (!item.ellipsis && !use(item.index)) {
        Symbol &symbol = defineIn(scopes.back(), Symbol::Index, item.index, stmt.span.begin);
        symbol.stmt = &stmt;
        symbol.range = item.range ? &*item.range : nullptr;
        indices.try_emplace(item.index.name, index.all.size() - 1);
      }
    for (const ast::Target &target : stmt.targets) {
      if (target.type)
        visitType(*target.type, /*mayDefine=*/false);
      Symbol::Kind fresh = isWhole && target.hasColon ? Symbol::Size : Symbol::Index;
      for (const ast::Subscript &subscript : target.subscripts)
        visitLeft(subscript, stmt, fresh);
    }
    for (const ast::ForItem &item : stmt.trailing) {
      if (item.range)
        visit(*item.range);
      visit(item.filter.get());
    }
    visit(stmt.value.get());
  }
  for (const ast::Target &target : stmt.targets) {
    if (use(target.name, Occurrence::Write))
      continue;
    define(stmt.kind == ast::Stmt::State ? Symbol::State : Symbol::Temporary, target.name).stmt =
        &stmt;
  }
}

/// `print(h[i, j] for j in 4)`: its indices live in it.
void NameIndexBuilder::visitObservation(const ast::Stmt &stmt) {
  InScope scope(*this, stmt.span.end);
  auto define = [&](const ast::Ident &name, const ast::Range *range) {
    Symbol &symbol = defineIn(scopes.back(), Symbol::Index, name, stmt.span.begin);
    symbol.stmt = &stmt;
    symbol.range = range;
    indices.try_emplace(name.name, index.all.size() - 1);
  };
  for (const ast::ForItem &item : stmt.trailing)
    if (!item.ellipsis && !use(item.index))
      define(item.index, item.range ? &*item.range : nullptr);
  for (const ast::Argument &argument : stmt.value->arguments)
    ast::forEachSubscriptName(
        *argument.value, [&](const ast::Subscript &subscript, const ast::Ident *name) {
          bool isBare = name && subscript.range && &subscript.expr->name == name;
          if (name && !lookup(name->name))
            define(*name, isBare ? &*subscript.range : nullptr);
        });
  for (const ast::ForItem &item : stmt.trailing) {
    if (item.range)
      visit(*item.range);
    visit(item.filter.get());
  }
  for (const ast::Argument &argument : stmt.value->arguments)
    visit(argument.value.get());
}

/// A subscript on the left: names that mean nothing yet become indices, or sizes that the result of
/// a kernel has.
void NameIndexBuilder::visitLeft(const ast::Subscript &subscript, const ast::Stmt &stmt,
                                 Symbol::Kind fresh) {
  for (const ast::Subscript &member : subscript.members)
    visitLeft(member, stmt, fresh);
  if (subscript.range)
    visit(*subscript.range);
  if (!subscript.expr)
    return;
  if (subscript.expr->kind == ast::Expr::Name && !lookup(subscript.expr->name.name)) {
    Scope &scope = fresh == Symbol::Size ? scopes[scopes.size() - 2] : scopes.back();
    Symbol &symbol = defineIn(scope, fresh, subscript.expr->name, stmt.span.begin);
    symbol.stmt = &stmt;
    symbol.range = subscript.range ? &*subscript.range : nullptr;
    if (fresh == Symbol::Index)
      indices.try_emplace(symbol.name, index.all.size() - 1);
    return;
  }
  visitFreshNames(*subscript.expr, stmt, fresh);
}

/// `2*p + r` on the left: p and r may first stand there.
void NameIndexBuilder::visitFreshNames(const ast::Expr &e, const ast::Stmt &stmt,
                                       Symbol::Kind fresh) {
  if (e.kind == ast::Expr::Name && !lookup(e.name.name) && fresh == Symbol::Index) {
    Symbol &symbol = defineIn(scopes.back(), fresh, e.name, stmt.span.begin);
    symbol.stmt = &stmt;
    indices.try_emplace(symbol.name, index.all.size() - 1);
    return;
  }
  if (e.kind != ast::Expr::Unary && e.kind != ast::Expr::Binary)
    return visit(&e);
  for (const ast::ExprPtr &operand : e.operands)
    visitFreshNames(*operand, stmt, fresh);
}

void NameIndexBuilder::visitItems(const ast::Expr &call) {
  for (const ast::ForItem &item : call.items) {
    if (item.range)
      visit(*item.range); // of the items before it
    // The index of a loop over tiles is reduced over, not bound again [7.2].
    if (!item.ellipsis && !use(item.index)) {
      Symbol &symbol = defineIn(scopes.back(), Symbol::Index, item.index, call.span.begin);
      symbol.call = &call;
      symbol.range = item.range ? &*item.range : nullptr;
      indices.try_emplace(item.index.name, index.all.size() - 1);
    }
    visit(item.filter.get());
  }
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

void NameIndexBuilder::visit(const ast::Subscript &subscript) {
  for (const ast::Subscript &member : subscript.members)
    visit(member);
  if (subscript.range) {
    visit(*subscript.range);
    if (subscript.expr && subscript.expr->kind == ast::Expr::Name)
      if (std::optional<unsigned> symbol = lookup(subscript.expr->name.name))
        if (Symbol &one = index.all[*symbol]; one.kind == Symbol::Index && !one.range)
          one.range = &*subscript.range; // `sum(x[i, j in 3] for j)`
  }
  visit(subscript.expr.get());
}

void NameIndexBuilder::visit(const ast::Expr *e) {
  if (!e)
    return;
  if (e->kind == ast::Expr::Call)
    return visitCall(*e);
  if (e->kind == ast::Expr::Name || e->kind == ast::Expr::Index)
    use(e->name);
  for (const ast::Subscript &subscript : e->subscripts)
    visit(subscript);
  for (const ast::ExprPtr &operand : e->operands)
    visit(operand.get());
  for (const ast::Argument &argument : e->arguments)
    visit(argument.value.get());
}

void NameIndexBuilder::visitCall(const ast::Expr &call) {
  index.callSites.push_back({&call, kernel, fn});
  StringRef name = call.name.name;
  NameIndex::Callee callee = NameIndex::calleeOf(module, name, kernel);
  bool isOwn = (callee.kernel && !module.isLibrary(*callee.kernel)) ||
               (callee.fn && !module.isLibrary(*callee.fn));
  if (isOwn)
    use(definitions.lookup(name), call.name.span);
  else if (auto type = types.find(name); type != types.end())
    use(type->second, call.name.span);
  InScope scope(*this, call.span.end);
  // Indices may be used before the `for` that binds them.
  visitItems(call);
  for (const ast::ExprPtr &operand : call.operands)
    visit(operand.get());
  for (const ast::Argument &argument : call.arguments) {
    if (argument.keyword && isOwn) {
      const StringMap<unsigned> &named =
          callee.kernel ? parameters[callee.kernel] : arguments[callee.fn];
      if (auto found = named.find(argument.keyword->name); found != named.end())
        use(found->second, argument.keyword->span);
    }
    visit(argument.value.get());
  }
}

} // namespace tegula

//===- CheckObserve.cpp - print and assert ----------------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// `print(e)` and `assert(c, "message")` become equations that write what they look at to tensors of
// their own [3.11]. A condition of constants and sizes alone is decided here or at the launch
// [3.10].
//
//===----------------------------------------------------------------------===//

#include "frontend/check/observations/CheckObserve.h"
#include "frontend/ast/SubscriptNames.h"
#include "frontend/check/CheckBuild.h"
#include "frontend/check/CheckCall.h"
#include "frontend/check/CheckCondition.h"
#include "frontend/check/CheckDomain.h"
#include "frontend/check/CheckEquation.h"
#include "frontend/check/CheckExpr.h"
#include "frontend/check/CheckGuard.h"
#include "frontend/check/CheckIndex.h"
#include "frontend/check/CheckInstance.h"
#include "frontend/check/CheckLeft.h"
#include "frontend/check/CheckNames.h"
#include "frontend/check/CheckRange.h"
#include "frontend/check/CheckRead.h"
#include "frontend/check/CheckSizes.h"
#include "frontend/check/observations/CheckObserver.h"

using namespace tegula;
using namespace tegula::checked;

//===----------------------------------------------------------------------===//
// Conditions of constants and sizes
//===----------------------------------------------------------------------===//

/// Whether the condition is decided when compiling, or at the launch: comparisons of sizes that
/// `and` joins.
static bool isOfSizes(CheckContext &ctx, const Expr *test) {
  if (boolOf(test))
    return true;
  llvm::SmallVector<Condition> conditions;
  bool complete = true;
  collectConditions(ctx, test, true, conditions, complete);
  return complete &&
         llvm::all_of(conditions, [](const Condition &one) { return one.lhs.isSize(); });
}

/// What does not hold for constants is an error here, what depends on sizes is checked at every
/// launch.
static bool requireSizes(CheckContext &ctx, const ast::Stmt &stmt, const ast::Expr &given,
                         llvm::StringRef message) {
  const Expr *test = asCondition(ctx, eval(ctx, given), given.span, "'assert'");
  if (!test)
    return false;
  std::string what = "this needs " + ctx.text(given.span).str();
  if (!message.empty())
    what += ": " + message.str();
  auto fails = [&] {
    ctx.report(Code::AssertionFails, stmt.span, what);
    return false;
  };
  if (std::optional<bool> known = boolOf(test))
    return *known || fails();
  llvm::SmallVector<Condition> conditions;
  bool complete = true;
  collectConditions(ctx, test, true, conditions, complete);
  for (const Condition &one : conditions) {
    Condition condition{one.kind, named(ctx, one.lhs), named(ctx, one.rhs)};
    if (ctx.isSilent() || isAssumed(ctx, condition))
      continue;
    Outcome outcome = ctx.prover->holds(condition, Domain());
    if (outcome.proved())
      continue;
    if (outcome.verdict == Verdict::Refuted)
      return fails();
    requireAtLaunch(ctx, condition, what, stmt.span);
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Observations
//===----------------------------------------------------------------------===//

namespace {
/// For as long as it lives, what must hold for sizes is required of observed runs alone, and not
/// known afterwards: a program is the same with and without what looks at it.
class Apart {
public:
  explicit Apart(CheckContext &ctx)
      : ctx(ctx), prover(std::move(ctx.prover)), assumed(ctx.assumed),
        definitions(prover->facts().definitions.size()), guards(ctx.program->guards.size()),
        magnitudes(ctx.facts.boundedMagnitudes.size()) {
    ctx.prover = std::make_unique<Prover>(prover->facts());
  }
  ~Apart() {
    // Sizes that got a name here keep it.
    for (const auto &[name, definition] :
         llvm::drop_begin(ctx.prover->facts().definitions, definitions))
      prover->define(name, definition);
    ctx.prover = std::move(prover);
    ctx.assumed = std::move(assumed);
    ctx.facts.boundedMagnitudes.resize(magnitudes);
    if (ctx.options.observe)
      return;
    while (!ctx.wantedDims.empty() && ctx.wantedDims.back().guard >= guards)
      ctx.wantedDims.pop_back();
    ctx.program->guards.resize(guards);
  }
  Apart(const Apart &) = delete;

private:
  CheckContext &ctx;
  std::unique_ptr<Prover> prover;
  std::vector<Condition> assumed;
  size_t definitions, guards, magnitudes;
};

class ObservationChecker {
public:
  ObservationChecker(CheckContext &ctx, const ast::Stmt &stmt)
      : ctx(ctx), stmt(stmt), word(stmt.index.name), left(ctx.scope) {}
  bool run();

private:
  bool splitArguments();
  bool bindIndices();
  bool isWhole(const ast::Expr &e);
  void lookAtNames();
  bool checkPrint(Observer &observer);
  bool checkAssert(Observer &observer);
  std::optional<Seen> see(const ast::Expr &e);
  std::optional<Seen> seeWhole(const ast::Ident &name, TensorInfo &info,
                               llvm::SmallVectorImpl<const Var *> &vars);
  void seeNames(const ast::Expr &e);
  void seeOperands(const ast::Expr &e);
  void seeBehind(const Expr *test, bool isTrue, const ast::Expr &e);

  CheckContext &ctx;
  const ast::Stmt &stmt;
  std::string word;
  LeftSide left;
  ast::Target target; // as if the values were an equation's
  std::vector<const ast::Expr *> given;
  const Expr *guard = nullptr;
  // Of an assert:
  std::string message;
  std::vector<Seen> seen;
  llvm::StringSet<> known; // texts of these
  size_t pathAround = 0;   // conditions that stand around all of it
};
} // namespace

//===----------------------------------------------------------------------===//
// The two statements
//===----------------------------------------------------------------------===//

/// The characters of a string of the program.
static std::string contents(const ast::Expr &string) {
  return llvm::StringRef(string.text).drop_front().drop_back().str();
}

bool ObservationChecker::splitArguments() {
  for (const ast::Argument &argument : stmt.value->arguments)
    given.push_back(argument.value.get());
  if (word != "assert")
    return true;
  if (given.size() == 2 && given[1]->kind == ast::Expr::String) {
    message = contents(*given[1]);
    given.pop_back();
  }
  if (given[0]->kind == ast::Expr::String) {
    ctx.report(Code::NotABool, given[0]->span, "'assert' takes a condition first, got a text")
        .note("assert(x[i] >= 0, \"negative\")");
    return false;
  }
  if (given.size() != 1) {
    ctx.report(Code::TooManyArguments, stmt.span,
               "'assert' takes one condition and a text: assert(x[i] >= 0, \"negative\")");
    return false;
  }
  return true;
}

/// Names in subscripts that mean nothing else are indices of the statement, in the order in which
/// they first stand there.
bool ObservationChecker::bindIndices() {
  llvm::StringSet<> known;
  for (const ast::Expr *e : given)
    ast::forEachSubscriptName(*e, [&](const ast::Subscript &subscript, const ast::Ident *name) {
      std::string key = name ? name->name : "...";
      if ((name && isReserved(key)) || ctx.lookup(name ? key : "...0") ||
          llvm::any_of(stmt.trailing,
                       [&](const ast::ForItem &item) { return name && item.index.name == key; }) ||
          !known.insert(key).second)
        return;
      ast::Subscript &own = target.subscripts.emplace_back();
      own.span = name ? name->span : subscript.span;
      own.kind = name ? ast::Subscript::Single : ast::Subscript::Ellipsis;
      if (!name)
        return;
      own.expr = std::make_unique<ast::Expr>();
      own.expr->kind = ast::Expr::Name;
      own.expr->span = name->span;
      own.expr->name = *name;
    });
  target.name = stmt.index;
  target.span = stmt.span;
  target.hasSubscripts = true;
  left.target = &target;
  left.trailing = stmt.trailing;
  left.rangeForm =
      ctx.text(stmt.span).drop_back().rtrim(" ,").str() + (stmt.trailing.empty() ? " for " : ", ");
  for (const ast::Expr *e : given)
    left.bodies.push_back(e);
  for (const ast::ForItem &item : stmt.trailing)
    if (item.filter)
      left.bodies.push_back(item.filter.get());
  if (!expandLeft(ctx, left))
    return false;
  if (!bindLeftIndices(ctx, left)) {
    lookAtNames();
    return false;
  }
  return addFilters(ctx, left, guard);
}

/// Whether the expression names a tensor without subscripts, which stands for all its elements.
bool ObservationChecker::isWhole(const ast::Expr &e) {
  Entity *entity = e.kind == ast::Expr::Name ? ctx.lookup(e.name.name) : nullptr;
  return entity && entity->kind == Entity::Tensor && !entity->tensor->isPoison &&
         !entity->tensor->tensor->dims.empty();
}

/// Where an index has no range because of what it subscripts, says what is wrong with that.
void ObservationChecker::lookAtNames() {
  Saved savedDry(ctx.dry, ctx.dry + 1);
  for (const ast::Expr *e : left.bodies)
    if (e->kind != ast::Expr::String && !isWhole(*e))
      eval(ctx, *e);
}

/// The value as its own type stores it.
std::optional<Seen> ObservationChecker::see(const ast::Expr &e) {
  Value value = eval(ctx, e);
  if (value.isPoison())
    return std::nullopt;
  const Expr *stored =
      storable(ctx, value, typeAlone(value), "what '" + word + "' looks at", e.span);
  if (!stored)
    return std::nullopt;
  return Seen{ctx.shortText(e.span), stored};
}

/// All elements of a tensor that is named without subscripts.
std::optional<Seen> ObservationChecker::seeWhole(const ast::Ident &name, TensorInfo &info,
                                                 llvm::SmallVectorImpl<const Var *> &vars) {
  llvm::SmallVector<Subscript> subscripts;
  for (const IndexExpr &dim : info.tensor->dims) {
    const Var *var = newVar(ctx, Var::Axis, "", IndexExpr(0), dim, name.span);
    ctx.activeVars.push_back(var);
    vars.push_back(var);
    subscripts.push_back({IndexExpr::dim(var->id), {}, name.span, var});
  }
  const Expr *read = readTensor(ctx, info, subscripts, nullptr, name.span);
  if (!read)
    return std::nullopt;
  Value value = ofElement(info, read);
  value.weak = info.tensor->isTypeless;
  const Expr *stored = storable(ctx, value, typeAlone(value), "'" + name.name + "'", name.span);
  if (!stored)
    return std::nullopt;
  return Seen{name.name, stored};
}

bool ObservationChecker::checkPrint(Observer &observer) {
  std::vector<Seen> group;
  bool fine = true, hasValue = false;
  auto finish = [&](llvm::ArrayRef<const Var *> own) {
    if (!hasValue)
      return;
    const Expr *always = booleanNode(ctx, true, stmt.span);
    fine = observer.observe(Observation::Print, group, always, own, guard) && fine;
    group.clear();
    hasValue = false;
  };
  for (const ast::Expr *e : given) {
    if (e->kind == ast::Expr::String) {
      group.push_back({contents(*e), nullptr});
      continue;
    }
    bool whole = isWhole(*e);
    if (whole && hasValue)
      finish(left.vars);
    llvm::SmallVector<const Var *> own(left.vars.begin(), left.vars.end());
    Trimmed trimmedVars(ctx.activeVars);
    std::optional<Seen> seen =
        whole ? seeWhole(e->name, *ctx.lookup(e->name.name)->tensor, own) : see(*e);
    if (!seen) {
      fine = false;
      continue;
    }
    group.push_back(std::move(*seen));
    hasValue = true;
    if (whole)
      finish(own);
  }
  hasValue |= !group.empty() && fine; // a text alone says that this was reached
  finish(left.vars);
  return fine;
}

/// The same of what is read only where the test comes out so.
void ObservationChecker::seeBehind(const Expr *test, bool isTrue, const ast::Expr &e) {
  if (!test || boolOf(test) == !isTrue)
    return;
  Trimmed trimmed(ctx.path);
  if (!boolOf(test))
    ctx.path.push_back({test, isTrue});
  seeNames(e);
}

/// What an operand protects is not read where that decides [5.3].
void ObservationChecker::seeOperands(const ast::Expr &e) {
  auto testOf = [&](const ast::Expr &one) {
    Value value = eval(ctx, one);
    return value.isPoison() ? nullptr : value.expr;
  };
  bool isAnd = e.binaryOp == ast::BinaryOp::And;
  if (e.kind == ast::Expr::Binary && (isAnd || e.binaryOp == ast::BinaryOp::Or)) {
    seeNames(*e.operands[0]);
    return seeBehind(testOf(*e.operands[0]), isAnd, *e.operands[1]);
  }
  if (e.kind == ast::Expr::Call && e.name.name == "where" && e.arguments.size() == 3 &&
      !ctx.module.findFn("where", ctx.inLibrary())) {
    seeNames(*e.arguments[0].value);
    const Expr *test = testOf(*e.arguments[0].value);
    seeBehind(test, true, *e.arguments[1].value);
    return seeBehind(test, false, *e.arguments[2].value);
  }
  if (e.kind == ast::Expr::Compare) { // a < b < c: c behind a < b
    Trimmed trimmed(ctx.path);
    for (size_t i = 0; i != e.operands.size(); ++i) {
      if (i > 1) {
        static const Binary ops[] = {Binary::LT, Binary::LE, Binary::GT,
                                     Binary::GE, Binary::EQ, Binary::NE};
        const Expr *test =
            compare(ctx, ops[static_cast<unsigned>(e.compares[i - 2])],
                    eval(ctx, *e.operands[i - 2]), eval(ctx, *e.operands[i - 1]), e.span)
                .expr;
        if (!test || boolOf(test) == false)
          return;
        if (!boolOf(test))
          ctx.path.push_back({test, true});
      }
      seeNames(*e.operands[i]);
    }
    return;
  }
  for (const ast::ExprPtr &operand : e.operands)
    seeNames(*operand);
  for (const ast::Argument &argument : e.arguments)
    seeNames(*argument.value);
}

/// The reads, names and reductions that a condition is made of, each once.
void ObservationChecker::seeNames(const ast::Expr &e) {
  bool isPart = e.kind == ast::Expr::Index || e.isComprehension;
  if (e.kind == ast::Expr::Name) {
    Entity *entity = ctx.lookup(e.name.name);
    isPart = entity && entity->kind != Entity::Index && entity->kind != Entity::Poison;
  }
  if (isPart) {
    // Behind a condition it may be read where another condition stands before it, too.
    bool isEverywhere = ctx.path.size() == pathAround;
    if (known.contains(ctx.text(e.span)))
      return;
    if (isEverywhere)
      known.insert(ctx.text(e.span));
    if (std::optional<Seen> one = see(e)) {
      if (!isEverywhere)
        one->isRead = pathGuard(ctx);
      seen.push_back(std::move(*one));
    }
    return;
  }
  seeOperands(e);
}

bool ObservationChecker::checkAssert(Observer &observer) {
  const ast::Expr &condition = *given[0];
  const Expr *test = asCondition(ctx, eval(ctx, condition), condition.span, "'assert'");
  if (!test)
    return false;
  pathAround = ctx.path.size();
  seeNames(condition);
  const Expr *fails = unaryNode(ctx, Unary::Not, test, DType::Bool, condition.span);
  return observer.observe(Observation::Assert, seen, fails, left.vars, guard, message);
}

bool ObservationChecker::run() {
  if (!splitArguments())
    return false;
  bool ofSizes = false;
  {
    Apart apart(ctx);
    Saved savedObserving(ctx.isObserving, true);
    Saved savedScope(ctx.scope, &left.scope);
    Trimmed trimmedVars(ctx.activeVars);
    Trimmed trimmedPath(ctx.path);
    forgetValues(ctx);
    if (!bindIndices())
      return false;
    if (word == "assert" && left.vars.empty()) {
      unsigned before = ctx.numErrors();
      const Expr *test = asCondition(ctx, eval(ctx, *given[0]), given[0]->span, "'assert'");
      if (!test || ctx.numErrors() != before)
        return false;
      ofSizes = isOfSizes(ctx, test);
    }
    if (!ofSizes) {
      Observer observer(ctx, stmt.span, word);
      if (!(word == "assert" ? checkAssert(observer) : checkPrint(observer)))
        return false;
      observer.append();
      return true;
    }
  }
  return requireSizes(ctx, stmt, *given[0], message);
}

bool tegula::checkObservation(CheckContext &ctx, const ast::Stmt &stmt) {
  if (!stmt.value)
    return false; // a syntax error was reported
  // A program may give the words a meaning of its own.
  if (isKernelCall(ctx, *stmt.value) || ctx.module.findFn(stmt.index.name, ctx.inLibrary()))
    return checkCallStatement(ctx, stmt);
  if (const auto &look = ctx.options.look; look && look->place == stmt.span.begin &&
                                           stmt.span.file == ctx.module.file().id &&
                                           look->calls != callsAround(ctx))
    return true;
  return ObservationChecker(ctx, stmt).run();
}

//===- Checker.h - The state of checking one kernel instance -----------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Private to the checker. One pass over the entry kernel's statements builds the Program; a called
// kernel is a Frame in which the same code runs again, in its caller's sizes. By file:
//
//   Check.cpp            check(), reports, scopes, names
//   CheckInstance.cpp    signatures: types, constants, dims, outputs
//   CheckEntry.cpp       parameters of the entry kernel
//   CheckArguments.cpp   arguments and options of calls, parameters of called kernels
//   CheckSizes.cpp       derived sizes
//   CheckDomain.cpp      domains of expressions: indices, conditions on the way
//   CheckGuard.cpp       guards of the launch, facts
//   CheckObligation.cpp  what must hold for sizes, subscripts and ranges
//   CheckStmt.cpp        statements without axes of their own, loops at top level, schedules
//   CheckEquation.cpp    equations
//   CheckLeft.cpp        left sides: indices, ranges, subscripts, dims of temporaries
//   CheckPieces.cpp      what equations define: pieces, coverage
//   CheckParallel.cpp    parallel blocks, states, tile loops
//   CheckCall.cpp        kernel calls
//   CheckResult.cpp      results of calls
//   CheckExpr.cpp        names, arithmetic
//   CheckCondition.cpp   comparisons, logic, where
//   CheckIndex.cpp       integers for subscripts, sizes and bounds
//   CheckWrap.cpp        which of them may wrap
//   CheckRead.cpp        subscripts, groups, reads
//   CheckRange.cpp       ranges of indices
//   CheckReduce.cpp      reductions
//   CheckScan.cpp        scans, sorts, recurrences
//   CheckRandom.cpp      random numbers
//   CheckFunction.cpp    built-in functions, conversions, fns
//   CheckBuild.cpp       typed expression nodes
//
//===----------------------------------------------------------------------===//
#ifndef TEGULA_FRONTEND_CHECK_CHECKER_H
#define TEGULA_FRONTEND_CHECK_CHECKER_H

#include "frontend/check/CheckerScope.h"
#include "frontend/check/InstanceOptions.h"
#include "frontend/diagnostics/Inventions.h"
#include "frontend/parse/Module.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <map>
#include <set>

namespace tegula {
inline namespace checker {

class Checker {
public:
  /// Where a tensor begins: the file and offset of its name, then those of the calls around it.
  using TensorKey = std::vector<uint32_t>;
  /// The widest type that is stored in each tensor whose first value is weak.
  using WeakTypes = std::map<TensorKey, checked::DType>;

  Checker(const Module &module, const InstanceOptions &options, Diagnostics &diagnostics,
          WeakTypes &weakTypes);
  std::unique_ptr<checked::Program> run();
  /// Whether this run found a wider type: what it made and reported is of no use, another run
  /// knows.
  bool needsAnotherRun() const { return weakTypesChanged; }

private:
  using DType = checked::DType;
  using Expr = checked::Expr;
  using Var = checked::Var;
  using Tensor = checked::Tensor;
  using Stmt = checked::Stmt;

  //===-- Check.cpp: reports, scopes, names -------------------------------===//
  void requireDistinctNames();
  Report report(Code code, Span span, const llvm::Twine &message);
  /// Errors found by this check; those that repeat one found before are not printed again.
  unsigned numErrors() const { return diagnostics->numErrors() + repeatedErrors; }
  llvm::StringRef text(Span span) const { return module.sourceManager().text(span); }
  /// As a message names it.
  std::string shortText(Span span) const {
    llvm::StringRef all = text(span);
    size_t most = 80;
    if (all.size() <= most)
      return all.str();
    while (most &&
           (static_cast<unsigned char>(all[most]) & 0xC0) == 0x80) // in the middle of a character
      --most;
    return all.take_front(most).str() + "...";
  }
  /// Whether names mean those of the library alone, here.
  bool inLibrary() const {
    if (!expansions.empty() && !expansions.back().isKernel)
      return expansions.back().isLibrary;
    return frame->isLibrary;
  }
  Entity *lookup(llvm::StringRef name);
  /// Defines a name in `scope`; reports and returns null where it is taken.
  Entity *define(Scope &scope, const ast::Ident &name, Entity entity);
  /// What is wrong with the name was reported. Uses as an index, whose range alone may be unknown,
  /// are held against that where `isIndex`.
  void poison(Scope &scope, const ast::Ident &name, bool isIndex = false);
  std::vector<llvm::StringRef> visibleNames();
  void unknownName(const ast::Ident &name, bool isCall);
  void unknownFunction(const ast::Ident &name, Code code);
  /// Where a statement further down defines `name`, if one does.
  std::optional<Span> definedLater(llvm::StringRef name);
  bool reportDefinedLater(const ast::Ident &name);
  /// Reports a name or keyword that other languages have; false where it is none.
  bool reportInvention(llvm::StringRef name, Span span, Invention::Kind kind);
  std::string describe(const Entity &entity);
  bool isReserved(llvm::StringRef name);

  //===-- CheckInstance.cpp -----------------------------------------------===//
  /// What a parameter gets: a tensor, a number, or several.
  struct Given {
    bool isGiven = false;
    TensorInfo *tensor = nullptr;
    Value value;
    std::vector<Value> tuple;
    bool isTuple = false;
    Span span;
  };
  enum class ParamKind { Tensor, Scalar, Constant, Tuple };
  ParamKind kindOf(const ast::Param &param);
  std::optional<DType> resolveType(const ast::Ident &type);
  bool isGeneric(llvm::StringRef name) const;
  bool bindDims(const ast::Param &param, llvm::ArrayRef<IndexExpr> dims, unsigned input);
  /// The dims of a declaration, evaluated; nothing where that was reported.
  std::optional<std::vector<IndexExpr>> evalDims(const ast::Param &param);
  bool bindConstant(const ast::Param &param, const Given &given);
  Given evalGiven(const ast::Expr &e);
  bool defineWhereSizes();
  bool declareOutputs(Frame &frame, llvm::SmallVectorImpl<TensorInfo *> &outputs);
  void finishKernel(Frame &frame, llvm::ArrayRef<TensorInfo *> outputs);
  void warnUnused(Frame &frame);
  void addSize(llvm::StringRef name, unsigned input, unsigned dim);
  TensorInfo *newTensor(Tensor::Kind kind, llvm::StringRef name, DType type,
                        std::vector<IndexExpr> dims, Span span);

  //===-- CheckDims.cpp ---------------------------------------------------===//
  /// Binds sizes that no tensor shows bare, where one is left in a dim that is linear in it.
  bool bindLinearDims();
  bool bindLinearDim(const OpenDim &dim, const ast::Ident &name);
  /// The one size of the dim that nothing has bound, if the dim can bind it.
  const ast::Ident *sizeBoundBy(const ast::Expr &dim);
  /// Whether the name is a parameter's, or of a `where` size.
  static bool declares(const ast::Kernel &kernel, llvm::StringRef name);
  /// The value that the caller of the checker knows the size to have; a guard says so.
  std::optional<IndexExpr> fixedSize(llvm::StringRef name, Span span);

  //===-- CheckEntry.cpp --------------------------------------------------===//
  bool bindEntry(Frame &entry);
  DType standInType(const ast::Kernel &kernel, llvm::StringRef name);
  void noteDefault(const ast::Param &param, const Entity &entity);

  //===-- CheckArguments.cpp ----------------------------------------------===//
  bool mapArguments(const ast::Expr &call, const ast::Kernel &kernel,
                    llvm::SmallVectorImpl<const ast::Expr *> &arguments);
  TensorInfo *tensorArgument(const ast::Expr &argument, llvm::StringRef parameter,
                             llvm::StringRef kernel);
  bool boolOption(const ast::Expr &e, llvm::StringRef keyword, bool fallback);
  bool checkKeywords(const ast::Expr &e, llvm::ArrayRef<llvm::StringRef> known);
  const ast::Expr *keyword(const ast::Expr &e, llvm::StringRef name);
  /// Binds all parameters of the current frame; `given` is in their order.
  bool bindParams(llvm::ArrayRef<Given> given, checked::Callee *callee);

  //===-- CheckSizes.cpp --------------------------------------------------===//
  std::string uniqueSymbol(llvm::StringRef base);
  /// The size with its divisions, minima, ... of sizes replaced by derived size symbols.
  IndexExpr named(const IndexExpr &expr);
  /// As `named`; a `where` name goes to the symbol where it makes one.
  IndexExpr defineSize(llvm::StringRef name, const IndexExpr &definition);
  IndexExpr addDerived(llvm::StringRef base, const IndexExpr &definition);
  IndexExpr rebuildAtom(const IndexExpr::Atom &atom);
  /// In sizes that the program names: without those of called kernels and those that have no name.
  IndexExpr asWritten(const IndexExpr &expr);
  /// As the user wrote it: index names, derived sizes expanded.
  std::string show(const IndexExpr &expr);
  std::string show(const Condition &condition);
  std::string showSizes(const Counterexample &example);

  //===-- CheckDomain.cpp -------------------------------------------------===//
  /// The points of the indices that the expressions use; with what the path demands, and with the
  /// sequential loops around. Other indices do not count, even where their ranges are empty: what
  /// does not vary along an index is computed once for all of its points, or for none.
  Domain domainOf(llvm::ArrayRef<IndexExpr> exprs, bool withLoops, bool withPath);
  bool pathIsComplete();
  void collectConditions(const Expr *condition, bool isTrue,
                         llvm::SmallVectorImpl<Condition> &conditions, bool &complete);
  bool usesData(const IndexExpr &expr);

  //===-- CheckGuard.cpp --------------------------------------------------===//
  /// Adds a guard, once; the one added or there already.
  checked::Guard &addGuard(checked::Guard::Kind kind, IndexExpr lhs, IndexExpr rhs,
                           std::string message, Span span, const Domain *domain = nullptr);
  /// A warning about a guard, once; null where it would be a repetition or inside the library.
  std::optional<Report> warnGuard(Code code, Span span, const llvm::Twine &message,
                                  bool evenInLibrary);
  /// A fact from here on: a guard says so.
  void assume(const Condition &fact);
  bool isAssumed(const Condition &fact) const;
  bool isSilent() const { return dead || dry; }

  //===-- CheckObligation.cpp ---------------------------------------------===//
  /// `x[j, i]` where x[i, j] does not fit its tensor and that does; else empty.
  std::string permutation(const TensorInfo &info, llvm::ArrayRef<Subscript> subscripts);
  enum class Bound {
    Proved,  // without the path
    OnPath,  // proved, or guarded, where the path conditions hold
    Runtime, // to be checked while running
    Guarded, // by a guard
    Wrong,   // reported
  };
  Bound requireInBounds(const IndexExpr &index, const IndexExpr &size, const Obligation &what);
  bool requireEqual(const IndexExpr &a, const IndexExpr &b, Span span, const llvm::Twine &what,
                    Code refuted, llvm::function_ref<void(Report &)> addNotes = {});
  bool requireNonNegative(const IndexExpr &size, Span span, const llvm::Twine &what);
  /// `violation` says what is wrong where no '/' is written.
  bool requireDivides(const IndexExpr &numerator, const IndexExpr &denominator, Span span,
                      const llvm::Twine &violation = "");
  /// Whether integers that are known before the launch may be divided by it: not where it varies
  /// and may be zero, nor where only a condition around excludes zero, which does not keep the
  /// division from running. Such quotients are data: by zero they give 0 [2.7].
  bool isDivisor(const IndexExpr &divisor);
  bool requireNonZero(const IndexExpr &divisor, Span span);
  /// At least one value in lo <= v < hi.
  bool requireNonEmpty(const IndexExpr &lo, const IndexExpr &hi, Span span,
                       const llvm::Twine &what);
  void requireExact(llvm::ArrayRef<ExactDivision> divisions, Span span);
  struct Suggestion {
    std::string needs;  // `M >= N + 2`
    std::string symbol; // M; empty: no one dim
    IndexExpr needed;   // N + 2
  };
  Suggestion suggest(const Outcome &outcome, const Obligation &what);
  /// Whether what a guard would demand failed at every size tried, and no list of conditions says
  /// where it might hold: an error like one that is refuted.
  bool failsWhereTried(const Outcome &outcome, llvm::ArrayRef<Image> images);
  /// Data whose form keeps it inside a dim that has an element (`x[a[i] % N]`) needs that guard
  /// alone, and no check while running. False where that is not so.
  bool guardNonEmpty(const IndexExpr &index, const IndexExpr &size, Domain domain,
                     const Obligation &what);

  //===-- CheckStmt.cpp ---------------------------------------------------===//
  /// No statement is dropped in silence: what checks one says whether it is in the program. Where
  /// it is not, checkBody asks whether an error was reported, and otherwise reports one.
  void checkBody(llvm::ArrayRef<ast::StmtPtr> body);
  [[nodiscard]] bool checkStmt(const ast::Stmt &stmt);
  [[nodiscard]] bool checkAssign(const ast::Stmt &stmt);
  [[nodiscard]] bool defineScalar(const ast::Stmt &stmt, const ast::Target &target);
  [[nodiscard]] bool assignElement(const ast::Stmt &stmt, const ast::Target &target,
                                   TensorInfo *info);
  [[nodiscard]] bool checkStateTensor(const ast::Stmt &stmt);
  const ast::Param *scalarIn(const ast::Range &range);
  std::string boundOf(const ast::Range &range);
  [[nodiscard]] bool checkFor(const ast::Stmt &stmt);
  [[nodiscard]] bool checkPrecision(const ast::Stmt &stmt);
  [[nodiscard]] bool checkSchedule(const ast::Stmt &stmt);
  [[nodiscard]] bool checkTopK(const ast::Stmt &stmt);
  Stmt *append(Stmt::Kind kind, Span span);

  //===-- CheckEquation.cpp -----------------------------------------------===//
  struct LeftSide;
  bool definesWhole(const ast::Stmt &stmt, const ast::Target &target);
  void reportDefinedTwice(const ast::Target &target, Span first);
  void claim(const LeftSide &left, Scope &outside);
  [[nodiscard]] bool checkEquation(const ast::Stmt &stmt, const ast::Target &target, bool isState);
  /// Everything but the right side, which `value` gives once the indices are bound.
  [[nodiscard]] bool defineElements(LeftSide &left, llvm::function_ref<Value()> value);
  /// The value in a form that can be stored in a tensor of `type`; null where that was reported.
  TensorKey tensorKey(Span span) const;
  /// Notes that a tensor whose first value is weak has to hold values of a wider type.
  void widenWeakTensor(const TensorInfo &info, const Value &value);
  const Expr *storable(const Value &value, DType type, const llvm::Twine &what, Span span);
  /// An output of a called kernel whose generic type stands for integers takes the type of a float
  /// that is its first value, as PyTorch's results do.
  void promoteOutput(TensorInfo &info, const Value &value);
  bool readsOthers(const Expr *value, const Tensor *tensor, llvm::ArrayRef<IndexExpr> subscripts);
  bool addressReads(const Stmt &stmt);

  //===-- CheckLeft.cpp ---------------------------------------------------===//
  bool expandLeft(LeftSide &left);
  bool bindLeftIndices(LeftSide &left);
  bool bindLeftIndex(LeftSide &left, const ast::Ident &name,
                     std::optional<std::pair<IndexExpr, IndexExpr>> range);
  bool evalLeft(LeftSide &left);
  bool checkLeftBounds(LeftSide &left, Stmt &out);
  bool sizeTemporary(LeftSide &left);
  std::optional<IndexExpr> extentOfData(const IndexExpr &index);

  //===-- CheckPieces.cpp -------------------------------------------------===//
  bool checkInjective(LeftSide &left, Stmt &out);
  bool addPiece(LeftSide &left, Stmt &out);
  /// The elements that a read touches lie in what one piece defined.
  bool isDefinedBy(const Piece &piece, llvm::ArrayRef<IndexExpr> subscripts);
  /// All elements of the tensor have a value from here on, or that is reported.
  void requireCovered(TensorInfo &info, Span readSpan, bool atEnd);
  void zeroFirst(TensorInfo &info);

  //===-- CheckScatter.cpp: equations that write where data say -------------===//
  bool readsData(const Expr *value);
  /// An equation with data in its subscripts: says how its points meet; false where that was
  /// reported. `along`: the axes along which it runs; `bare`: those that the left side shows as
  /// they are.
  bool checkScatter(LeftSide &left, Stmt &out, const std::set<unsigned> &along,
                    std::set<unsigned> bare);
  /// The axes that data on the left tell apart, since the kernel says that they are distinct.
  void addDistinctAxes(const LeftSide &left, std::set<unsigned> &apart, std::string &names);
  std::optional<std::vector<unsigned>> distinctAxes(const Expr *read);
  bool tellsApart(const LeftSide &left, const Expr *read);
  std::vector<const Expr *> readsOnLeft(const LeftSide &left);
  void checkDistinctNames(Frame &of);
  /// What writes some elements of a tensor, as data say, needs a definition of all of it before.
  bool requireDefinition(LeftSide &left, const Stmt &out);

  //===-- CheckParallel.cpp -----------------------------------------------===//
  [[nodiscard]] bool checkParallel(const ast::Stmt &stmt);
  BlockAccess &noteBlockAccess(TensorInfo &info, bool isWrite, Span span,
                               llvm::ArrayRef<Subscript> subscripts);
  /// Whether a point of the block may access by `a` what another one writes by `b`.
  bool mayMeetOtherPoint(const BlockAccess &a, const BlockAccess &b);
  void checkBlockReads(TensorInfo &info);
  void checkBlockWrites(TensorInfo &info);
  bool followsInnerLoop(const checked::Expr *value);
  bool followsInnerLoop(const IndexExpr &index);
  bool areSameInputs(const checked::Expr *a, const checked::Expr *b);
  IndexExpr inBlock(const IndexExpr &index);
  /// What decides where, and whether, a statement writes.
  void forEachOnAddress(const checked::Stmt &write,
                        llvm::function_ref<void(const checked::Expr *)> visit);
  bool isKnownBeforeBlock(const checked::Stmt &write);
  [[nodiscard]] bool checkTilesLoop(const ast::Stmt &stmt);
  [[nodiscard]] bool checkState(const ast::Stmt &stmt);
  [[nodiscard]] bool checkUpdate(const ast::Stmt &stmt, const ast::Target &target, StateInfo &info);
  std::optional<std::pair<IndexExpr, IndexExpr>>
  evalRange(const ast::Range &range, llvm::StringRef index, Code code = Code::NotAnInteger);
  const Var *newVar(Var::Kind kind, llvm::StringRef name, IndexExpr lo, IndexExpr hi, Span span);
  /// Defines an index name in `scope`; false (reported) where it is visible already.
  bool defineIndex(Scope &scope, const ast::Ident &name, const Var *var);
  /// Whether the name is free (else reported); `advise` may add an edit to the report.
  bool checkIndexName(const ast::Ident &name, llvm::function_ref<void(Report &)> advise = {});

  //===-- CheckCall.cpp ---------------------------------------------------===//
  /// Checks a call of a kernel and appends its statement. The results, new temporaries, or nothing
  /// (reported).
  std::optional<std::vector<TensorInfo *>> callKernel(const ast::Expr &call);
  std::optional<std::vector<TensorInfo *>> callCat(const ast::Expr &call);
  static std::string conversionOf(const Tensor &a, const Tensor &b);
  /// The runs of dims that `...` of a library kernel stands for, broadcast as PyTorch does: counted
  /// from the right, a dim of 1 or a missing one repeats.
  bool broadcastRuns(const ast::Kernel &kernel, llvm::MutableArrayRef<Given> given, Span span);
  /// The tensor with `run` in place of the `length` dims from `first`.
  TensorInfo *broadcastRun(TensorInfo *from, size_t first, size_t length,
                           llvm::ArrayRef<IndexExpr> run, Span span);
  const ast::Kernel *variant(const ast::Kernel &kernel, llvm::MutableArrayRef<Given> given);
  const ast::Kernel *overload(const ast::Kernel &kernel, const ast::Expr &call);
  [[nodiscard]] bool checkCallAssign(const ast::Stmt &stmt);
  [[nodiscard]] bool checkCallStatement(const ast::Stmt &stmt);
  /// `assert(c)`: what does not hold for constants is an error here, what depends on sizes is
  /// checked at every launch.
  [[nodiscard]] bool checkAssertion(const ast::Expr &call);
  TensorInfo *newTemporary(llvm::StringRef name, DType type, std::vector<IndexExpr> dims,
                           Span span);
  bool isKernelCall(const ast::Expr &e);
  /// The kernel that a call of the name is one of, or null. In a kernel its own name is the
  /// library's: nothing calls itself.
  const ast::Kernel *findCalled(llvm::StringRef name) const;
  std::string signature(const ast::Kernel &kernel);

  //===-- CheckResult.cpp -------------------------------------------------===//
  [[nodiscard]] bool storeResult(const ast::Target &target, TensorInfo *result, Span span);
  /// `to[..., offset + i, ...] = from[..., i, ...]`, the offset along `dim`.
  bool copyTensor(TensorInfo *from, TensorInfo *to, unsigned dim, const IndexExpr &offset,
                  Span span);

  //===-- CheckSuggest.cpp: edits that mend a program ---------------------===//
  void adviseKeyword(Report &record, const ast::Ident &keyword,
                     llvm::ArrayRef<llvm::StringRef> names);
  /// Renames an index of a reduction, in its text, to one that is free.
  void suggestIndexName(Report &record, const ast::Ident &index, llvm::ArrayRef<ast::ForItem> items,
                        llvm::ArrayRef<const ast::Expr *> bodies);
  /// `x[i, j]`, with letters for indices.
  static std::string elementText(llvm::StringRef name, size_t rank);
  /// A name for an index that stands in none of the texts.
  std::string freeIndexName(llvm::ArrayRef<llvm::StringRef> texts);
  /// Renames an index in the statement around it.
  void suggestIndexName(Report &record, const ast::Ident &index);
  void suggestFloor(Report &record, Span quotient);
  void suggestAccumulation(Report &record, const LeftSide &left);
  void suggestOneDim(Report &record, const IndexExpr &a, const IndexExpr &b);
  void suggestResult(Report &record, const ast::Expr &call, const ast::Kernel *kernel);
  void suggestOver(Report &record, const ast::Expr &scan, llvm::ArrayRef<const ast::Expr *> values);
  static std::pair<std::string, std::string> writtenOut(const ast::Stmt &stmt);
  void suggestState(Report record, const Entity &entity, const ast::Stmt &stmt);
  /// Once all reads are known: the declarations that prove them.
  void suggestDims();
  void suggestInout(Report &record, const TensorInfo &info);
  /// Writes `name` in front of a call without place, makes elements of a result, ...
  void insert(Report &record, llvm::StringRef message, Span span, llvm::StringRef text,
              Applicability applicability = Applicability::Maybe);

  //===-- CheckExpr.cpp ---------------------------------------------------===//
  Value eval(const ast::Expr &e);
  Value evalName(const ast::Ident &name);
  Value evalUnary(const ast::Expr &e);
  Value evalBinary(const ast::Expr &e);
  Value arith(checked::Binary op, const Value &a, const Value &b, Span span);
  Value extremum(checked::Binary op, const Value &a, const Value &b, Span span);
  Value power(const Value &a, const Value &b, Span span);
  /// A function of two floats, to which integers are converted.
  Value ofFloats(checked::Binary op, const Value &a, const Value &b, Span span);
  /// A value of float arithmetic on sizes as a size: where it is whole by its form, or truncated.
  std::optional<IndexExpr> sizeOf(const Value &value, bool truncates);
  Value complement(const Value &a, Span span, Span opSpan);
  Value bits(checked::Binary op, const Value &a, const Value &b, Span span, Span opSpan);
  Value shift(checked::Binary op, const Value &a, const Value &b, Span span);
  /// Bounds of an integer value that are numbers, where its form or its loops show them.
  std::optional<std::pair<int64_t, int64_t>> numbersOf(const Expr *expr);
  std::optional<std::pair<int64_t, int64_t>> numbersOf(const IndexExpr &index, unsigned depth = 0);
  std::optional<std::pair<int64_t, int64_t>> bitsRange(const Expr *expr);
  Value negate(const Value &a, Span span);

  //===-- CheckCondition.cpp ----------------------------------------------===//
  Value evalLogic(const ast::Expr &e);
  Value evalCompare(const ast::Expr &e);
  Value evalWhere(const ast::Expr &e);
  Value select(const Expr *condition, Value yes, Value no, Span span);
  Value compare(checked::Binary op, const Value &a, const Value &b, Span span);
  const Expr *condition(const Value &value, Span span, llvm::StringRef what,
                        Code code = Code::NotABool);

  //===-- CheckIndex.cpp --------------------------------------------------===//
  /// An expression as an integer for a size, bound or constant: no data, no vars but those visible.
  std::optional<IndexExpr> evalSize(const ast::Expr &e, const llvm::Twine &what);
  /// Any integer: what is read from data becomes a Data var.
  std::optional<Subscript> evalIndex(const ast::Expr &e, const llvm::Twine &what,
                                     Code code = Code::NotAnInteger);
  std::optional<Subscript> toSubscript(const Value &value, Span span, const llvm::Twine &what,
                                       Code code = Code::NotAnInteger);
  std::optional<IndexExpr> toIndex(const Expr *expr);
  const Var *dataVar(const Expr *expr);
  std::optional<IndexExpr> computeIndex(const Expr *expr);
  std::optional<std::pair<IndexExpr, IndexExpr>> rangeOf(const Expr *expr);
  std::optional<std::pair<IndexExpr, IndexExpr>> computeRange(const Expr *expr);
  std::optional<std::pair<IndexExpr, IndexExpr>> rangeOfType(const Expr *expr);
  std::optional<std::pair<IndexExpr, IndexExpr>> rangeOfPositions(const Var &var);
  bool keepsValue(const Expr *expr);
  unsigned keyOf(const Expr *expr);
  void forgetValues();

  //===-- CheckWrap.cpp, CheckExact.cpp ---------------------------------------------------===//
  using Interval = checked::IntegerRange;
  /// What an integer can be, computed without end: of its type where nothing more is known.
  Interval intervalOf(const Expr *expr);
  Interval intervalOf(const IndexExpr &expr);
  /// Whether arithmetic in `expr` on integers narrower than 64 bits may wrap.
  bool mayWrap(const Expr *expr);
  /// The integer as subscripts, bounds and comparisons compute it: in 64 bits, where its own type
  /// may wrap.
  const Expr *in64Bits(const Expr *expr);
  /// Whether the polynomial, computed in 64 bits, is never another number than without end: at the
  /// sizes that a launch admits, for which it may add a guard. Only then is it more than a number
  /// to the prover.
  bool isExact(const IndexExpr &expr);
  /// Whether quotients, extremes and bits of the two may be formulas: not where an index between
  /// bounds of data makes a number that wraps.
  bool isFormula(const Value &a, const Value &b);
  /// Reports a formula of sizes and indices that is not exact, or a part of one: a subscript, a
  /// bound, or a side of a comparison. What data makes is another matter: it is checked while
  /// running.
  bool requireIn64Bits(const IndexExpr &expr, Span span);
  /// What the absolute value does not exceed, in sizes; nothing where data could be any number.
  std::optional<IndexExpr> magnitudeOf(const IndexExpr &expr, unsigned depth = 0);
  std::optional<IndexExpr> magnitudeOf(const IndexExpr::Term &term, unsigned depth);
  std::optional<IndexExpr> magnitudeOf(const IndexVar &var, unsigned depth);
  /// As evalIndex, for the bound of a range: what may wrap is a value of its own, with no formula.
  std::optional<Subscript> evalBound(const ast::Expr &e, const llvm::Twine &what, Code code);

  //===-- CheckRead.cpp ---------------------------------------------------===//
  Value evalRead(const ast::Expr &e);
  std::optional<std::vector<Subscript>> evalSubscripts(llvm::ArrayRef<ast::Subscript> subscripts,
                                                       const TensorInfo &info, Span span);
  std::optional<Subscript> evalGroup(const ast::Subscript &group, const IndexExpr &dim,
                                     const TensorInfo *info);
  const Expr *readTensor(TensorInfo &info, llvm::ArrayRef<Subscript> subscripts, const Expr *fill,
                         Span span);
  const Expr *pathGuard();
  void requireReadable(TensorInfo &info, Span span, llvm::ArrayRef<Subscript> subscripts);
  void rankMismatch(const TensorInfo &info, size_t given, Span span);
  std::string showDims(const TensorInfo &info);

  //===-- CheckRange.cpp --------------------------------------------------===//
  struct Extent {
    IndexExpr size;
    Span span;
    std::string from; // `x`
    bool isGroup = false;
    std::vector<ExactDivision> exact;
    std::optional<IndexExpr> lo;
  };
  /// Collects the dims that the index subscripts bare or in a group; with `isOffset` in an
  /// expression.
  void collectExtents(const ast::Expr &e, llvm::StringRef index, bool isOffset,
                      llvm::SmallVectorImpl<Extent> &extents);
  void collectExtents(const ast::Subscript &subscript, const IndexExpr &dim, llvm::StringRef tensor,
                      llvm::StringRef index, bool isOffset, llvm::SmallVectorImpl<Extent> &extents);
  /// The range that the dims subscripted bare in `bodies` give; nothing where there are none.
  std::optional<std::pair<IndexExpr, IndexExpr>>
  inferRange(llvm::StringRef index, llvm::ArrayRef<const ast::Expr *> bodies, Span span);
  /// Whether a name stands in the text of an expression, other than as an index of an inner
  /// reduction.
  static bool mentions(const ast::Expr &e, llvm::StringRef name);
  /// Whether an expression reads something that was defined wrongly.
  bool readsPoison(const ast::Expr &e);
  std::optional<std::string> stepIn(const ast::Expr &e, llvm::StringRef index);
  std::optional<std::string> stepOf(Span subscript, llvm::ArrayRef<const ast::Expr *> bodies,
                                    llvm::StringRef index);
  /// What an index of this name runs over wherever else in the kernel that is plain, if it is one
  /// size.
  std::string rangeElsewhere(llvm::StringRef index);
  /// `form` shows where a range may stand, as SIZE. `takesRange`: ` in SIZE` may follow where the
  /// index stands.
  void rangeUnknown(const ast::Ident &index, llvm::StringRef form,
                    llvm::ArrayRef<const ast::Expr *> bodies, bool takesRange);
  /// The range that is written where the index subscripts a read, `x[i, j in 3]` [4.2, 6.1].
  static const ast::Range *writtenRange(llvm::StringRef index,
                                        llvm::ArrayRef<const ast::Expr *> bodies);
  /// Whether the index of the subscript has the range that is written there, if one is; else
  /// reported.
  bool requireWrittenRange(const ast::Subscript &subscript);
  bool bindItems(llvm::ArrayRef<ast::ForItem> items, llvm::ArrayRef<const ast::Expr *> bodies,
                 Scope &scope, llvm::SmallVectorImpl<const Var *> &vars, llvm::StringRef form);

  //===-- CheckReduce.cpp -------------------------------------------------===//
  Value evalReduction(const ast::Expr &e);
  Value overNothing(checked::Reduction reduction, DType type, Span span);

  //===-- CheckScan.cpp ---------------------------------------------------===//
  bool requireOneRange(const checked::Var &var, Span span);
  Value evalScan(const ast::Expr &e);
  const Expr *renamed(const Expr *expr);
  IndexExpr renamed(const IndexExpr &expr);

  //===-- CheckRandom.cpp -------------------------------------------------===//
  Value evalRandom(const ast::Expr &e);

  //===-- CheckFunction.cpp -----------------------------------------------===//
  Value evalCall(const ast::Expr &e);
  Value evalConvert(const ast::Expr &e, DType target);
  Value evalQuantize(const ast::Expr &e);
  Value evalBuiltin(const ast::Expr &e);
  Value expandFn(const ast::Expr &e, const ast::Fn &fn);
  bool mayExpand(Span call, unsigned weight);
  Value unary(checked::Unary op, const Value &a, Span span);

  //===-- CheckBuild.cpp --------------------------------------------------===//
  Expr *make(Expr::Kind kind, DType type, Span span);
  /// Sets `axes` from operands and the rest; the last step of making a node.
  const Expr *finish(Expr *expr);
  void addAxes(std::vector<unsigned> &axes, const IndexExpr &expr);
  void addAxes(std::vector<unsigned> &axes, const Expr *expr);
  const Expr *constant(double value, DType type, Span span);
  const Expr *boolean(bool value, Span span);
  const Expr *indexNode(const IndexExpr &index, Span span);
  Value indexValue(const IndexExpr &index, Span span);
  Value floatLiteral(double value, Span span);
  const Expr *binaryNode(checked::Binary op, const Expr *a, const Expr *b, DType type, Span span);
  const Expr *unaryNode(checked::Unary op, const Expr *a, DType type, Span span);
  /// The value in `type`, a compute type at least as wide as the value's own (weak: any).
  const Expr *coerce(const Value &value, DType type);
  const Expr *widen(const Expr *expr, DType type);
  /// The value alone: weak ones as f32 or i64.
  const Expr *settle(const Value &value);
  DType typeAlone(const Value &value);
  /// The type in which two values meet, and whether the result is weak.
  std::pair<DType, bool> meet(const Value &a, const Value &b, Span span);
  std::optional<double> constantOf(const Expr *expr);
  std::optional<bool> boolOf(const Expr *expr);
  Value strong(const Expr *expr) { return Value{expr, false, std::nullopt, {}}; }

  //===-- State -----------------------------------------------------------===//
  const Module &module;
  const InstanceOptions &options;
  Diagnostics *diagnostics;
  std::unique_ptr<checked::Program> program;
  std::unique_ptr<Prover> prover;
  std::vector<Condition> assumed;

  std::vector<Expansion> expansions;
  unsigned expandedWeight = 0; // of all calls expanded so far
  unsigned errorsBefore = 0, repeatedErrors = 0;
  std::unique_ptr<Diagnostics> repeated; // takes those
  /// What a file with syntax errors means is not known.
  bool hasErrors() const { return module.file().isPartial || numErrors() != errorsBefore; }
  /// Names that statements with syntax errors define are not reported again.
  void loseNames(Frame &of);
  bool isLost(llvm::StringRef word) const { return module.file().lostWords.contains(word); }
  const ast::Stmt *currentStmt = nullptr;
  Frame *frame = nullptr;
  Scope *scope = nullptr;
  std::vector<Stmt *> *sink = nullptr;
  std::vector<const Var *> activeVars; // visible ones, outermost first
  std::vector<PathCondition> path;
  std::vector<std::pair<unsigned, const Var *>> renames; // scans: old var by new
  std::vector<unsigned> loops;                           // sequential loop vars around
  /// Vars whose ranges are written, with the text.
  llvm::DenseMap<const Var *, const ast::Range *> writtenRanges;
  unsigned dead = 0; // inside what a compile-time constant excludes
  unsigned dry = 0;  // first passes over a parallel block
  bool inParallel = false;
  size_t blockLoops = 0; // around the parallel block
  std::vector<const Var *> parallelVars;
  std::vector<const Var *> tileVars;
  bool hasDouble = false; // the entry has f64 tensors

  std::deque<TensorInfo> tensorInfos;
  std::deque<StateInfo> stateInfos;
  std::vector<TensorInfo *> blockTensors; // written by the parallel block
  std::vector<const Var *> blockData;     // in its subscripts, one for those that are the same
  // Within a statement: what is known of values, and the vars of data by the values' keys.
  llvm::DenseMap<unsigned, const Var *> dataVars;
  llvm::StringMap<unsigned> keyNumbers;
  llvm::DenseMap<const Expr *, unsigned> exprKeys;
  llvm::DenseMap<const Expr *, Interval> exprIntervals;
  llvm::DenseMap<const Expr *, bool> exprWraps;
  llvm::StringMap<Interval> symbolIntervals;
  llvm::DenseMap<unsigned, Interval> varIntervals; // of axes and loops
  std::vector<IndexExpr> boundedMagnitudes;        // that a guard keeps within 64 bits
  llvm::DenseMap<const Expr *, const Expr *> wideExprs;
  llvm::DenseMap<const Expr *, std::optional<IndexExpr>> exprIndices;
  llvm::DenseMap<const Expr *, std::optional<std::pair<IndexExpr, IndexExpr>>> exprRanges;
  llvm::StringSet<> symbols;
  std::map<IndexExpr, IndexExpr> atomNames;   // divisions, ... of sizes, over derived symbols
  bool keepAtoms = false;                     // in a `where` size, which may get a name
  llvm::StringMap<IndexExpr> autoDefinitions; // unnamed derived sizes
  llvm::StringMap<IndexExpr>
      calleeDefinitions; // sizes of called kernels: names that nobody can write
  std::set<std::string> reportedGuards;
  std::deque<WantedDim> wantedDims;

  WeakTypes &weakTypes;
  std::map<const ast::Stmt *, StateFact> stateFacts;
  bool stateFactsChanged = false;
  bool weakTypesChanged = false;
};

} // namespace checker
} // namespace tegula

#endif // TEGULA_FRONTEND_CHECK_CHECKER_H

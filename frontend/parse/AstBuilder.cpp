//===- AstBuilder.cpp - From ANTLR's tree to ours ----------------------*- C++ -*-===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "frontend/parse/AstBuilder.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace llvm;

namespace tegula {

Span AstBuilder::span(antlr4::Token *token) const {
  return reporter.span(tokens[token->getTokenIndex()]);
}

Span AstBuilder::span(antlr4::ParserRuleContext *context) const {
  Span result = span(context->getStart());
  if (context->getStop())
    result.end = span(context->getStop()).end;
  return result;
}

ast::Ident AstBuilder::ident(G::NameContext *context) {
  Span where = span(context);
  return {reporter.text().slice(where.begin, where.end).str(), where};
}

//===----------------------------------------------------------------------===//
// Definitions
//===----------------------------------------------------------------------===//

/// Whether the grammar refused something in the context; blocks have statements of their own.
static bool hasException(antlr4::tree::ParseTree *tree) {
  auto *context = dynamic_cast<antlr4::ParserRuleContext *>(tree);
  if (!context || dynamic_cast<TegulaParser::BlockContext *>(context))
    return false;
  return context->exception || llvm::any_of(context->children, hasException);
}

bool AstBuilder::isWrong(antlr4::ParserRuleContext *context, uint32_t begin, uint32_t end) const {
  return isPartial &&
         (hasException(context) || !context->getStop() || reporter.isWrong(begin, end));
}

uint32_t AstBuilder::beginOf(antlr4::ParserRuleContext *context) const {
  size_t at = context->getStart()->getTokenIndex();
  return at < tokens.size() ? tokens[at].begin : static_cast<uint32_t>(reporter.text().size());
}

/// Notes the words of what is left out that may define something: those of a head, or, of
/// statements, what stands in front of an `=`, where names outside of brackets are names that the
/// kernel has lost.
void AstBuilder::lose(uint32_t begin, uint32_t end, bool isStatement) {
  for (size_t at = 0; at != written.size(); ++at) {
    if (written[at].begin < begin || written[at].begin >= end)
      continue;
    StringRef text = reporter.text(written[at]);
    if (!isStatement) {
      if (text == "{")
        return;
      if (isNameType(written[at].type))
        file->lostWords.insert(text);
      continue;
    }
    bool isAssign =
        text.ends_with("=") && text != "==" && text != "!=" && text != "<=" && text != ">=";
    if (!isAssign)
      continue;
    // Back to where the statement starts: keyword arguments have an open bracket on the way.
    std::vector<std::string> names;
    int closed = 0;
    size_t i = at;
    while (i != 0 && written[i - 1].begin >= begin && closed >= 0) {
      StringRef before = reporter.text(written[--i]);
      closed += before == ")" || before == "]";
      closed -= before == "(" || before == "[";
      if (before == ";" || before == "{" || before == "}")
        break;
      if (isNameType(written[i].type))
        file->lostWords.insert(before);
      if (closed == 0 && isNameType(written[i].type))
        names.push_back(before.str());
      if (closed == 0 && written[i].firstOnLine)
        break;
    }
    if (closed >= 0)
      lost->insert(lost->end(), names.begin(), names.end());
  }
}

void AstBuilder::build(G::FileContext *context, ast::File &to) {
  file = &to;
  file->isPartial = isPartial;
  std::vector<G::DefinitionContext *> definitions = context->definition();
  uint32_t end = static_cast<uint32_t>(reporter.text().size());
  if (isPartial)
    lose(0, definitions.empty() ? end : beginOf(definitions.front()), /*isStatement=*/false);
  for (size_t i = 0; i != definitions.size(); ++i) {
    G::KernelContext *kernelContext = definitions[i]->kernel();
    G::FunctionContext *functionContext = definitions[i]->function();
    uint32_t begin = beginOf(definitions[i]);
    uint32_t next = i + 1 == definitions.size() ? end : beginOf(definitions[i + 1]);
    G::BlockContext *block = kernelContext ? kernelContext->block() : nullptr;
    bool isLost = kernelContext
                      ? !block || !block->getStop() || isWrong(kernelContext, begin, beginOf(block))
                  : functionContext ? isWrong(functionContext, begin, next)
                                    : true;
    if (isPartial && isLost)
      lose(begin, next, /*isStatement=*/false);
    else if (kernelContext)
      file->kernels.push_back(kernel(kernelContext));
    else
      file->fns.push_back(function(functionContext));
  }
  file->isPartial = reporter.anyReported();
}

std::unique_ptr<ast::Kernel> AstBuilder::kernel(G::KernelContext *context) {
  auto kernel = std::make_unique<ast::Kernel>();
  kernel->name = ident(context->name());
  kernel->span = span(context);
  kernel->headSpan = kernel->span;
  kernel->headSpan.end = tokens[context->block()->getStart()->getTokenIndex() - 1].end;
  if (context->parameters())
    for (G::ParameterContext *each : context->parameters()->parameter())
      kernel->params.push_back(parameter(each));
  if (G::OutputsContext *outputs = context->outputs()) {
    kernel->hasOutputs = true;
    if (outputs->parameters())
      for (G::ParameterContext *each : outputs->parameters()->parameter())
        kernel->outputs.push_back(parameter(each));
  }
  if (context->sizes())
    for (G::SizeDefinitionContext *each : context->sizes()->sizeDefinition())
      kernel->sizes.push_back({ident(each->name()), expression(each->expression())});
  lost = &kernel->lost;
  block(context->block(), kernel->body);
  checkPlaces(kernel->body, /*ofKernel=*/true);
  return kernel;
}

ast::Param AstBuilder::parameter(G::ParameterContext *context) {
  ast::Param param;
  param.name = ident(context->name(0));
  param.isInout = context->INOUT() != nullptr;
  param.type = ident(context->type);
  param.span = span(context);
  if (context->dims()) {
    param.hasDims = true;
    for (G::DimContext *each : context->dims()->dim()) {
      ast::Dim dim;
      dim.span = span(each);
      dim.ellipsis = each->expression() == nullptr;
      if (!dim.ellipsis)
        dim.expr = expression(each->expression());
      param.dims.push_back(std::move(dim));
    }
  }
  if (context->expression())
    param.defaultValue = expression(context->expression());
  return param;
}

std::unique_ptr<ast::Fn> AstBuilder::function(G::FunctionContext *context) {
  auto fn = std::make_unique<ast::Fn>();
  fn->name = ident(context->name());
  fn->span = span(context);
  for (G::FunctionParameterContext *each : context->functionParameter()) {
    fn->params.push_back(ident(each->name()));
    fn->defaults.push_back(each->expression() ? expression(each->expression()) : nullptr);
  }
  if (G::FunctionBlockContext *block = context->functionBlock()) {
    for (G::LetContext *let : block->let())
      fn->lets.push_back({ident(let->name()), expression(let->expression())});
    fn->result = expression(block->expression());
  } else {
    fn->result = expression(context->expression());
  }
  return fn;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void AstBuilder::block(G::BlockContext *context, std::vector<ast::StmtPtr> &body) {
  std::vector<G::StatementContext *> statements = context->statement();
  uint32_t end = span(context).end;
  if (uint32_t first = statements.empty() ? end : beginOf(statements.front());
      isWrong(beginOf(context), first))
    lose(beginOf(context), first, /*isStatement=*/true);
  auto beginOfNext = [&](size_t i) {
    return i + 1 == statements.size() ? end : beginOf(statements[i + 1]);
  };
  auto blockOf = [](G::StatementContext *statement) -> G::BlockContext * {
    for (antlr4::tree::ParseTree *child : statement->children)
      if (auto *found = dynamic_cast<G::BlockContext *>(child))
        return found;
    return nullptr;
  };
  std::vector<bool> isLost(statements.size());
  for (size_t i = statements.size(); i-- != 0;) {
    G::BlockContext *inner = blockOf(statements[i]);
    // What follows up to the next statement could not be read either.
    isLost[i] = inner && inner->getStop()
                    ? isWrong(statements[i], beginOf(statements[i]), beginOf(inner))
                    : isWrong(statements[i], beginOf(statements[i]), beginOfNext(i));
    // `z[i] = 2 x[i]`: what begins in the middle of a line is the rest of the statement before.
    if (i + 1 == statements.size() || !isLost[i + 1])
      continue;
    size_t start = statements[i + 1]->getStart()->getTokenIndex();
    isLost[i] = isLost[i] || (!tokens[start].firstOnLine && endsOperand(tokens[start - 1].type));
  }
  for (size_t i = 0; i != statements.size(); ++i) {
    G::StatementContext *each = statements[i];
    uint32_t begin = beginOf(each), next = beginOfNext(i);
    G::BlockContext *inner = blockOf(each);
    if (isLost[i]) {
      lose(begin, next, /*isStatement=*/true);
      continue;
    }
    unsigned before = reporter.numReported();
    ast::StmtPtr built = statement(each);
    if (reporter.numReported() != before && !inner) {
      lose(begin, next, /*isStatement=*/true);
      continue;
    }
    body.push_back(std::move(built));
    if (inner && isWrong(span(inner).end, next))
      lose(span(inner).end, next, /*isStatement=*/true);
  }
}

/// `precision`, `deterministic`, `distinct` and `invariant` open a kernel, `schedule` closes it;
/// others are left out.
void AstBuilder::checkPlaces(std::vector<ast::StmtPtr> &body, bool ofKernel) {
  bool opening = ofKernel;
  const ast::Stmt *last = body.empty() ? nullptr : body.back().get();
  llvm::erase_if(body, [&](const ast::StmtPtr &stmt) {
    unsigned before = reporter.numReported();
    checkPlaces(stmt->body, /*ofKernel=*/false);
    bool opens = stmt->kind == ast::Stmt::Precision || stmt->kind == ast::Stmt::Deterministic ||
                 stmt->kind == ast::Stmt::Distinct || stmt->kind == ast::Stmt::Invariant;
    Span word = stmt->span;
    word.end = word.begin;
    while (word.end < stmt->span.end && isAlpha(reporter.text()[word.end]))
      ++word.end;
    if (opens && !opening)
      reporter.report(Code::MisplacedStatement, stmt->span,
                      (Twine("expected '") + reporter.text().slice(word.begin, word.end) +
                       "' as the first statement of a kernel")
                          .str());
    if (stmt->kind == ast::Stmt::Schedule && (!ofKernel || stmt.get() != last))
      reporter.report(Code::MisplacedStatement, word,
                      "expected 'schedule' as the last statement of a kernel");
    opening &= opens;
    return stmt->body.empty() && reporter.numReported() != before;
  });
}

ast::StmtPtr AstBuilder::statement(G::StatementContext *context) {
  auto stmt = std::make_unique<ast::Stmt>();
  stmt->span = span(context);
  if (auto *precision = dynamic_cast<G::PrecisionContext *>(context)) {
    stmt->kind = ast::Stmt::Precision;
    stmt->index = ident(precision->name());
  } else if (dynamic_cast<G::DeterministicContext *>(context)) {
    stmt->kind = ast::Stmt::Deterministic;
  } else if (auto *distinct = dynamic_cast<G::DistinctContext *>(context)) {
    stmt->kind = ast::Stmt::Distinct;
    for (G::DistinctItemContext *item : distinct->distinctItem()) {
      stmt->distinct.emplace_back();
      for (G::NameContext *each : item->name())
        stmt->distinct.back().push_back(ident(each));
    }
  } else if (auto *invariant = dynamic_cast<G::InvariantContext *>(context)) {
    stmt->kind = ast::Stmt::Invariant;
    for (G::NameContext *each : invariant->name())
      stmt->invariant.push_back(ident(each));
  } else if (auto *state = dynamic_cast<G::StateContext *>(context)) {
    stmt->kind = ast::Stmt::State;
    stmt->targets.push_back(target(state->target()));
    stmt->value = expression(state->expression());
    stmt->trailing = trailing(state->trailing());
  } else if (auto *parallel = dynamic_cast<G::ParallelContext *>(context)) {
    stmt->kind = ast::Stmt::Parallel;
    for (G::BinderContext *each : parallel->parallelHead()->binder())
      stmt->binders.push_back({ident(each->name()), range(each->range())});
    block(parallel->block(), stmt->body);
  } else if (auto *loop = dynamic_cast<G::LoopContext *>(context)) {
    loopHead(loop->loopHead(), *stmt);
    block(loop->block(), stmt->body);
  } else if (auto *schedule = dynamic_cast<G::ScheduleContext *>(context)) {
    stmt->kind = ast::Stmt::Schedule;
    if (schedule->scheduleItems())
      for (G::ScheduleItemContext *each : schedule->scheduleItems()->scheduleItem())
        stmt->schedule.push_back(scheduleItem(each));
  } else if (auto *observe = dynamic_cast<G::ObserveContext *>(context)) {
    observation(observe->observation(), *stmt);
  } else if (auto *callStatement = dynamic_cast<G::CallStatementContext *>(context)) {
    stmt->kind = ast::Stmt::Call;
    stmt->value = call(callStatement->call());
  } else {
    auto *assignment = dynamic_cast<G::AssignmentContext *>(context);
    assert(assignment && "all statements of the grammar are built");
    stmt->kind = ast::Stmt::Assign;
    for (G::TargetContext *each : assignment->targets()->target())
      stmt->targets.push_back(target(each));
    stmt->accumulate = assignment->op->getType() == G::ACCUMULATE;
    if (assignment->combine) {
      ast::Stmt::Combine combine = assignment->combine->getType() == G::MAX
                                       ? ast::Stmt::Combine::Max
                                       : ast::Stmt::Combine::Min;
      if (stmt->accumulate)
        reporter.report(Code::ForeignOperator, span(assignment->combine),
                        ("expected '" + ast::spelling(combine) + "' or '+='").str());
      stmt->accumulate = true;
      stmt->combine = combine;
    }
    stmt->value = expression(assignment->expression());
    stmt->trailing = trailing(assignment->trailing());
  }
  return stmt;
}

void AstBuilder::loopHead(G::LoopHeadContext *context, ast::Stmt &stmt) {
  stmt.kind = context->TILES() ? ast::Stmt::ForTiles : ast::Stmt::For;
  stmt.index = ident(context->name());
  stmt.range = range(context->range());
  stmt.reverse = context->REVERSE() != nullptr;
}

ast::ScheduleItem AstBuilder::scheduleItem(G::ScheduleItemContext *context) {
  ast::ScheduleItem item;
  item.keyword = ident(context->name());
  item.span = span(context);
  for (G::SettingContext *each : context->setting()) {
    if (each->name()) {
      item.settings.push_back({ident(each->name()), expression(each->expression())});
      continue;
    }
    ast::ExprPtr value = make(each->FLOAT() ? ast::Expr::Float : ast::Expr::Integer, span(each));
    value->text = reporter.text().slice(value->span.begin, value->span.end).str();
    if (each->FLOAT())
      StringRef(value->text).getAsDouble(value->floatValue);
    else
      StringRef(value->text).getAsInteger(10, value->intValue);
    item.settings.push_back({std::nullopt, std::move(value)});
  }
  return item;
}

ast::Target AstBuilder::target(G::TargetContext *context) {
  ast::Target target;
  target.name = ident(context->name(0));
  target.hasColon = context->COLON() != nullptr;
  if (context->type)
    target.type = ident(context->type);
  target.span = span(context);
  if (context->subscripts()) {
    target.hasSubscripts = true;
    target.subscripts = subscripts(context->subscripts(), nullptr);
  }
  return target;
}

ast::Range AstBuilder::range(G::RangeContext *context) {
  ast::Range range;
  range.span = span(context);
  if (context->expression().size() == 2) {
    range.lo = expression(context->expression(0));
    range.hi = expression(context->expression(1));
  } else {
    range.hi = expression(context->expression(0));
  }
  return range;
}

ast::ForItem AstBuilder::forItem(G::ForItemContext *context) {
  ast::ForItem item;
  item.span = span(context);
  if (!context->name()) {
    item.ellipsis = true;
    return item;
  }
  item.index = ident(context->name());
  if (context->range())
    item.range = range(context->range());
  if (context->expression())
    item.filter = expression(context->expression());
  return item;
}

/// `print("after", h[i] for i in 4)`, `assert(c, "why")`.
void AstBuilder::observation(G::ObservationContext *context, ast::Stmt &stmt) {
  stmt.kind = ast::Stmt::Observe;
  stmt.index = {reporter.text().slice(span(context->word).begin, span(context->word).end).str(),
                span(context->word)};
  stmt.value = make(ast::Expr::Call, span(context));
  stmt.value->name = stmt.index;
  auto addText = [&](Span where) {
    ast::ExprPtr text = make(ast::Expr::String, where);
    text->text = reporter.text().slice(where.begin, where.end).str();
    stmt.value->arguments.push_back({std::nullopt, std::move(text)});
  };
  for (G::ObservedContext *each : context->observed()) {
    if (each->STRING())
      addText(span(each));
    else
      stmt.value->arguments.push_back({std::nullopt, expression(each->expression())});
  }
  for (G::ForItemContext *each : context->forItem())
    stmt.trailing.push_back(forItem(each));
  if (context->message)
    addText(span(context->message));
}

std::vector<ast::ForItem> AstBuilder::trailing(G::TrailingContext *context) {
  std::vector<ast::ForItem> items;
  if (context)
    for (G::ForItemContext *each : context->forItem())
      items.push_back(forItem(each));
  return items;
}

//===----------------------------------------------------------------------===//
// Subscripts
//===----------------------------------------------------------------------===//

std::vector<ast::Subscript> AstBuilder::subscripts(G::SubscriptsContext *context,
                                                   std::vector<ast::Argument> *keywords) {
  std::vector<ast::Subscript> result;
  for (G::SubscriptContext *each : context->subscript()) {
    Span where = span(each);
    if (each->name()) {
      ast::Argument keyword{ident(each->name()), expression(each->expression())};
      if (keywords)
        keywords->push_back(std::move(keyword));
      else
        reporter.report(Code::BadTarget, where,
                        "expected a subscript on the left side, found '" + keyword.keyword->name +
                            "='");
      continue;
    }
    if (keywords && !keywords->empty())
      reporter.report(Code::PositionalAfterKeyword, where,
                      "expected subscripts before '" + keywords->front().keyword->name + "='");
    if (!each->expression()) {
      ast::Subscript dots;
      dots.kind = ast::Subscript::Ellipsis;
      dots.span = where;
      result.push_back(std::move(dots));
      continue;
    }
    result.push_back(subscript(each->expression(), each->range(), where));
  }
  return result;
}

/// The parentheses that an expression consists of, or null.
static TegulaParser::ParenthesesContext *wholeParentheses(antlr4::tree::ParseTree *tree) {
  while (tree->children.size() == 1)
    tree = tree->children[0];
  return dynamic_cast<TegulaParser::ParenthesesContext *>(tree);
}

ast::Subscript AstBuilder::subscript(G::ExpressionContext *expr, G::RangeContext *of, Span where) {
  ast::Subscript result;
  result.span = where;
  G::ParenthesesContext *group = wholeParentheses(expr);
  bool isGroup =
      group && (group->member().size() > 1 || !group->COMMA().empty() || group->member(0)->range());
  if (!isGroup) {
    result.expr = expression(expr);
    if (of)
      result.range = range(of);
    return result;
  }
  result.kind = ast::Subscript::Group;
  if (of)
    reporter.report(Code::GroupRange, span(of),
                    "expected ranges inside of the group: '(g in G, e)'");
  for (G::MemberContext *each : group->member()) {
    G::ParenthesesContext *inner = wholeParentheses(each->expression());
    if (inner && inner->member().size() > 1) {
      reporter.report(Code::GroupRange, span(each),
                      "expected a flat group: '(a, b, c)', found a group inside of it");
      continue;
    }
    result.members.push_back(subscript(each->expression(), each->range(), span(each)));
  }
  return result;
}

} // namespace tegula

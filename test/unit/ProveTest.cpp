//===- ProveTest.cpp - What holds for all sizes ---------------------------------------===//
//
// Part of the Tegula project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProveTesting.h"
#include <chrono>

using namespace tegula;

namespace {

struct BoundsCase {
  const char *facts, *domain, *expr, *size;
  Verdict verdict;
};

constexpr Verdict P = Verdict::Proved, R = Verdict::Refuted, D = Verdict::Depends;

const BoundsCase boundsCases[] = {
    // Plain indices.
    {"", "d0 in N", "d0", "N", P},
    {"", "d0 in N", "d0 + 1", "N", R},
    {"", "d0 in N", "d0 - 1", "N", R},
    {"", "d0 in N", "d0", "M", D},
    {"", "d0 in N", "d0 + 2", "M", D},
    {"", "d0 in N", "N - 1 - d0", "N", P},
    {"", "d0 in N", "N - d0", "N", R},
    {"", "d0 in 0:N - 1", "d0 + 1", "N", P},
    {"", "d0 in 1:N", "d0 - 1", "N", P},
    {"", "d0 in 0:N - 1", "N - 1 - d0", "N", P},
    {"", "d0 in 4", "d0", "4", P},
    {"", "d0 in 5", "d0", "4", R},
    {"", "d0 in 0:0", "d0 + 7", "4", P},
    {"", "", "0", "N", D},
    {"N >= 1", "", "0", "N", P},
    {"", "", "5", "5", R},
    {"", "", "4", "5", P},
    {"", "d0 in N", "0", "N", P},
    {"M >= N", "d0 in N", "d0", "M", P},
    {"M >= N + 2", "d0 in N", "d0 + 2", "M", P},
    {"M >= N + 1", "d0 in N", "d0 + 2", "M", D},
    {"M == 2*N", "d0 in N; d1 in 2", "2*d0 + d1", "M", P},
    {"M == 2*N", "d0 in N; d1 in 3", "2*d0 + d1", "M", R},
    {"", "d0 in A; d1 in B", "d0 + d1", "A + B - 1", P},
    {"", "d0 in A; d1 in B", "d0 + d1", "A + B - 2", R},
    {"", "d0 in A; d1 in B", "d0 + d1", "A + B", P},
    {"", "d0 in A", "B + d0", "A + B", P},
    {"", "d0 in A", "C + d0", "A + B", D},
    // Halves, pieces, parity.
    {"", "d0 in H", "d0 + H", "2*H", P},
    {"", "d0 in D//2", "2*d0 + 1", "D", P},
    {"", "d0 in D//2", "2*d0 + 2", "D", D},
    {"", "d0 in D//2", "d0 + D//2", "D", P},
    {"D % 2", "d0 in D", "(d0 + D//2) - D*((d0 + D//2)//D)", "D", P},
    {"", "d0 in (N + 1)//2", "2*d0", "N", P},
    {"", "d0 in (N + 1)//2", "2*d0 + 1", "N", D},
    {"", "d0 in N", "d0//2", "(N + 1)//2", P},
    {"", "d0 in N", "d0//2", "N//2", D},
    {"", "d0 in N", "d0//4", "(N + 3)//4", P},
    {"", "d0 in N", "d0//4", "(N + 2)//4", D},
    {"N % 4", "d0 in N", "d0//4", "N//4", P},
    {"", "d0 in 4*N", "d0//4", "N", P},
    {"", "d0 in N", "d0 - 4*(d0//4)", "4", P},
    {"", "d0 in N", "d0 - 4*(d0//4)", "3", D},
    {"", "d0 in N; d1 in 4", "4*d0 + d1", "4*N", P},
    {"", "d0 in N; d1 in 5", "4*d0 + d1", "4*N", R},
    {"", "d0 in N*E", "d0//E", "N", P},
    {"", "d0 in N*E", "d0 - E*(d0//E)", "E", P},
    {"", "d0 in N*E", "d0 - E*(d0//E)", "E - 1", R},
    // Groups.
    {"", "d0 in G; d1 in E", "d0*E + d1", "G*E", P},
    {"", "d0 in G; d1 in E", "d0*E + d1 + 1", "G*E", R},
    {"", "d0 in G; d1 in E", "d1*G + d0", "G*E", P},
    {"", "d0 in G; d1 in E", "d0*G + d1", "G*E", D},
    {"", "d0 in A; d1 in B; d2 in C", "(d0*B + d1)*C + d2", "A*B*C", P},
    {"", "d0 in A; d1 in B; d2 in C; d3 in D", "((d0*B + d1)*C + d2)*D + d3", "A*B*C*D", P},
    {"", "d0 in A; d1 in B; d2 in C", "(d0*B + d1)*C + d2 + 1", "A*B*C", R},
    {"E = C//G; C % G", "d0 in G; d1 in E", "d0*E + d1", "C", P},
    {"E = C//G", "d0 in G; d1 in E", "d0*E + d1", "C", P},
    {"E = C//G; C % G", "d0 in C", "d0//E", "G", P},
    {"E = C//G", "d0 in C", "d0//E", "G", D},
    {"C % 8", "d0 in 8; d1 in C//8", "d0*(C//8) + d1", "C", P},
    {"C % 8", "d0 in 8; d1 in C//8", "d1*8 + d0", "C", P},
    {"OG = O//G; CG = C//G; O % G; C % G", "d0 in O; d1 in CG", "(d0//OG)*CG + d1", "C", P},
    {"OG = O//G; C == CG*G; O % G", "d0 in O; d1 in CG", "(d0//OG)*CG + d1", "C", P},
    {"OG = O//G; CG = C//G; C % G", "d0 in O; d1 in CG", "(d0//OG)*CG + d1", "C", D},
    {"CG = C//G; C % G", "d0 in OG*G; d1 in CG", "(d0//OG)*CG + d1", "C", P},
    {"", "d0 in OG*G", "d0 - OG*(d0//OG)", "OG", P},
    {"", "d0 in HQ; d1 in HK", "d0//(HQ//HK)", "HK", D},
    {"HQ % HK", "d0 in HQ", "d0//(HQ//HK)", "HK", P},
    {"HQ % HK; HQ >= 1", "d0 in HQ", "d0*HK//HQ", "HK", P},
    // A divisor that is positive because an index runs below it.
    {"", "d0 in O//S; d1 in S", "S*d0 + d1", "O", P},
    {"P = O//S", "d0 in P; d1 in S", "S*d0 + d1", "O", P},
    {"P = (H - KH + 1)//S", "d0 in P; d1 in S", "S*d0 + d1", "H - KH + 1", P},
    {"P = (H - S)//S + 1", "d0 in P; d1 in S", "S*d0 + d1", "H", P},
    {"P = O//S + 1", "d0 in P; d1 in S", "S*d0 + d1", "O", R},
    // Convolutions without padding.
    {"P = H - KH + 1", "d0 in P; d1 in KH", "d0 + d1", "H", P},
    {"P = H - KH + 2", "d0 in P; d1 in KH", "d0 + d1", "H", R},
    {"P = H - KH", "d0 in P; d1 in KH", "d0 + d1", "H", P},
    {"P = (H - KH)//2 + 1", "d0 in P; d1 in KH", "2*d0 + d1", "H", P},
    {"P = (H - KH)//3 + 1", "d0 in P; d1 in KH", "3*d0 + d1", "H", P},
    {"P = (H - KH)//2 + 2", "d0 in P; d1 in KH", "2*d0 + d1", "H", R},
    {"P = (H - KH)//S + 1", "d0 in P; d1 in KH", "S*d0 + d1", "H", P},
    {"P = (H - KH)//S + 1", "d0 in P; d1 in KH", "S*d0 + d1 + 1", "H", D},
    {"P = (H - DI*(KH - 1) - 1)//S + 1", "d0 in P; d1 in KH", "S*d0 + DI*d1", "H", P},
    {"P = (H - DI*(KH - 1) - 1)//S + 1; DI >= 1", "d0 in P; d1 in KH", "S*d0 + DI*d1", "H", P},
    {"P = (H - 2*(KH - 1) - 1)//2 + 1", "d0 in P; d1 in KH", "2*d0 + 2*d1", "H", P},
    // With padding the read leaves the tensor.
    {"P = H + 2*pad - KH + 1", "d0 in P; d1 in KH", "d0 + d1 - pad", "H", D},
    {"P = H - KH + 3", "d0 in P; d1 in KH", "d0 + d1 - 1", "H", R},
    {"P = H + 2*pad - KH + 1", "d0 in P; d1 in KH", "d0 + d1", "H + 2*pad", P},
    {"P = H + 2*pad - KH + 1", "d0 in P; d1 in KH; d0 + d1 >= pad; d0 + d1 < H + pad",
     "d0 + d1 - pad", "H", P},
    // Pooling.
    {"P = (H - 2)//2 + 1", "d0 in P; d1 in 2", "2*d0 + d1", "H", P},
    {"P = H//2", "d0 in P; d1 in 2", "2*d0 + d1", "H", P},
    {"P = (H + 1)//2", "d0 in P; d1 in 2", "2*d0 + d1", "H", D},
    {"P = (H - K + S - 1)//S + 1", "d0 in P; d1 in K", "S*d0 + d1", "H", D},
    {"", "d0 in P; d1 in d0*H//P:((d0 + 1)*H + P - 1)//P", "d1", "H", P},
    {"", "d0 in P; d1 in d0*H//P:((d0 + 1)*H + P - 1)//P", "d1 + 1", "H", D},
    {"", "d0 in 7; d1 in d0*H//7:((d0 + 1)*H + 6)//7", "d1", "H", P},
    // Transposed convolution by hand.
    {"P = (H - 1)*S + K", "d0 in H; d1 in K", "S*d0 + d1", "P", P},
    {"P = (H - 1)*S + K - 1", "d0 in H; d1 in K", "S*d0 + d1", "P", R},
    // Pixel shuffle.
    {"C == 4*O", "d0 in O; d1 in 2*H", "4*d0 + 2*(d1 - 2*(d1//2))", "C", P},
    {"C == R*R*O", "d0 in O; d1 in R; d2 in R", "(d0*R + d1)*R + d2", "C", P},
    {"", "d0 in H*R", "d0//R", "H", P},
    {"C % (R*R); O = C//(R*R)", "d0 in O; d1 in R; d2 in R", "(d0*R + d1)*R + d2", "C", P},
    {"H % R", "d0 in H//R; d1 in R", "d0*R + d1", "H", P},
    {"", "d0 in H//R; d1 in R", "d0*R + d1", "H", P},
    // Triangles and windows.
    {"", "d0 in N; d1 in 0:d0 + 1", "d1", "N", P},
    {"", "d0 in N; d1 in 0:d0 + 1", "d0 - d1", "N", P},
    {"", "d0 in N; d1 in 0:d0 + 2", "d1", "N", R},
    {"", "d0 in N; d1 in d0:N", "d1", "N", P},
    {"", "d0 in N; d1 in d0 + 1:N", "d1 - d0 - 1", "N", P},
    {"", "d0 in N; d1 in K; d1 <= d0", "d1", "N", P},
    {"", "d0 in N; d1 in K; d1 <= d0", "d0 - d1", "N", P},
    {"", "d0 in N; d1 in K", "d0 - d1", "N", D},
    {"", "d0 in N; d1 in W; d0 + d1 >= W; d0 + d1 - W < N", "d0 + d1 - W", "N", P},
    {"", "d0 in N; d1 in max(0, d0 - W):min(N, d0 + W + 1)", "d1", "N", P},
    {"", "d0 in N; d1 in max(0, d0 - W):d0 + W + 1", "d1", "N", D},
    {"", "d0 in N; d1 in max(0, d0 - W):d0 + 1", "d1", "N", P},
    {"", "d0 in N; d1 in 0:d0 + 1", "d0*(d0 + 1)//2 + d1", "N*(N + 1)//2", P},
    // Loops.
    {"", "d0 in 1:T", "d0 - 1", "T", P},
    {"", "d0 in T", "T - 1 - d0", "T", P},
    {"", "d0 in T", "T - d0", "T", R},
    {"", "d0 in 0:T - 1", "d0 + 1", "T", P},
    {"", "d0 in 0:T//2", "T - 1 - d0", "T", P},
    {"", "d0 in (T + B - 1)//B; d1 in d0*B:min(T, d0*B + B)", "d1", "T", P},
    {"", "d0 in (T + B - 1)//B; d1 in d0*B:d0*B + B", "d1", "T", D},
    // Minima, maxima, conditionals.
    {"", "d0 in N", "min(d0, M - 1)", "M", D},
    {"M >= 1", "d0 in N", "min(d0, M - 1)", "M", P},
    {"M >= 1", "d0 in N", "max(min(d0 + K, M - 1), 0)", "M", P},
    {"M >= 1", "d0 in N", "max(min(d0 - K, M - 1), 0)", "M", P},
    {"M >= 1", "", "max(min(d0, M - 1), 0)", "M", P},
    {"", "d0 in min(M, N)", "d0", "M", P},
    {"", "d0 in max(M, N)", "d0", "M", D},
    {"", "d0 in max(M, N)", "d0", "M + N", P},
    {"", "d0 in N", "where(d0 < M, d0, 0)", "N", P},
    {"M >= 1", "d0 in N", "where(d0 < M, d0, 0)", "M", P},
    {"M >= 1", "d0 in N", "where(d0 <= M, d0, 0)", "M", D},
    {"", "d0 in N", "where(d0 == N - 1, 0, d0 + 1)", "N", P},
    {"", "d0 in N", "where(d0 == 0, N - 1, d0 - 1)", "N", P},
    {"", "d0 in N", "where(d0 == 1, N - 1, d0 - 1)", "N", R},
    // Wrapping.
    {"", "d0 in N", "(d0 + 1) - N*((d0 + 1)//N)", "N", P},
    {"", "d0 in N; d1 in K", "(d0 + d1) - N*((d0 + d1)//N)", "N", P},
    {"", "d0 in N", "(d0 - K) - N*((d0 - K)//N)", "N", P},
    {"", "d0 in N", "d0 - 7*(d0//7)", "7", P},
    {"", "d0 in N", "(d0 + 1)//2", "N", P},
    // Data.
    {"", "d0 >= 0; d0 < S", "d0", "S", P},
    {"", "d0 >= 0", "d0", "S", D},
    {"", "d1 in N; d0 >= d1; d0 < S", "d0 - d1", "S", P},
    // Signed constants.
    {"signed pad", "d0 in N", "d0 + pad", "N + pad", D},
    {"signed pad; pad >= 0", "d0 in N", "d0 + pad", "N + pad", P},
    // Products.
    {"", "d0 in M*N", "d0", "N*M", P},
    {"", "d0 in M", "d0*N", "M*N", D},
    {"N >= 1", "d0 in M", "d0*N", "M*N", P},
    {"A >= B", "d0 in B*C", "d0", "A*C", P},
    {"", "d0 in 1 + (L - 1)//2", "2*d0", "L", P},
};

std::string run(const BoundsCase &c, Verdict &verdict) {
  Prover prover(factsOf(c.facts));
  Outcome outcome = prover.inBounds(ix(c.expr), ix(c.size), domainOf(c.domain));
  verdict = outcome.verdict;
  return describe(outcome);
}

TEST(Prove, Bounds) {
  for (const BoundsCase &c : boundsCases) {
    Verdict verdict;
    std::string text = run(c, verdict);
    EXPECT_EQ(verdict, c.verdict) << "CASE " << "[" << c.facts << "] [" << c.domain << "] "
                                  << c.expr << " < " << c.size << ": " << text;
  }
}

struct ImageCase {
  const char *facts;
  std::vector<const char *> images;
  Verdict verdict;
};

TEST(Prove, Injective) {
  const ImageCase cases[] = {
      {"", {"d0 in N; d1 in M -> d0, d1"}, P},
      {"", {"d0 in N; d1 in M -> d1, d0"}, P},
      {"", {"d0 in N -> d0 + 3"}, P},
      {"", {"d0 in N -> N - 1 - d0"}, P},
      {"", {"d0 in N -> 2*d0 + 1"}, P},
      {"S >= 1", {"d0 in N -> S*d0 + r"}, P},
      {"", {"d0 in N -> S*d0 + r"}, D},
      {"", {"d0 in N -> d0//2"}, D},
      {"", {"d0 in N -> d0//2, d0 - 2*(d0//2)"}, P},
      {"K >= 1", {"d0 in N -> d0//K, d0 - K*(d0//K)"}, P},
      {"", {"d0 in N -> 0"}, D},
      {"", {"d0 in 1 -> 0"}, P},
      {"", {"d0 in 2 -> 0"}, R},
      {"", {"d0 in N; d1 in M -> d0"}, D},
      {"", {"d0 in N; d1 in M -> d0 + d1"}, D},
      {"", {"d0 in G; d1 in E -> d0*E + d1"}, P},
      {"", {"d0 in G; d1 in E -> d1*G + d0"}, P},
      {"", {"d0 in G; d1 in E -> d0*(E + 1) + d1"}, P},
      {"", {"d0 in G; d1 in E -> d0*(E - 1) + d1"}, D},
      {"", {"d0 in A; d1 in B; d2 in C -> (d0*B + d1)*C + d2"}, P},
      {"", {"d0 in A; d1 in B; d2 in C -> (d0*C + d1)*C + d2"}, D},
      {"", {"d0 in A; d1 in B; d2 in C; d3 in D -> d3, (d0*B + d1)*C + d2"}, P},
      {"", {"d0 in N; d1 in 0:d0 + 1 -> d0, d1"}, P},
      {"", {"d0 in N; d1 in 0:d0 + 1 -> d0 - d1, d1"}, P},
      {"", {"d0 in N; d1 in N -> d0 - d1, d1 + d0"}, P},
      {"", {"d0 in H; d1 in 2; d2 in W; d3 in 2 -> 2*d0 + d1, 2*d2 + d3"}, P},
      {"", {"d0 in N; d1 in K -> d0, d5"}, D},
      {"", {"d0 in N -> d0, d5"}, P},
      {"", {"d0 in N; d1 in M; d0 == d1 -> d0"}, P},
  };
  for (const ImageCase &c : cases) {
    Prover prover(factsOf(c.facts));
    Outcome outcome = prover.injective(imageOf(c.images[0]));
    EXPECT_EQ(outcome.verdict, c.verdict)
        << "CASE [" << c.facts << "] " << c.images[0] << ": " << describe(outcome);
  }
}

TEST(Prove, Disjoint) {
  const ImageCase cases[] = {
      {"", {"d0 in N -> d0, 0", "d0 in N -> d0, 1"}, P},
      {"", {"d0 in N -> d0, 0", "d0 in N; d1 in M -> d0, d1"}, R},
      {"", {"d0 in N -> d0, 0", "d0 in N; d1 in 1:M -> d0, d1"}, P},
      {"", {"d0 in C -> d0", "d0 in D -> C + d0"}, P},
      {"", {"d0 in C -> d0", "d0 in D -> B + d0"}, D},
      {"B >= C", {"d0 in C -> d0", "d0 in D -> B + d0"}, P},
      {"", {"d0 in C -> d0", "d0 in D -> C + d0 - 1"}, R},
      {"", {"d0 in N -> 2*d0", "d0 in N -> 2*d0 + 1"}, P},
      {"", {"d0 in N -> 3*d0", "d0 in N -> 3*d0 + 2"}, P},
      {"", {"d0 in N -> 2*d0", "d0 in N -> 2*d0 + 2"}, D},
      {"", {"d0 in N -> 2*d0", "d0 in M -> 3*d0"}, R},
      {"", {"d0 in N//2 -> d0", "d0 in N//2:N -> d0"}, P},
      {"", {"d0 in N//2 -> 2*d0 + 1", "d0 in N//2 -> 2*d0"}, P},
      {"", {"d0 in N; d1 in 0:d0 + 1 -> d0, d1", "d0 in N; d1 in d0 + 1:N -> d0, d1"}, P},
      {"", {"d0 in N; d1 in 0:d0 + 1 -> d0, d1", "d0 in N; d1 in d0:N -> d0, d1"}, R},
      {"", {"d0 in N; d1 in N; d1 <= d0 -> d0, d1", "d0 in N; d1 in N; d0 < d1 -> d0, d1"}, P},
      {"", {"d0 in P -> P + d0", "d0 in P -> P - 1 - d0"}, P},
      {"", {"d0 in 4 -> d0", "d0 in 4 -> d0 + 3"}, R},
      {"", {"d0 in 4 -> d0", "d0 in 4 -> d0 + 4"}, P},
      {"", {"d0 in G; d1 in E -> d0*(2*E) + d1", "d0 in G; d1 in E -> d0*(2*E) + d1 + E"}, P},
  };
  for (const ImageCase &c : cases) {
    Prover prover(factsOf(c.facts));
    Outcome outcome = prover.disjoint(imageOf(c.images[0]), imageOf(c.images[1]));
    EXPECT_EQ(outcome.verdict, c.verdict) << "CASE [" << c.facts << "] " << c.images[0] << " | "
                                          << c.images[1] << ": " << describe(outcome);
  }
  // A loop variable has one value for both.
  Prover prover;
  Image now = imageOf("d9 in T; d0 in N -> d9, d0"),
        next = imageOf("d9 in T; d0 in N -> d9 + 1, d0");
  EXPECT_TRUE(prover.disjoint(now, next, {9}).proved());
  EXPECT_FALSE(prover.disjoint(now, next).proved());
}

TEST(Prove, Covers) {
  struct {
    const char *facts;
    std::vector<const char *> pieces;
    const char *dims;
    Verdict verdict;
  } cases[] = {
      {"", {"d0 in N; d1 in M -> d0, d1"}, "N, M", P},
      {"", {"d0 in N; d1 in M -> d1, d0"}, "M, N", P},
      {"", {"d0 in N -> N - 1 - d0"}, "N", P},
      {"", {"d0 in N -> d0 + 1"}, "N", R},
      {"", {"d0 in N -> d0"}, "M", D},
      {"N >= M", {"d0 in N -> d0"}, "M", P},
      {"", {"d0 in 3 -> d0"}, "4", R},
      {"", {"d0 in N -> d0, 0", "d0 in N -> d0, 1"}, "N, 2", P},
      {"", {"d0 in N -> d0, 0", "d0 in N -> d0, 2"}, "N, 3", D},
      {"", {"d0 in N; d1 in C -> d0, d1", "d0 in N; d1 in D -> d0, C + d1"}, "N, C + D", P},
      {"", {"d0 in N; d1 in D -> d0, C + d1", "d0 in N; d1 in C -> d0, d1"}, "N, C + D", P},
      {"K == C + D", {"d0 in N; d1 in C -> d0, d1", "d0 in N; d1 in D -> d0, C + d1"}, "N, K", P},
      {"", {"d0 in N; d1 in C -> d0, d1", "d0 in N; d1 in D -> d0, C + d1"}, "N, K", D},
      {"", {"d0 in A -> d0", "d0 in B -> A + d0", "d0 in C -> A + B + d0"}, "A + B + C", P},
      {"", {"d0 in N//2 -> d0", "d0 in N//2:N -> d0"}, "N", P},
      {"", {"d0 in N//2 -> d0", "d0 in N//2:N - 1 -> d0"}, "N", D},
      {"", {"d0 in N -> 2*d0", "d0 in N -> 2*d0 + 1"}, "2*N", P},
      {"", {"d0 in N -> 2*d0"}, "2*N", D},
      {"N % 2", {"d0 in N//2 -> 2*d0", "d0 in N//2 -> 2*d0 + 1"}, "N", P},
      {"", {"d0 in (N + 1)//2 -> 2*d0", "d0 in N//2 -> 2*d0 + 1"}, "N", P},
      {"", {"d0 in N//2 -> 2*d0", "d0 in N//2 -> 2*d0 + 1"}, "N", D},
      {"", {"d0 in N -> 3*d0", "d0 in N -> 3*d0 + 1", "d0 in N -> 3*d0 + 2"}, "3*N", P},
      {"", {"d0 in G; d1 in E -> d0*E + d1"}, "G*E", P},
      {"E = C//G; C % G", {"d0 in G; d1 in E -> d0*E + d1"}, "C", P},
      {"E = C//G", {"d0 in G; d1 in E -> d0*E + d1"}, "C", D},
      {"", {"d0 in A; d1 in B; d2 in C -> (d0*B + d1)*C + d2"}, "A*B*C", P},
      {"", {"d0 in H; d1 in 2; d2 in W; d3 in 2 -> 2*d0 + d1, 2*d2 + d3"}, "2*H, 2*W", P},
      {"", {"d0 in N; d1 in 0:d0 + 1 -> d0, d1", "d0 in N; d1 in d0 + 1:N -> d0, d1"}, "N, N", P},
      {"", {"d0 in N; d1 in 0:d0 -> d0, d1", "d0 in N; d1 in d0 + 1:N -> d0, d1"}, "N, N", R},
      {"",
       {"d0 in N; d1 in 0:d0 -> d0, d1", "d0 in N; d1 in d0 + 1:N -> d0, d1", "d0 in N -> d0, d0"},
       "N, N",
       P},
      // Three parts around a corner.
      {"",
       {"d0 in A + B; d1 in C -> d0, d1", "d0 in A; d1 in D -> d0, C + d1",
        "d0 in B; d1 in D -> A + d0, C + d1"},
       "A + B, C + D",
       P},
      {"",
       {"d0 in A + B; d1 in C -> d0, d1", "d0 in A; d1 in D -> d0, C + d1",
        "d0 in B; d1 in D -> A + d0 + 1, C + d1"},
       "A + B, C + D",
       D},
      {"", {"d2 in T; d0 in N -> d2, d0"}, "T, N", P},
      {"", {"d2 in T; d0 in N -> T - 1 - d2, d0"}, "T, N", P},
      {"", {"d2 in 1:T; d0 in N -> d2, d0", "d0 in N -> 0, d0"}, "T, N", P},
      {"", {"d2 in K; d0 in N -> d0"}, "N", D},
      {"K >= 1", {"d2 in K; d0 in N -> d0"}, "N", P},
      {"", {" -> "}, "", P},
  };
  for (auto &c : cases) {
    Prover prover(factsOf(c.facts));
    std::vector<Image> pieces;
    for (const char *piece : c.pieces)
      pieces.push_back(imageOf(piece));
    Outcome outcome =
        prover.covers(pieces, imageOf((std::string("->") + c.dims).c_str()).subscripts);
    Verdict wanted = c.verdict;
    // Left-out elements are not shown to be left out for all sizes.
    if (wanted == R && outcome.failsEverywhereTried)
      wanted = outcome.verdict;
    EXPECT_EQ(outcome.verdict, wanted) << "CASE [" << c.facts << "] " << llvm::join(c.pieces, " | ")
                                       << " in " << c.dims << ": " << describe(outcome);
  }
}

/// Questions larger than any program asks end soon, with the right answer or none.
TEST(Prove, WideAndDeep) {
  auto symbol = [](unsigned k) { return IndexExpr::symbol("S" + std::to_string(k)); };
  for (int n : {4, 16, 24, 40}) {
    Domain domain;
    IndexExpr sum, size = 1;
    for (int k = 0; k < n; ++k) {
      domain.add(k, 0, symbol(k));
      sum = sum + 2 * IndexExpr::dim(k);
      size = size + 2 * symbol(k);
    }
    Prover prover;
    Verdict verdict = prover.inBounds(sum, size, domain).verdict;
    EXPECT_TRUE(verdict == P || (n > 24 && verdict == Verdict::Unknown)) << n << " " << verdict;
    EXPECT_NE(prover.inBounds(sum, size - 2 * n - 1, domain).verdict, P) << n;
  }
  for (int n : {2, 4, 7, 12}) {
    Domain domain;
    IndexExpr radix, size = 1;
    for (int k = 0; k < n; ++k) {
      domain.add(k, 0, symbol(k));
      radix = radix * symbol(k) + IndexExpr::dim(k);
      size = size * symbol(k);
    }
    Prover prover;
    Verdict verdict = prover.inBounds(radix, size, domain).verdict;
    EXPECT_TRUE(verdict == P || (n > 8 && verdict == Verdict::Unknown)) << n << " " << verdict;
    EXPECT_NE(prover.inBounds(radix + 1, size, domain).verdict, P) << n;
  }
  for (int n : {5, 12}) {
    Domain domain = domainOf("d0 in N");
    IndexExpr nested = IndexExpr::dim(0), divided = IndexExpr::dim(0);
    for (int k = 0; k < n; ++k) {
      nested = IndexExpr::select(IndexExpr::Cmp::LT, nested, symbol(k), nested + 1, nested - 1);
      divided = IndexExpr::floorDiv(divided + 3 + k, 2 + k % 3) + IndexExpr::dim(0);
    }
    Prover prover;
    EXPECT_NE(prover.inBounds(nested, ix("N") + (n - 1), domain).verdict, P);
    EXPECT_NE(prover.inBounds(divided, ix("N"), domain).verdict, P);
  }
}

/// What `cat` of n tensors with sizes of their own asks: each piece lies in the whole, and together
/// they fill it.
TEST(Prove, ManyPieces) {
  auto symbol = [](unsigned k) { return IndexExpr::symbol("S" + std::to_string(k)); };
  for (unsigned n : {2, 40, 64, 100, 200}) {
    IndexExpr sum;
    std::vector<IndexExpr> starts;
    std::vector<Image> pieces;
    for (unsigned k = 0; k < n; ++k) {
      Image piece;
      piece.domain.add(0, 0, symbol(k));
      piece.subscripts.push_back(sum + IndexExpr::dim(0));
      pieces.push_back(piece);
      starts.push_back(sum);
      sum = sum + symbol(k);
    }
    Prover prover;
    for (unsigned k : {0u, n / 2, n - 1}) {
      EXPECT_TRUE(prover.inBounds(pieces[k].subscripts[0], sum, pieces[k].domain).proved())
          << n << " " << k;
      EXPECT_FALSE(prover.inBounds(pieces[k].subscripts[0] + 1, sum, pieces[k].domain).proved() &&
                   k + 1 == n);
    }
    EXPECT_TRUE(prover.covers(pieces, {sum}).proved()) << n;
    pieces.erase(pieces.begin() + n / 2);
    EXPECT_FALSE(prover.covers(pieces, {sum}).proved()) << n;
  }
}

/// A search has 250 variables: what is proved of two of a thousand sizes does not depend on the
/// others.
TEST(Prove, ManySizes) {
  SizeFacts facts;
  for (unsigned i = 0; i != 1000; ++i) {
    std::string n = std::to_string(i);
    facts.facts.push_back(Condition::lessEqual(ix("N" + n), ix("M" + n)));
    facts.definitions.push_back({"Q" + n, ix("N" + n + "//4")});
  }
  Prover prover(std::move(facts));
  EXPECT_TRUE(prover.inBounds(ix("d0"), ix("M998"), domainOf("d0 in N998")).proved());
  EXPECT_TRUE(prover.inBounds(ix("4*d0 + 3"), ix("M7"), domainOf("d0 in Q7")).proved());
  EXPECT_FALSE(prover.inBounds(ix("d0"), ix("M998"), domainOf("d0 in N997")).proved());
  EXPECT_FALSE(prover.inBounds(ix("d0"), ix("N5"), domainOf("d0 in M5")).proved());
  EXPECT_FALSE(prover.proves(Condition::nonNegative(ix("Q7 - 1"))));
}

TEST(Prove, Counterexamples) {
  Prover prover;
  Outcome outcome = prover.inBounds(ix("d0 + 2"), ix("M"), domainOf("d0 in N"));
  ASSERT_EQ(outcome.verdict, D);
  ASSERT_TRUE(outcome.counterexample);
  EXPECT_EQ(outcome.counterexample->sizes.size(), 2u);
  EXPECT_EQ(outcome.counterexample->point.size(), 1u);
  EXPECT_GE(outcome.counterexample->value, outcome.counterexample->bound);
  ASSERT_EQ(outcome.suffices.size(), 1u);
  EXPECT_EQ(outcome.suffices[0].str(), "M - N - 2 >= 0");
  EXPECT_TRUE(outcome.necessary);

  outcome = prover.equal(ix("M"), ix("3*K"));
  ASSERT_EQ(outcome.verdict, D);
  EXPECT_TRUE(outcome.counterexample);
  outcome = prover.equal(ix("N + 1"), ix("N"));
  EXPECT_EQ(outcome.verdict, R);
  EXPECT_TRUE(prover.equal(ix("(A + B)*2"), ix("2*B + 2*A")).proved());
  outcome = prover.holds(Condition::divides(ix("C"), ix("8")));
  EXPECT_EQ(outcome.verdict, D);
  EXPECT_TRUE(prover.proves(Condition::divides(ix("8*C + 16"), ix("8"))));
  EXPECT_FALSE(prover.proves(Condition::nonZero(ix("S"))));
  prover.assume(Condition::nonZero(ix("S")));
  EXPECT_TRUE(prover.proves(Condition::nonZero(ix("S"))));
  EXPECT_TRUE(prover.proves(Condition::nonNegative(ix("S - 1"))));
  prover.define("P", ix("(H - KH)//S + 1"));
  EXPECT_FALSE(prover.proves(Condition::nonNegative(ix("P"))));
  prover.assume(Condition::nonNegative(ix("P")));
  EXPECT_TRUE(prover.proves(Condition::nonNegative(ix("P"))));
}

TEST(Prove, SimplifyAndRange) {
  struct {
    const char *facts, *domain, *expr, *simple, *min, *max;
  } cases[] = {
      {"", "d0 in G; d1 in E", "(d0*E + d1)//E", "d0", "0", "G - 1"},
      {"", "d0 in G; d1 in E", "(d0*E + d1) - E*((d0*E + d1)//E)", "d1", "0", "E - 1"},
      {"", "d0 in N; d1 in 4", "(4*d0 + d1)//4", "d0", "0", "N - 1"},
      {"E = C//G; C % G", "d0 in G; d1 in E", "(d0*E + d1)//E", "d0", "0", "G - 1"},
      {"", "d0 in N", "min(d0, N - 1)", "d0", "0", "N - 1"},
      {"", "d0 in N", "max(d0 - N, 0)", "0", "0", "0"},
      {"", "d0 in N", "where(d0 < N, d0, N)", "d0", "0", "N - 1"},
      {"", "d0 in N", "where(d0 < 2, 1, 0)", "where(d0 < 2, 1, 0)", "0", "1"},
      {"", "d0 in N; d1 in 0:d0 + 1", "d0 - d1", "d0 - d1", "0", "N - 1"},
      {"", "d0 in N", "N - 1 - d0", "N - d0 - 1", "0", "N - 1"},
      {"", "d0 in 4*N", "d0//4", "d0//4", "0", "N - 1"},
      {"", "d0 in N; d1 in N", "d0 - d1", "d0 - d1", "1 - N", "N - 1"},
      {"", "d0 in 8", "d0*d0", "d0*d0", "0", "49"},
      {"", "d0 in 16", "(d0//4)//2", "d0//8", "0", "1"},
  };
  for (auto &c : cases) {
    Prover prover(factsOf(c.facts));
    IndexExpr simple = prover.simplify(ix(c.expr), domainOf(c.domain));
    Range range = prover.range(ix(c.expr), domainOf(c.domain));
    EXPECT_EQ(simple, ix(c.simple)) << c.expr << " is " << simple.str();
    ASSERT_TRUE(range.min && range.max) << c.expr;
    EXPECT_EQ(*range.min, ix(c.min)) << c.expr << " from " << range.min->str();
    EXPECT_EQ(*range.max, ix(c.max)) << c.expr << " to " << range.max->str();
  }
}

TEST(Prove, DISABLED_Timing) { // measures
  std::vector<std::pair<double, const BoundsCase *>> times;
  double total = 0;
  for (const BoundsCase &c : boundsCases) {
    if (c.verdict != P)
      continue;
    Prover prover(factsOf(c.facts));
    Domain domain = domainOf(c.domain);
    IndexExpr expr = ix(c.expr), size = ix(c.size);
    prover.inBounds(expr, size, domain);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 5; ++i)
      prover.inBounds(expr, size, domain);
    double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start)
                    .count() /
                5;
    times.push_back({us, &c});
    total += us;
  }
  llvm::sort(times, [](auto &a, auto &b) { return a.first < b.first; });
  printf("proofs: median %.1f us, mean %.1f us\n", times[times.size() / 2].first,
         total / times.size());
  for (size_t i = times.size() - 6; i < times.size(); ++i)
    printf("  %.1f us: %s [%s] [%s]\n", times[i].first, times[i].second->expr,
           times[i].second->facts, times[i].second->domain);
}

} // namespace

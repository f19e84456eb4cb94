// RUN: tegula-opt %s -split-input-file -verify-diagnostics

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

// expected-error @below {{expected an element type (f64 f32 f16 bf16 f8E4M3FN f8E5M2 i64 i32 i16 i8 i4 ui64 ui32 ui16 ui8 ui4 i1), found 'i7'}}
func.func private @f(!tgl.tensor<[M], i7>)

// -----

// expected-error @below {{expected sizes as dims of a tensor, found 'd0 + 1'}}
func.func private @f(!tgl.tensor<[d0 + 1], f32>)

// -----

// expected-error @below {{expected an integer expression}}
func.func private @f(!tgl.tensor<[M + ], f32>)

// -----

// expected-error @below {{expected nonneg, zero, nonzero, divides or inbounds, found 'positive'}}
func.func private @f() attributes {a = #tgl.guard<positive M : "x">}

// -----

// expected-error @below {{expected a message for whoever breaks the guard}}
func.func private @f() attributes {a = #tgl.guard<nonneg M : "">}

// -----

// expected-error @below {{expected the bounds of d0 to use earlier dims only}}
func.func private @f() attributes {a = #tgl.guard<inbounds d0, M for 0 to d0 : "x">}

// -----

// expected-error @below {{expected dims below d1 in a guard over 1 ranges}}
func.func private @f() attributes {a = #tgl.guard<inbounds d1, M for 0 to M : "x">}

// -----

// expected-error @below {{expected 'name = argument : dim' with numbers >= 0}}
func.func private @f() attributes {a = #tgl.size<M = N : 1>}

// -----

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

// expected-error @below {{expected argument 0 to have a tgl.name}}
tgl.kernel @k(%x: !tgl.tensor<[], f32>) {
}

// -----

// expected-error @below {{expected distinct argument names, found 'x' twice}}
tgl.kernel @k(%x: !tgl.tensor<[], f32> {tgl.name = "x", tgl.role = "in"},
              %y: !tgl.tensor<[], f32> {tgl.name = "x", tgl.role = "out"}) {
}

// -----

// expected-error @below {{expected the tgl.role of argument 'x' to be in, inout, out or scalar, found 'input'}}
tgl.kernel @k(%x: !tgl.tensor<[], f32> {tgl.name = "x", tgl.role = "input"}) {
}

// -----

// expected-error @below {{expected scalar argument 's' to have type i1, i32, i64, f32 or f64, found 'f16'}}
tgl.kernel @k(%s: f16 {tgl.name = "s", tgl.role = "scalar"}) {
}

// -----

// expected-error @below {{expected argument 's' to be a tensor, found 'f32'}}
tgl.kernel @k(%s: f32 {tgl.name = "s", tgl.role = "in"}) {
}

// -----

// expected-error @below {{size 'M' is bound by dim 1 of argument 0, which has no such dim}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 1] {
}

// -----

// expected-error @below {{size 'N' is bound by a dim that is 'M'}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [N = 0 : 0] {
}

// -----

// expected-error @below {{size 'P' is derived from 'Q', which is not a size before it}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"})
    sizes [M = 0 : 0, P = M + Q, Q = M] {
}

// -----

// expected-error @below {{'N' in '!tgl.tensor<[M, N], f32>' is not a size of the kernel}}
tgl.kernel @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
}

// -----

// expected-error @below {{'N' in a guard is not a size of the kernel}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"})
    sizes [M = 0 : 0] guards [zero N : "text"] {
}

// -----

tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
  // expected-error @below {{uses 'L', which is not a size of the kernel}}
  tgl.parallel (%i = 0 to L) {
  }
}

// -----

// expected-error @below {{expected no sizes and guards on a private kernel}}
tgl.kernel private @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
}

// -----

tgl.kernel private @callee(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) {
}
tgl.kernel @k(%x: !tgl.tensor<[M], f16> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
  // expected-error @below {{expected argument 0 to be '!tgl.tensor<[M], f32>', found '!tgl.tensor<[M], f16>'}}
  tgl.call @callee(%x) : !tgl.tensor<[M], f16>
}

// -----

tgl.kernel @k(%x: !tgl.tensor<[M], f16> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
  // expected-error @below {{'nowhere' is not a kernel here}}
  tgl.call @nowhere(%x) : !tgl.tensor<[M], f16>
}

// -----

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f16> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected 2 subscripts for '!tgl.tensor<[M, N], f16>', found 1}}
  %v = tgl.read %x[0] : !tgl.tensor<[M, N], f16>
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M], f16> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected result type 'f32', found 'f64'}}
  %v = "tgl.read"(%x) <{subscripts = [#tgl.expr<0>], exactNumerators = [], exactDenominators = [], operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tgl.tensor<[M], f16>) -> f64
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M], f16> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{d0 stands for no value: the op has 0 indices}}
  %v = "tgl.read"(%x) <{subscripts = [#tgl.expr<d0>], exactNumerators = [], exactDenominators = [], operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tgl.tensor<[M], f16>) -> f32
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{expected either fill or checked}}
  %v = tgl.read %x[0] fill %zero checked "x[0]" : !tgl.tensor<[M], f32>
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M], f16> {tgl.name = "x", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f64
  // expected-error @below {{expected a value of type 'f32' for '!tgl.tensor<[M], f16>', found 'f64'}}
  tgl.write %zero, %x[0] : f64, !tgl.tensor<[M], f16>
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M], i1> {tgl.name = "x", tgl.role = "out"}) {
  %true = arith.constant true
  // expected-error @below {{expected numbers to add, found i1}}
  tgl.write add %true, %x[0] : i1, !tgl.tensor<[M], i1>
}

// -----

tgl.kernel private @k(%x: f32 {tgl.name = "x", tgl.role = "scalar"}) {
  // expected-error @below {{expected nearest with an integer target}}
  %a = tgl.convert %x to f16 nearest : f32 -> f32
}

// -----

tgl.kernel private @k(%x: f32 {tgl.name = "x", tgl.role = "scalar"}) {
  // expected-error @below {{expected result type 'i32', found 'i64'}}
  %a = tgl.convert %x to i8 : f32 -> i64
}

// -----

//===----------------------------------------------------------------------===//
// Axes
//===----------------------------------------------------------------------===//

tgl.kernel private @k() {
  // expected-note @below {{previously referenced here}}
  // expected-error @below {{region entry argument '%j' is already in use}}
  tgl.parallel (%i = 0 to %j, %j = 0 to 4) {
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected the bounds of axis 0 to use indices and earlier axes, found d0}}
  "tgl.parallel"() <{lows = [#tgl.expr<d0>], highs = [#tgl.expr<4>]}> ({
  ^bb0(%i: index):
  }) : () -> ()
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected a block argument for each of 1 axes, found 0}}
  "tgl.parallel"() <{lows = [#tgl.expr<0>], highs = [#tgl.expr<4>]}> ({
  ^bb0:
  }) : () -> ()
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected to yield ('f32'), found ('f64')}}
  %s = tgl.reduce sum (%k = 0 to 3) -> f32 {
    %v = arith.constant 0.0 : f64
    tgl.yield %v : f64
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected to yield ('f32', 'i1'), found ('f32')}}
  %s = tgl.reduce sum filtered (%k = 0 to 3) -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected one axis, found 2}}
  %s = tgl.reduce argmax (%k = 0 to 3, %l = 0 to 3) -> i64 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected f32 or f64, found 'i32'}}
  %s = tgl.reduce mean (%k = 0 to 3) -> i32 {
    %v = arith.constant 0 : i32
    tgl.yield %v : i32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected unbiased with var only}}
  %s = tgl.reduce mean unbiased (%k = 0 to 3) -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected a kind of reduction, found 'median'}}
  %s = tgl.reduce median (%k = 0 to 3) -> f32 {
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected a position for each of 1 axes, found 2}}
  %s = tgl.scan cumsum (%k = 0 to 3) at [0, 1] -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected descending with sort and argsort only}}
  %s = tgl.scan cumsum descending (%k = 0 to 3) at [0] -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected floats in an exclusive maximum or minimum}}
  %s = tgl.scan cummax exclusive (%k = 0 to 3) at [0] -> i32 {
    %v = arith.constant 0 : i32
    tgl.yield %v : i32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected to yield ('f32', 'f32'), found ('f32')}}
  %s = tgl.scan recurrence (%k = 0 to 3) at [0] -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expected a tile of at least one element, found 0}}
  tgl.tiles (%b, %e) = 0 to 3 size 0 {
  }
}

// -----

tgl.kernel private @k() {
  %v = arith.constant 0.0 : f32
  // expected-error @below {{expected to yield ('f32'), found ()}}
  %r = tgl.for %t = 0 to 3 iter (%h = %v : f32) {
    tgl.yield
  }
}

// -----

tgl.kernel private @k() {
  // expected-error @below {{expects parent op to be one of 'tgl.reduce, tgl.scan, tgl.for, tgl.tiles'}}
  tgl.yield
}

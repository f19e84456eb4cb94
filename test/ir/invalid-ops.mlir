// RUN: tegula-opt %s -split-input-file -verify-diagnostics
// What the verifiers of ops refuse; test/ir/invalid.mlir has types, kernels and the rest.

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected a number (i32, i64, f32, f64), found }}
  %s = tgl.reduce sum (%k = 0 to 3) -> i1 {
    %v = arith.constant true
    tgl.yield %v : i1
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected result type i1, found }}
  %s = tgl.reduce any (%k = 0 to 3) -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected result type i32 or i64, found }}
  %s = tgl.reduce count (%k = 0 to 3) -> f32 {
    %v = arith.constant true
    tgl.yield %v : i1
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected result type i64, found }}
  %s = tgl.reduce argmax (%k = 0 to 3) -> i32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected to yield a number (i32, i64, f32, f64)}}
  %s = tgl.reduce argmin (%k = 0 to 3) -> i64 {
    %v = arith.constant true
    tgl.yield %v : i1
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected a kind of scan, found}}
  %s = tgl.scan cumulate (%k = 0 to 3) at [0] -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected reverse with cumulative scans and recurrence only}}
  %s = tgl.scan softmax reverse (%k = 0 to 3) at [0] -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected exclusive with cumulative scans only}}
  %s = tgl.scan softmax exclusive (%k = 0 to 3) at [0] -> f32 {
    %v = arith.constant 0.0 : f32
    tgl.yield %v : f32
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected to yield a number (i32, i64, f32, f64)}}
  %s = tgl.scan argsort (%k = 0 to 3) at [0] -> i64 {
    %v = arith.constant 0 : i1
    tgl.yield %v : i1
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  %zero = arith.constant 0.0 : f32
  // expected-error @below {{'tgl.scan' op expected init with recurrence only}}
  %s = tgl.scan cumsum (%k = 0 to 3) at [0] init %zero -> f32 {
    tgl.yield %zero : f32
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  %fill = arith.constant 0.0 : f64
  // expected-error @below {{expected fill type 'f32', found 'f64'}}
  %v = "tgl.read"(%x, %fill) <{subscripts = [#tgl.expr<0>, #tgl.expr<0>], exactNumerators = [], exactDenominators = [], operandSegmentSizes = array<i32: 1, 0, 0, 1>}> : (!tgl.tensor<[M, N], f32>, f64) -> f32
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected as many exact denominators as numerators}}
  %v = "tgl.read"(%x) <{subscripts = [#tgl.expr<0>, #tgl.expr<0>], exactNumerators = [#tgl.expr<1>], exactDenominators = [], operandSegmentSizes = array<i32: 1, 0, 0, 0>}> : (!tgl.tensor<[M, N], f32>) -> f32
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  %v = arith.constant 0.0 : f32
  // expected-error @below {{expected an element type, found }}
  %r = tgl.convert %v to i7 : f32 -> i32
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  %i = arith.constant 0 : index
  // expected-error @below {{expected a number, found index}}
  %r = tgl.convert %i to f32 : index -> f32
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected as many upper as lower bounds}}
  "tgl.parallel"() <{lows = [#tgl.expr<0>], highs = []}> ({
  ^bb0(%i: index):
  }) : () -> ()
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected axes of type index, found }}
  "tgl.parallel"() <{lows = [#tgl.expr<0>], highs = [#tgl.expr<3>]}> ({
  ^bb0(%i: i64):
  }) : () -> ()
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected a name for each axis}}
  tgl.parallel (%i = 0 to 3) attributes {names = ["i", "j"]} {
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected loop variables of type index, found }}
  "tgl.for"() <{low = #tgl.expr<0>, high = #tgl.expr<3>, operandSegmentSizes = array<i32: 0, 0>}> ({
  ^bb0(%t: i64):
    tgl.yield
  }) : () -> ()
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  // expected-error @below {{expected names for the loop variable and each carried value}}
  tgl.for %t = 0 to 3 attributes {names = ["t", "s"]} {
  }
}

// -----

tgl.kernel private @k(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"}) {
  %v = arith.constant 0.0 : f32
  // expected-error @below {{expected carried values of the types of their initial values}}
  %r = "tgl.for"(%v) <{low = #tgl.expr<0>, high = #tgl.expr<3>, operandSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%t: index, %s: f64):
    tgl.yield %s : f64
  }) : (f32) -> f64
}

// -----

tgl.kernel private @k(%v: !tgl.tensor<[M, N], f32> {tgl.name = "v", tgl.role = "inout"},
                      %p: !tgl.tensor<[M, K], i64> {tgl.name = "p", tgl.role = "inout"}) {
  // expected-error @below {{expected tensors of one shape, found }}
  tgl.sort %v, %p[0] : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, K], i64>
}

// -----

tgl.kernel private @k(%v: !tgl.tensor<[M, N], f32> {tgl.name = "v", tgl.role = "inout"},
                      %p: !tgl.tensor<[M, N], i32> {tgl.name = "p", tgl.role = "inout"}) {
  // expected-error @below {{expected positions of type i64, found }}
  tgl.sort %v, %p[0] : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i32>
}

// -----

tgl.kernel private @k(%v: !tgl.tensor<[M, N], f32> {tgl.name = "v", tgl.role = "inout"},
                      %p: !tgl.tensor<[M, N], i64> {tgl.name = "p", tgl.role = "inout"}) {
  // expected-error @below {{expected 1 subscripts, of all dims but the last, found 2}}
  tgl.sort %v, %p[0, 0] : !tgl.tensor<[M, N], f32>, !tgl.tensor<[M, N], i64>
}

// -----

// expected-error @below {{expected no results: outputs are arguments}}
"tgl.kernel"() <{function_type = () -> f32, sizes = [], guards = [], sym_name = "k"}> ({
^bb0:
}) : () -> ()

// -----

// expected-error @below {{size 'P' is derived from 'M', which is invariant, and is not}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"})
    sizes [M = 0 : 0, P = 2*M] attributes {invariant = ["M"]} {
}

// -----

// expected-error @below {{'N' is invariant and not a size of the kernel}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"})
    sizes [M = 0 : 0] attributes {invariant = ["M", "N"]} {
}

// -----

// expected-error @below {{expected distinct invariant sizes, found 'M' twice}}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"})
    sizes [M = 0 : 0] attributes {invariant = ["M", "M"]} {
}

// -----

// expected-error @below {{expected distinct sizes, found 'M' twice}}
tgl.kernel @k(%x: !tgl.tensor<[M, M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0, M = 0 : 1] {
}

// -----

tgl.kernel @callee(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
}
tgl.kernel @k(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"}) sizes [M = 0 : 0] {
  // expected-error @below {{expected a private kernel, found 'callee'}}
  tgl.call @callee(%x) : !tgl.tensor<[M], f32>
}

// RUN: tegula-opt %s --tgl-specialize-sizes=sizes=M=128,N=64,Q=1,Z=0 | FileCheck %s

// Numbers take the place of sizes in dims, bounds and subscripts; what a launch must satisfy stays. Names
// that the kernel does not have, such as Q, are ignored; sizes without a number stay symbols.
// CHECK: tgl.kernel @flat(%x: !tgl.tensor<[128, 64, K], f32>
// CHECK-SAME: %y: !tgl.tensor<[8192*K], f32>
// CHECK-NEXT: sizes [M = 0 : 0, N = 0 : 1, K = 0 : 2]
// CHECK-NEXT: guards [nonneg M - N : "M is smaller than N"]
// CHECK: %h = tgl.temp "h" : !tgl.tensor<[64], f32>
// CHECK: tgl.parallel (%i = 0 to 128, %j = 0 to 64, %k = 0 to K)
// CHECK: tgl.write %{{.*}}, %y[64*%i*K + %j*K + %k]
tgl.kernel @flat(%x: !tgl.tensor<[M, N, K], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M*N*K], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1, K = 0 : 2] guards [nonneg M - N : "M is smaller than N"] {
  %h = tgl.temp "h" : !tgl.tensor<[N], f32>
  tgl.parallel (%i = 0 to M, %j = 0 to N, %k = 0 to K) {
    %v = tgl.read %x[%i, %j, %k] : !tgl.tensor<[M, N, K], f32>
    tgl.write %v, %y[(%i*N + %j)*K + %k] : f32, !tgl.tensor<[M*N*K], f32>
  }
}

// A subscript that a size was the factor of is gone where the size is 0.
// CHECK: tgl.kernel @empty
// CHECK: tgl.read %x[0]
tgl.kernel @empty(%x: !tgl.tensor<[4], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[Z], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[4], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [Z = 1 : 0] {
  tgl.parallel (%i = 0 to 4) {
    %v = tgl.read %x[%i*Z] : !tgl.tensor<[4], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[4], f32>
  }
}

// What follows from numbers is a number.
// CHECK: tgl.kernel @derived(%x: !tgl.tensor<[128], f32>
// CHECK-SAME: %y: !tgl.tensor<[63], f32>
// CHECK-NEXT: sizes [M = 0 : 0, K = 1 : 0, P = (M + 1) floordiv 2 - 1, R = K + M]
// CHECK: tgl.parallel (%i = 0 to 63)
tgl.kernel @derived(%x: !tgl.tensor<[M], f32> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[K], f32> {tgl.name = "w", tgl.role = "in"},
                    %y: !tgl.tensor<[P], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, K = 1 : 0, P = (M - 3) floordiv 2 + 1, R = K + M] {
  tgl.parallel (%i = 0 to P) {
    %v = tgl.read %x[2*%i] : !tgl.tensor<[M], f32>
    tgl.write %v, %y[%i] : f32, !tgl.tensor<[P], f32>
  }
}

// Sizes that no order of a sum depends on stay symbols, and so does what is derived from them.
// CHECK: tgl.kernel @invariant(%x: !tgl.tensor<[M, 64], f32>
// CHECK: tgl.parallel (%i = 0 to M, %j = 0 to 64)
// CHECK: tgl.parallel (%i = 0 to P)
tgl.kernel @invariant(%x: !tgl.tensor<[M, N], f32> {tgl.name = "x", tgl.role = "in"},
                      %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"},
                      %z: !tgl.tensor<[P], f32> {tgl.name = "z", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1, P = M floordiv 2] attributes {invariant = ["M", "P"]} {
  tgl.parallel (%i = 0 to M, %j = 0 to N) {
    %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f32>
    tgl.write %v, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
  }
  tgl.parallel (%i = 0 to P) {
    %v = tgl.read %x[%i, 0] : !tgl.tensor<[M, N], f32>
    tgl.write %v, %z[%i] : f32, !tgl.tensor<[P], f32>
  }
}

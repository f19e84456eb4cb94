// RUN: tegula-opt %s --tgl-schedule=target=sm_90a | FileCheck %s
// RUN: tegula-opt %s "--tgl-schedule=target=sm_90a without=short-functions" | FileCheck %s --check-prefix=OFF
// RUN: tegula-opt %s --tgl-schedule=target=cpu | FileCheck %s --check-prefix=OFF
// OFF-NOT: afn

// An element of bf16 less a number of the row; the logarithm of the row's sum, and exp of it, stay.
// CHECK-LABEL: tgl.kernel @rows
// CHECK: tgl.reduce sum
// CHECK: math.exp %{{.*}} fastmath<afn> : f32
// CHECK: math.exp %{{[0-9a-z_]+}} : f32
// CHECK: math.exp %{{.*}} fastmath<contract,afn> : f32
tgl.kernel @rows(%x: !tgl.tensor<[M, N], bf16> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[M], f32> {tgl.name = "z", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.launch "y" {
    tgl.parallel (%i = 0 to M) {
      %m = tgl.reduce max (%j = 0 to N) -> f32 {
        %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], bf16>
        tgl.yield %v : f32
      }
      %s = tgl.reduce sum (%j = 0 to N) -> f32 {
        %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], bf16>
        %d = arith.subf %v, %m : f32
        %e = math.exp %d : f32
        tgl.yield %e : f32
      }
      %p = math.exp %s : f32
      tgl.write %p, %z[%i] : f32, !tgl.tensor<[M], f32>
      tgl.parallel (%j = 0 to N) {
        %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], bf16>
        %d = arith.subf %v, %s : f32
        %e = math.exp %d fastmath<contract> : f32
        tgl.write %e, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
      }
    }
  }
}

// An element of f32 beside one of bf16 stays what it is; one that is the same at all points of the nest is no element.
// CHECK-LABEL: tgl.kernel @beside
// CHECK: math.tanh %{{[0-9a-z_]+}} : f32
// CHECK: math.erf %{{.*}} fastmath<afn> : f32
tgl.kernel @beside(%x: !tgl.tensor<[N], bf16> {tgl.name = "x", tgl.role = "in"},
                   %w: !tgl.tensor<[N], f32> {tgl.name = "w", tgl.role = "in"},
                   %c: !tgl.tensor<[], f32> {tgl.name = "c", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"},
                   %z: !tgl.tensor<[N], f32> {tgl.name = "z", tgl.role = "out"})
    sizes [N = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %x[%i] : !tgl.tensor<[N], bf16>
      %a = tgl.read %w[%i] : !tgl.tensor<[N], f32>
      %b = tgl.read %c[] : !tgl.tensor<[], f32>
      %p = arith.mulf %v, %a : f32
      %q = arith.mulf %v, %b : f32
      %t = math.tanh %p : f32
      %e = math.erf %q : f32
      tgl.write %t, %y[%i] : f32, !tgl.tensor<[N], f32>
      tgl.write %e, %z[%i] : f32, !tgl.tensor<[N], f32>
    }
  }
}

// Through a tensor of the statement; what a loop makes of itself collects errors.
// CHECK-LABEL: tgl.kernel @through
// CHECK: math.exp %{{.*}} fastmath<afn> : f32
// CHECK: math.exp %{{[0-9a-z_]+}} : f32
tgl.kernel @through(%x: !tgl.tensor<[M, N], f16> {tgl.name = "x", tgl.role = "in"},
                    %y: !tgl.tensor<[M, N], f32> {tgl.name = "y", tgl.role = "out"})
    sizes [M = 0 : 0, N = 0 : 1] {
  tgl.launch "y" {
    tgl.parallel (%i = 0 to M) {
      %p = tgl.temp "p" : !tgl.tensor<[N], f32>
      %q = tgl.temp "q" : !tgl.tensor<[N], f32>
      tgl.parallel (%j = 0 to N) {
        %v = tgl.read %x[%i, %j] : !tgl.tensor<[M, N], f16>
        tgl.write %v, %p[%j] : f32, !tgl.tensor<[N], f32>
        tgl.write %v, %q[%j] : f32, !tgl.tensor<[N], f32>
      }
      tgl.parallel (%j = 0 to N) {
        %v = tgl.read %p[%j] : !tgl.tensor<[N], f32>
        %e = math.exp %v : f32
        tgl.write %e, %y[%i, %j] : f32, !tgl.tensor<[M, N], f32>
        %w = tgl.read %q[%j] : !tgl.tensor<[N], f32>
        %f = math.exp %w : f32
        tgl.write %f, %q[%j] : f32, !tgl.tensor<[N], f32>
      }
    }
  }
}

// A quotient of elements is the nearest number; one of what a function gives need not be.
// CHECK-LABEL: tgl.kernel @quotients
// CHECK: arith.divf %{{[0-9a-z_]+}}, %{{[0-9a-z_]+}} : f32
// CHECK: arith.divf %{{.*}} fastmath<afn> : f32
tgl.kernel @quotients(%x: !tgl.tensor<[N], bf16> {tgl.name = "x", tgl.role = "in"},
                      %c: !tgl.tensor<[], f32> {tgl.name = "c", tgl.role = "in"},
                      %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"},
                      %z: !tgl.tensor<[N], f32> {tgl.name = "z", tgl.role = "out"})
    sizes [N = 0 : 0] {
  tgl.launch "y" {
    tgl.parallel (%i = 0 to N) {
      %v = tgl.read %x[%i] : !tgl.tensor<[N], bf16>
      %b = tgl.read %c[] : !tgl.tensor<[], f32>
      %q = arith.divf %v, %b : f32
      %e = math.exp %v : f32
      %r = arith.divf %e, %b : f32
      tgl.write %q, %y[%i] : f32, !tgl.tensor<[N], f32>
      tgl.write %r, %z[%i] : f32, !tgl.tensor<[N], f32>
    }
  }
}

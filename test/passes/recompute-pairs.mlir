// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-recompute-pairs))' | FileCheck %s
// RUN: sed 's/16384/1024/g' %s | tegula-opt --pass-pipeline='builtin.module(tgl.kernel(tgl-recompute-pairs))' | FileCheck %s --check-prefix=FEW

// The sum over j makes r again; the two points of c are written out, each with a sum of its own.
// CHECK-LABEL: tgl.kernel @forces
// CHECK-NOT: tgl.temp
// CHECK: tgl.parallel (%[[I:.*]] = 0 to 16384) {
// CHECK: %[[FIRST:.*]] = tgl.reduce sum (%[[J:.*]] = 0 to 16384)
// CHECK: tgl.read %x[%[[J]], 0]
// CHECK: tgl.read %x[%[[J]], 0]
// CHECK: tgl.read %x[%[[I]], 0]
// CHECK: tgl.read %x[%[[J]], 1]
// CHECK: tgl.read %x[%[[I]], 1]
// CHECK: tgl.read %x[%[[J]], 2]
// CHECK: math.rsqrt
// CHECK: tgl.write %[[FIRST]], %a[%[[I]], 0]
// CHECK: %[[SECOND:.*]] = tgl.reduce sum
// CHECK: math.rsqrt
// CHECK: tgl.write %[[SECOND]], %a[%[[I]], 1]
// CHECK-NOT: tgl.parallel

// So few values stay in the cache.
// FEW: tgl.temp "r"
tgl.kernel @forces(%x: !tgl.tensor<[16384, 3], f32> {tgl.name = "x", tgl.role = "in"}, %m: !tgl.tensor<[16384], f32> {tgl.name = "m", tgl.role = "in"}, %a: !tgl.tensor<[16384, 3], f32> {tgl.name = "a", tgl.role = "out"})
    sizes [N = 0 : 0] {
  %cst = arith.constant 9.99999974E-5 : f32
  %r = tgl.temp "r" : !tgl.tensor<[16384, 16384], f32>
  tgl.parallel (%i = 0 to 16384, %j = 0 to 16384) {
    %0 = tgl.reduce sum (%c = 0 to 3) -> f32 {
      %3 = tgl.read %x[%j, %c] : !tgl.tensor<[16384, 3], f32>
      %4 = tgl.read %x[%i, %c] : !tgl.tensor<[16384, 3], f32>
      %5 = arith.subf %3, %4 fastmath<contract> : f32
      %6 = arith.mulf %5, %5 fastmath<contract> : f32
      tgl.yield %6 : f32
    }
    %1 = arith.addf %0, %cst fastmath<contract> : f32
    %2 = math.rsqrt %1 fastmath<contract> : f32
    tgl.write %2, %r[%i, %j] : f32, !tgl.tensor<[16384, 16384], f32>
  }
  tgl.parallel (%i = 0 to 16384, %c = 0 to 2) {
    %0 = tgl.reduce sum (%j = 0 to 16384) -> f32 {
      %1 = tgl.read %m[%j] : !tgl.tensor<[16384], f32>
      %2 = tgl.read %x[%j, %c] : !tgl.tensor<[16384, 3], f32>
      %6 = tgl.read %r[%i, %j] : !tgl.tensor<[16384, 16384], f32>
      %7 = arith.mulf %2, %6 fastmath<contract> : f32
      %9 = arith.mulf %7, %1 fastmath<contract> : f32
      tgl.yield %9 : f32
    }
    tgl.write %0, %a[%i, %c] : f32, !tgl.tensor<[16384, 3], f32>
  }
}

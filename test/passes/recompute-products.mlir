// RUN: tegula-opt %s --tgl-recompute-products --tgl-counters 2>&1 | FileCheck %s

// p and t are factors of three products: two over i, which share a loop, and one over j.

// CHECK-LABEL: tgl.kernel @backward
// CHECK-NOT: tgl.temp "p"
// CHECK-NOT: tgl.temp "t"
// CHECK: tgl.parallel (%[[B:.*]] = 0 to 2, %[[J:.*]] = 0 to 128)
// CHECK: tgl.tiles (%[[LO:.*]], %[[HI:.*]]) = 0 to 256 size 32
// CHECK: tgl.parallel (%[[I:.*]] = %[[LO]] to %[[HI]])
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 64)
// CHECK: arith.select
// CHECK: tgl.reduce sum (%{{.*}} = 0 to 64)
// CHECK-NOT: tgl.reduce
// CHECK: tgl.parallel (%{{.*}} = 0 to 64)
// CHECK: tgl.reduce sum (%{{.*}} = %[[LO]] to %[[HI]])
// CHECK: tgl.parallel (%{{.*}} = 0 to 64)
// CHECK: tgl.reduce sum (%{{.*}} = %[[LO]] to %[[HI]])
// CHECK: tgl.write {{.*}}, %dz
// CHECK: tgl.write {{.*}}, %dk
// CHECK: tgl.parallel (%{{.*}} = 0 to 2, %{{.*}} = 0 to 256)
// CHECK: tgl.tiles {{.*}} = 0 to 128 size 32
// CHECK: tgl.write {{.*}}, %dq
tgl.kernel @backward(
    %q: !tgl.tensor<[2, 256, 64], bf16> {tgl.name = "q", tgl.role = "in"},
    %k: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "k", tgl.role = "in"},
    %z: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "z", tgl.role = "in"},
    %g: !tgl.tensor<[2, 256, 64], bf16> {tgl.name = "g", tgl.role = "in"},
    %a: !tgl.tensor<[2, 256], f32> {tgl.name = "a", tgl.role = "in"},
    %dq: !tgl.tensor<[2, 256, 64], bf16> {tgl.name = "dq", tgl.role = "out"},
    %dk: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "dk", tgl.role = "out"},
    %dz: !tgl.tensor<[2, 128, 64], bf16> {tgl.name = "dz", tgl.role = "out"})
    sizes [] {
  %zero = arith.constant 0.0 : f32
  %p = tgl.temp "p" : !tgl.tensor<[2, 256, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 256, %j = 0 to 128) {
    %x = arith.index_cast %j : index to i64
    %y = arith.index_cast %i : index to i64
    %c = arith.cmpi sle, %x, %y : i64
    %s = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %q[%b, %i, %e] : !tgl.tensor<[2, 256, 64], bf16>
      %h = tgl.read %k[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %f, %h fastmath<contract> : f32
      tgl.yield %m : f32
    }
    %w = arith.select %c, %s, %zero : f32
    tgl.write %w, %p[%b, %i, %j] : f32, !tgl.tensor<[2, 256, 128], f32>
  }
  %t = tgl.temp "t" : !tgl.tensor<[2, 256, 128], f32>
  tgl.parallel (%b = 0 to 2, %i = 0 to 256, %j = 0 to 128) {
    %s = tgl.reduce sum (%e = 0 to 64) -> f32 {
      %f = tgl.read %g[%b, %i, %e] : !tgl.tensor<[2, 256, 64], bf16>
      %h = tgl.read %z[%b, %j, %e] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %f, %h fastmath<contract> : f32
      tgl.yield %m : f32
    }
    %r = tgl.read %a[%b, %i] : !tgl.tensor<[2, 256], f32>
    %d = arith.subf %s, %r : f32
    %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 256, 128], f32>
    %w = arith.mulf %x, %d : f32
    tgl.write %w, %t[%b, %i, %j] : f32, !tgl.tensor<[2, 256, 128], f32>
  }
  tgl.parallel (%b = 0 to 2, %j = 0 to 128, %d = 0 to 64) {
    %s = tgl.reduce sum (%i = 0 to 256) -> f32 {
      %x = tgl.read %p[%b, %i, %j] : !tgl.tensor<[2, 256, 128], f32>
      %y = tgl.convert %x to bf16 : f32 -> f32
      %h = tgl.read %g[%b, %i, %d] : !tgl.tensor<[2, 256, 64], bf16>
      %m = arith.mulf %y, %h fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %dz[%b, %j, %d] : f32, !tgl.tensor<[2, 128, 64], bf16>
  }
  tgl.parallel (%b = 0 to 2, %j = 0 to 128, %d = 0 to 64) {
    %s = tgl.reduce sum (%i = 0 to 256) -> f32 {
      %x = tgl.read %t[%b, %i, %j] : !tgl.tensor<[2, 256, 128], f32>
      %y = tgl.convert %x to bf16 : f32 -> f32
      %h = tgl.read %q[%b, %i, %d] : !tgl.tensor<[2, 256, 64], bf16>
      %m = arith.mulf %y, %h fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %dk[%b, %j, %d] : f32, !tgl.tensor<[2, 128, 64], bf16>
  }
  tgl.parallel (%b = 0 to 2, %i = 0 to 256, %d = 0 to 64) {
    %s = tgl.reduce sum (%j = 0 to 128) -> f32 {
      %x = tgl.read %t[%b, %i, %j] : !tgl.tensor<[2, 256, 128], f32>
      %y = tgl.convert %x to bf16 : f32 -> f32
      %h = tgl.read %k[%b, %j, %d] : !tgl.tensor<[2, 128, 64], bf16>
      %m = arith.mulf %y, %h fastmath<contract> : f32
      tgl.yield %m : f32
    }
    tgl.write %s, %dq[%b, %i, %d] : f32, !tgl.tensor<[2, 256, 64], bf16>
  }
}

// CHECK: tgl-recompute-products: 2 products recomputed

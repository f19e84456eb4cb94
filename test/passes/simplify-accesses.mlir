// RUN: tegula-opt %s --tgl-simplify-accesses | FileCheck %s

// Index arithmetic folds into subscripts, digits of a group are recognised, and a fill that no
// element needs goes.
// CHECK-LABEL: tgl.kernel @groups
// CHECK: tgl.parallel (%g = 0 to G, %e = 0 to 8)
// CHECK-NOT: tgl.index
// CHECK: tgl.read %x[8*%g + %e] : !tgl.tensor<[8*G], f32>
// CHECK: tgl.read %m[%g] : !tgl.tensor<[G], f32>
tgl.kernel @groups(%x: !tgl.tensor<[8*G], f32> {tgl.name = "x", tgl.role = "in"},
                   %m: !tgl.tensor<[G], f32> {tgl.name = "m", tgl.role = "in"},
                   %y: !tgl.tensor<[8*G], f32> {tgl.name = "y", tgl.role = "out"}) sizes [G = 1 : 0] {
  tgl.parallel (%g = 0 to G, %e = 0 to 8) {
    %zero = arith.constant 0.0 : f32
    %c = tgl.index 8*%g + %e
    %v = tgl.read %x[%c] fill %zero : !tgl.tensor<[8*G], f32>
    %d = tgl.index %c floordiv 8
    %w = tgl.read %m[%d] : !tgl.tensor<[G], f32>
    %s = arith.addf %v, %w : f32
    tgl.write %s, %y[%c] : f32, !tgl.tensor<[8*G], f32>
  }
}

// A window that leaves the tensor keeps its fill; a comparison that ranges decide is a constant.
// CHECK-LABEL: tgl.kernel @window
// CHECK: %[[ZERO:.*]] = arith.constant 0
// CHECK: tgl.read %x[%i + %k - 1] fill %[[ZERO]]
// CHECK: arith.constant true
tgl.kernel @window(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %zero = arith.constant 0.0 : f32
    %s = tgl.reduce sum (%k = 0 to 3) -> f32 {
      %v = tgl.read %x[%i + %k - 1] fill %zero : !tgl.tensor<[N], f32>
      tgl.yield %v : f32
    }
    %n = tgl.index N
    %c = arith.cmpi slt, %i, %n : index
    %r = arith.select %c, %s, %zero : f32
    tgl.write %r, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

// A guard that always holds goes, one that does not stays.
// CHECK-LABEL: tgl.kernel @guards
// CHECK: tgl.read %x[%i] : !tgl.tensor
// CHECK: tgl.read %x[%i - 1] if %
tgl.kernel @guards(%x: !tgl.tensor<[N], f32> {tgl.name = "x", tgl.role = "in"},
                   %y: !tgl.tensor<[N], f32> {tgl.name = "y", tgl.role = "out"}) sizes [N = 0 : 0] {
  tgl.parallel (%i = 0 to N) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %c = arith.cmpi sge, %i, %zero : index
    %d = arith.cmpi sge, %i, %one : index
    %v = tgl.read %x[%i] if %c : !tgl.tensor<[N], f32>
    %w = tgl.read %x[%i - 1] if %d : !tgl.tensor<[N], f32>
    %s = arith.addf %v, %w : f32
    tgl.write %s, %y[%i] : f32, !tgl.tensor<[N], f32>
  }
}

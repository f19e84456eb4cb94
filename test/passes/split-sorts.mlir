// RUN: tegula-opt %s --tgl-split-sorts | FileCheck %s

// What stands before, the sort with what makes its elements, and what stands after. A sum that the elements need is kept.
// CHECK-LABEL: @three
// CHECK: %[[KEPT:.*]] = tgl.temp "kept" : !tgl.tensor<[4], f32>
// CHECK: tgl.launch
// CHECK: tgl.reduce sum
// CHECK: tgl.write {{.*}}%[[KEPT]]
// CHECK: tgl.launch
// CHECK: tgl.read %[[KEPT]]
// CHECK: tgl.parallel (%j
// CHECK: tgl.read %x
// CHECK: tgl.sort %v, %p[%b]
// CHECK: tgl.launch
// CHECK: tgl.read %v
// CHECK: tgl.write {{.*}}%y
tgl.kernel @three(%x: !tgl.tensor<[4, 8192], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[4, 8192], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  tgl.launch "y" {
    tgl.parallel (%b = 0 to 4) {
      %v = tgl.temp "v" : !tgl.tensor<[8192], f32>
      %p = tgl.temp "p" : !tgl.tensor<[8192], i64>
      %s = tgl.reduce sum (%k = 0 to 8192) -> f32 {
        %e = tgl.read %x[%b, %k] : !tgl.tensor<[4, 8192], f32>
        tgl.yield %e : f32
      }
      tgl.parallel (%j = 0 to 8192) {
        %n = arith.index_cast %j : index to i64
        %e = tgl.read %x[%b, %j] : !tgl.tensor<[4, 8192], f32>
        %d = arith.divf %e, %s : f32
        tgl.write %d, %v[%j] : f32, !tgl.tensor<[8192], f32>
        tgl.write %n, %p[%j] : i64, !tgl.tensor<[8192], i64>
      }
      tgl.sort %v, %p[] : !tgl.tensor<[8192], f32>, !tgl.tensor<[8192], i64>
      tgl.parallel (%j = 0 to 8192) {
        %e = tgl.read %v[%j] : !tgl.tensor<[8192], f32>
        %t = arith.addf %e, %s : f32
        tgl.write %t, %y[%b, %j] : f32, !tgl.tensor<[4, 8192], f32>
      }
    }
  }
}

// Short rows stay where they are.
// CHECK-LABEL: @short
// CHECK: tgl.launch
// CHECK: tgl.temp
// CHECK: tgl.sort
// CHECK-NOT: tgl.launch
tgl.kernel @short(%x: !tgl.tensor<[4, 64], f32> {tgl.name = "x", tgl.role = "in"},
                  %y: !tgl.tensor<[4, 64], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  tgl.launch "y" {
    tgl.parallel (%b = 0 to 4) {
      %v = tgl.temp "v" : !tgl.tensor<[64], f32>
      %p = tgl.temp "p" : !tgl.tensor<[64], i64>
      tgl.parallel (%j = 0 to 64) {
        %n = arith.index_cast %j : index to i64
        %e = tgl.read %x[%b, %j] : !tgl.tensor<[4, 64], f32>
        tgl.write %e, %v[%j] : f32, !tgl.tensor<[64], f32>
        tgl.write %n, %p[%j] : i64, !tgl.tensor<[64], i64>
      }
      tgl.sort %v, %p[] : !tgl.tensor<[64], f32>, !tgl.tensor<[64], i64>
      tgl.parallel (%j = 0 to 64) {
        %e = tgl.read %v[%j] : !tgl.tensor<[64], f32>
        tgl.write %e, %y[%b, %j] : f32, !tgl.tensor<[4, 64], f32>
      }
    }
  }
}

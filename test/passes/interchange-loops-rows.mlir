// RUN: tegula-opt %s --tgl-interchange-loops -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir --kernel=scan -d B=2,N=3 --against=%s --quiet --tolerance=1e-6
// RUN: tegula-interpret %t.mlir --kernel=powers --against=%s --quiet --tolerance=1e-6

// A point that walks a recurrence for each n, and then sums over n at each step, keeps one step of them.
// CHECK-LABEL: tgl.kernel @scan
// CHECK: tgl.parallel (%[[B:.*]] = 0 to B) {
// CHECK: %[[S:.*]] = tgl.temp "state" : !tgl.tensor<[N], f32>
// CHECK: tgl.parallel (%[[N:.*]] = 0 to N) {
// CHECK: tgl.write %{{.*}}, %[[S]][%[[N]]]
// CHECK: tgl.for %[[T:.*]] = 0 to 2000 {
// CHECK: tgl.parallel (%[[N:.*]] = 0 to N) {
// CHECK: tgl.read %[[S]][%[[N]]]
// CHECK: tgl.write %{{.*}}, %[[S]][%[[N]]]
// CHECK: tgl.reduce sum (%[[M:.*]] = 0 to N)
// CHECK: tgl.read %[[S]][%[[M]]]
// CHECK: tgl.write %{{.*}}, %y[%[[B]], %[[T]]]
tgl.kernel @scan(%x: !tgl.tensor<[B, 2000, N], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[B, 2000], f32> {tgl.name = "y", tgl.role = "out"}) sizes [B = 0 : 0, N = 0 : 2] {
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  tgl.launch "scan" {
    tgl.parallel (%b = 0 to B) {
      %r = tgl.temp "r" : !tgl.tensor<[2000, N], f32>
      tgl.parallel (%n = 0 to N) {
        %last = tgl.for %t = 0 to 2000 iter (%h = %zero : f32) {
          %0 = tgl.read %x[%b, %t, %n] : !tgl.tensor<[B, 2000, N], f32>
          %1 = arith.mulf %h, %half : f32
          %2 = arith.addf %1, %0 : f32
          tgl.write %2, %r[%t, %n] : f32, !tgl.tensor<[2000, N], f32>
          tgl.yield %2 : f32
        }
      }
      tgl.parallel (%t = 0 to 2000) {
        %s = tgl.reduce sum (%n = 0 to N) -> f32 {
          %0 = tgl.read %r[%t, %n] : !tgl.tensor<[2000, N], f32>
          tgl.yield %0 : f32
        }
        tgl.write %s, %y[%b, %t] : f32, !tgl.tensor<[B, 2000], f32>
      }
    }
  }
}

// Powers that need no state are computed for all steps before the loop, which then has j as an independent axis.
// CHECK-LABEL: tgl.kernel @powers
// CHECK: %[[E:.*]] = tgl.temp "e" : !tgl.tensor<[2, 2, 128], f32>
// CHECK: tgl.launch "e" {
// CHECK-NEXT: tgl.parallel (%[[T:.*]] = 0 to 2, %[[B:.*]] = 0 to 2, %[[I:.*]] = 0 to 128) {
// CHECK: tgl.read %g[%[[B]], %[[T]], %[[I]]]
// CHECK: tgl.write %{{.*}}, %[[E]][%[[T]], %[[B]], %[[I]]]
// CHECK: tgl.launch "u" {
// CHECK-NEXT: tgl.parallel (%{{.*}} = 0 to 2, %{{.*}} = 0 to 512) {
// CHECK: tgl.for %[[T:.*]] = 0 to 2 {
// CHECK: tgl.read %[[E]][%[[T]], %{{.*}}, %{{.*}}]
tgl.kernel @powers(%g: !tgl.tensor<[2, 2, 128], f32> {tgl.name = "g", tgl.role = "in"},
                   %S: !tgl.tensor<[2, 128, 512], f32> {tgl.name = "S", tgl.role = "inout"}) {
  tgl.for %t = 0 to 2 {
    %e = tgl.temp "e" : !tgl.tensor<[2, 128], f32>
    tgl.launch "e" {
      tgl.parallel (%b = 0 to 2, %i = 0 to 128) {
        %0 = tgl.read %g[%b, %t, %i] : !tgl.tensor<[2, 2, 128], f32>
        %1 = math.exp %0 : f32
        tgl.write %1, %e[%b, %i] : f32, !tgl.tensor<[2, 128], f32>
      }
    }
    %u = tgl.temp "u" : !tgl.tensor<[2, 512], f32>
    tgl.launch "u" {
      tgl.parallel (%b = 0 to 2, %j = 0 to 512) {
        %0 = tgl.reduce sum (%k = 0 to 128) -> f32 {
          %1 = tgl.read %S[%b, %k, %j] : !tgl.tensor<[2, 128, 512], f32>
          %2 = tgl.read %e[%b, %k] : !tgl.tensor<[2, 128], f32>
          %3 = arith.mulf %1, %2 : f32
          tgl.yield %3 : f32
        }
        tgl.write %0, %u[%b, %j] : f32, !tgl.tensor<[2, 512], f32>
      }
    }
    tgl.launch "S" {
      tgl.parallel (%b = 0 to 2, %i = 0 to 128, %j = 0 to 512) {
        %0 = tgl.read %e[%b, %i] : !tgl.tensor<[2, 128], f32>
        %1 = tgl.read %u[%b, %j] : !tgl.tensor<[2, 512], f32>
        %2 = tgl.read %S[%b, %i, %j] : !tgl.tensor<[2, 128, 512], f32>
        %3 = arith.mulf %0, %2 : f32
        %4 = arith.subf %3, %1 : f32
        tgl.write %4, %S[%b, %i, %j] : f32, !tgl.tensor<[2, 128, 512], f32>
      }
    }
  }
}

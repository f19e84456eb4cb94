// RUN: tegula-opt %s --tgl-split-polyphase --tgl-simplify-accesses --canonicalize --cse --tgl-counters 2>&1 | FileCheck %s

// Two phases of p are rows; the sum runs over the offsets that either has; the weight is 0 where there is no tap.
// CHECK-LABEL: tgl.kernel @transposed
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 16, %[[O:.*]] = 0 to 32, %[[P:.*]] = 0 to 102, %[[PHASE:.*]] = 0 to 2)
// CHECK: %[[FAST:.*]] = tgl.reduce sum (%[[C:.*]] = 0 to 32, %[[R:.*]] = 0 to 3)
// CHECK-DAG: tgl.read %x[%[[N]], %[[C]], %[[P]] + %[[R]] - 2] fill %{{.*}} : !tgl
// CHECK-DAG: tgl.read %w[%[[C]], %[[O]], %[[PHASE]] - 2*%[[R]] + 4] if %{{.*}} : !tgl
// Where the sum is no number the taps that there are are added up.
// CHECK: %[[FINITE:.*]] = math.isfinite %[[FAST]]
// CHECK: %[[TIMES:.*]] = arith.select %[[FINITE]], %c0, %c1 : index
// CHECK: %[[SLOW:.*]] = tgl.reduce sum filtered (%{{.*}} = 0 to %[[TIMES]], %{{.*}} = 0 to 32, %{{.*}} = 0 to 3)
// CHECK: tgl.yield %{{.*}}, %{{.*}} : f32, i1
// CHECK: %[[SUM:.*]] = arith.select %[[FINITE]], %[[FAST]], %[[SLOW]] : f32
// CHECK: tgl.write %[[SUM]], %y[%[[N]], %[[O]], 2*%[[P]] + %[[PHASE]]] : f32
tgl.kernel @transposed(%x: !tgl.tensor<[16, 32, 100], f32> {tgl.name = "x", tgl.role = "in"},
                       %w: !tgl.tensor<[32, 32, 5], f32> {tgl.name = "w", tgl.role = "in"},
                       %y: !tgl.tensor<[16, 32, 204], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 32, %p = 0 to 204) {
      %s = tgl.reduce sum (%c = 0 to 32, %r = 0 to 5) -> f32 {
        %a = tgl.read %x[%n, %c, (%p - %r) floordiv 2] exact (%p - %r by 2) fill %zero : !tgl.tensor<[16, 32, 100], f32>
        %b = tgl.read %w[%c, %o, %r] : !tgl.tensor<[32, 32, 5], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %p] : f32, !tgl.tensor<[16, 32, 204], f32>
    }
  }
}

// Of two dims the first has two taps for each phase, which three offsets would hold with zeros: phases have their own.
// CHECK-LABEL: tgl.kernel @apart
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 16, %[[O:.*]] = 0 to 64, %[[P:.*]] = 0 to 32, %[[PHASE:.*]] = 0 to 2, %[[Q:.*]] = 0 to 32, %[[INNER:.*]] = 0 to 2)
// CHECK: tgl.reduce sum (%[[C:.*]] = 0 to 32, %[[R:.*]] = 0 to 2, %[[S:.*]] = 0 to 3)
// CHECK-DAG: tgl.read %x[%[[N]], %[[C]], %[[P]] - %[[R]] + (%[[PHASE]] + 1) floordiv 2, %[[Q]] + %[[S]] - 1] fill %{{.*}} : !tgl
// CHECK-DAG: tgl.read %w[%[[C]], %[[O]], %[[PHASE]] + 2*%[[R]] - 2*((%[[PHASE]] + 1) floordiv 2) + 1, %[[INNER]] - 2*%[[S]] + 3] if %{{.*}} : !tgl
// CHECK: tgl.reduce sum filtered
// CHECK: tgl.write %{{.*}}, %y[%[[N]], %[[O]], 2*%[[P]] + %[[PHASE]], 2*%[[Q]] + %[[INNER]]] : f32
tgl.kernel @apart(%x: !tgl.tensor<[16, 32, 32, 32], f32> {tgl.name = "x", tgl.role = "in"},
                  %w: !tgl.tensor<[32, 64, 4, 4], f32> {tgl.name = "w", tgl.role = "in"},
                  %y: !tgl.tensor<[16, 64, 64, 64], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 64, %p = 0 to 64, %q = 0 to 64) {
      %s = tgl.reduce sum (%c = 0 to 32, %r = 0 to 4, %t = 0 to 4) -> f32 {
        %a = tgl.read %x[%n, %c, (%p - %r + 1) floordiv 2, (%q - %t + 1) floordiv 2] exact (%p - %r + 1 by 2, %q - %t + 1 by 2) fill %zero : !tgl.tensor<[16, 32, 32, 32], f32>
        %b = tgl.read %w[%c, %o, %r, %t] : !tgl.tensor<[32, 64, 4, 4], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %p, %q] : f32, !tgl.tensor<[16, 64, 64, 64], f32>
    }
  }
}

// Taps two apart and a stride of three: which offset has a tap is a division of its own. What is beyond the result
// is not written.
// CHECK-LABEL: tgl.kernel @dilated
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 16, %[[O:.*]] = 0 to 32, %[[P:.*]] = 0 to 101, %[[PHASE:.*]] = 0 to 3)
// CHECK: %[[PLACE:.*]] = tgl.index 3*%[[P]] + %[[PHASE]]
// CHECK: %[[INSIDE:.*]] = arith.cmpi slt, %[[PLACE]], %c302
// CHECK: tgl.reduce sum (%[[C:.*]] = 0 to 32, %[[R:.*]] = 0 to 3)
// CHECK: arith.cmpi eq
// CHECK: tgl.read %x[%[[N]], %[[C]], %[[P]] + %[[R]] - 1] fill
// CHECK: tgl.write %{{.*}}, %y[%[[N]], %[[O]], 3*%[[P]] + %[[PHASE]]] if %[[INSIDE]] : f32
tgl.kernel @dilated(%x: !tgl.tensor<[16, 32, 100], f32> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[32, 32, 3], f32> {tgl.name = "w", tgl.role = "in"},
                    %y: !tgl.tensor<[16, 32, 302], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 32, %p = 0 to 302) {
      %s = tgl.reduce sum (%c = 0 to 32, %r = 0 to 3) -> f32 {
        %a = tgl.read %x[%n, %c, (%p - 2*%r + 1) floordiv 3] exact (%p - 2*%r + 1 by 3) fill %zero : !tgl.tensor<[16, 32, 100], f32>
        %b = tgl.read %w[%c, %o, %r] : !tgl.tensor<[32, 32, 3], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %p] : f32, !tgl.tensor<[16, 32, 302], f32>
    }
  }
}

// Few rows even with phases: the general strategy runs it as it is. Nor is a sum that is no product with the image
// 0 where the image has no element.
// CHECK-LABEL: tgl.kernel @few
// CHECK: exact
// CHECK-NOT: isfinite
tgl.kernel @few(%x: !tgl.tensor<[16, 4, 100], f32> {tgl.name = "x", tgl.role = "in"},
                %w: !tgl.tensor<[4, 2, 5], f32> {tgl.name = "w", tgl.role = "in"},
                %y: !tgl.tensor<[16, 2, 204], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 2, %p = 0 to 204) {
      %s = tgl.reduce sum (%c = 0 to 4, %r = 0 to 5) -> f32 {
        %a = tgl.read %x[%n, %c, (%p - %r) floordiv 2] exact (%p - %r by 2) fill %zero : !tgl.tensor<[16, 4, 100], f32>
        %b = tgl.read %w[%c, %o, %r] : !tgl.tensor<[4, 2, 5], f32>
        %m = arith.mulf %a, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %p] : f32, !tgl.tensor<[16, 2, 204], f32>
    }
  }
}

// CHECK-LABEL: tgl.kernel @shifted
// CHECK: exact
// CHECK-NOT: isfinite
tgl.kernel @shifted(%x: !tgl.tensor<[16, 32, 100], f32> {tgl.name = "x", tgl.role = "in"},
                    %w: !tgl.tensor<[32, 32, 5], f32> {tgl.name = "w", tgl.role = "in"},
                    %y: !tgl.tensor<[16, 32, 204], f32> {tgl.name = "y", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  tgl.launch "y" {
    tgl.parallel (%n = 0 to 16, %o = 0 to 32, %p = 0 to 204) {
      %s = tgl.reduce sum (%c = 0 to 32, %r = 0 to 5) -> f32 {
        %a = tgl.read %x[%n, %c, (%p - %r) floordiv 2] exact (%p - %r by 2) fill %zero : !tgl.tensor<[16, 32, 100], f32>
        %e = arith.addf %a, %one : f32
        %b = tgl.read %w[%c, %o, %r] : !tgl.tensor<[32, 32, 5], f32>
        %m = arith.mulf %e, %b : f32
        tgl.yield %m : f32
      }
      tgl.write %s, %y[%n, %o, %p] : f32, !tgl.tensor<[16, 32, 204], f32>
    }
  }
}

// CHECK: tgl-split-polyphase: 3 transposed convolutions made of phases

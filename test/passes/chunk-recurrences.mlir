// RUN: tegula-opt %s --tgl-chunk-recurrences=length=4 --tgl-counters --split-input-file 2>&1 | FileCheck %s

// Scores of a chunk's steps with each other, what each chunk adds to the state, the state before each chunk, and readouts
// of both. Decays are differences of logarithms, with a code that counts decays of 0.
// CHECK-LABEL: tgl.kernel @gated
// CHECK-NOT: tgl.temp "S"
// CHECK: %[[LOGS:.*]] = tgl.temp "decay_log" : !tgl.tensor<[H, 2, 5], f32>
// CHECK: %[[CODES:.*]] = tgl.temp "decay_code" : !tgl.tensor<[H, 2, 5], i32>
// CHECK: %[[OWN:.*]] = tgl.temp "step_log" : !tgl.tensor<[H, 2, 4], f32>
// CHECK: tgl.parallel (%[[H:.*]] = 0 to H, %[[C:.*]] = 0 to 2, %[[L:.*]] = 0 to 4) {
// CHECK: tgl.read %g[4*%[[C]] + %[[L]], %[[H]]]
// CHECK: math.exp
// CHECK: arith.cmpf oeq
// CHECK: tgl.write %{{.*}}, %[[OWN]][%[[H]], %[[C]], %[[L]]]
// CHECK: tgl.parallel (%[[H:.*]] = 0 to H, %[[C:.*]] = 0 to 2, %[[L:.*]] = 0 to 5) {
// CHECK: tgl.reduce sum (%[[M:.*]] = 0 to min(%[[L]], 4)) -> f32
// CHECK-NEXT: tgl.read %[[OWN]][%[[H]], %[[C]], %[[M]]]
// CHECK: tgl.write %{{.*}}, %[[LOGS]][%[[H]], %[[C]], %[[L]]]
// CHECK: tgl.reduce sum {{.*}} -> i32
// CHECK: %[[DECAYED:.*]] = tgl.temp "decayed" : !tgl.tensor<[H, 2, 4, 8], bf16>
// CHECK: math.exp
// CHECK: %[[ADDED:.*]] = tgl.temp "added" : !tgl.tensor<[H, 2, 16, 8], f32>
// CHECK: tgl.reduce sum
// CHECK: tgl.read %k[4*%{{.*}} + %{{.*}}, %{{.*}}, %{{.*}}]
// CHECK: tgl.read %[[DECAYED]]
// CHECK: %[[STATES:.*]] = tgl.temp "states" : !tgl.tensor<[H, 2, 16, 8], bf16>
// CHECK: tgl.parallel (%[[H:.*]] = 0 to H, %[[I:.*]] = 0 to 16, %[[J:.*]] = 0 to 8) {
// CHECK: %[[FIRST:.*]] = tgl.read %S[%[[H]], %[[I]], %[[J]]]
// CHECK: %[[LAST:.*]] = tgl.for %[[C:.*]] = 0 to 2 iter (%[[STATE:.*]] = %[[FIRST]] : f32) {
// CHECK-NEXT: tgl.write %[[STATE]], %[[STATES]][%[[H]], %[[C]], %[[I]], %[[J]]]
// CHECK: }
// CHECK: tgl.write %[[LAST]], %S[%[[H]], %[[I]], %[[J]]]
// CHECK: %[[SCORES:.*]] = tgl.temp "scores" : !tgl.tensor<[H, 2, 4, 4], bf16>
// CHECK: tgl.parallel (%[[H:.*]] = 0 to H, %[[C:.*]] = 0 to 2, %[[L:.*]] = 0 to 4, %[[M:.*]] = 0 to 4) {
// CHECK: tgl.read %q[4*%[[C]] + %[[L]], %[[H]], %{{.*}}]
// CHECK: tgl.read %k[4*%[[C]] + %[[M]], %[[H]], %{{.*}}]
// CHECK: arith.cmpi sle, %[[M]], %[[L]] : index
// CHECK: tgl.write %{{.*}}, %[[SCORES]]
// CHECK: tgl.read %[[STATES]]
// CHECK: tgl.read %[[SCORES]]
// CHECK: tgl.read %v[4*
// CHECK: tgl.write %{{.*}}, %o[4*
tgl.kernel @gated(%q: !tgl.tensor<[8, H, 16], bf16> {tgl.name = "q", tgl.role = "in"},
                  %k: !tgl.tensor<[8, H, 16], bf16> {tgl.name = "k", tgl.role = "in"},
                  %v: !tgl.tensor<[8, H, 8], bf16> {tgl.name = "v", tgl.role = "in"},
                  %g: !tgl.tensor<[8, H], f32> {tgl.name = "g", tgl.role = "in"},
                  %S: !tgl.tensor<[H, 16, 8], f32> {tgl.name = "S", tgl.role = "inout"},
                  %o: !tgl.tensor<[8, H, 8], bf16> {tgl.name = "o", tgl.role = "out"}) sizes [H = 0 : 1] {
  tgl.for %t = 0 to 8 {
    tgl.parallel (%h = 0 to H, %i = 0 to 16, %j = 0 to 8) {
      %0 = tgl.read %g[%t, %h] : !tgl.tensor<[8, H], f32>
      %1 = math.exp %0 : f32
      %2 = tgl.read %S[%h, %i, %j] : !tgl.tensor<[H, 16, 8], f32>
      %3 = arith.mulf %1, %2 : f32
      %4 = tgl.read %k[%t, %h, %i] : !tgl.tensor<[8, H, 16], bf16>
      %5 = tgl.read %v[%t, %h, %j] : !tgl.tensor<[8, H, 8], bf16>
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.addf %3, %6 : f32
      tgl.write %7, %S[%h, %i, %j] : f32, !tgl.tensor<[H, 16, 8], f32>
    }
    tgl.parallel (%h = 0 to H, %j = 0 to 8) {
      %0 = tgl.reduce sum (%i = 0 to 16) -> f32 {
        %1 = tgl.read %q[%t, %h, %i] : !tgl.tensor<[8, H, 16], bf16>
        %2 = tgl.read %S[%h, %i, %j] : !tgl.tensor<[H, 16, 8], f32>
        %3 = arith.mulf %1, %2 : f32
        tgl.yield %3 : f32
      }
      tgl.write %0, %o[%t, %h, %j] : f32, !tgl.tensor<[8, H, 8], bf16>
    }
  }
}

// -----

// A state to which each step adds two products stays a loop of steps.
// CHECK-LABEL: tgl.kernel @two
// CHECK: tgl.for %{{.*}} = 0 to 8 {
tgl.kernel @two(%q: !tgl.tensor<[8, 16], f32> {tgl.name = "q", tgl.role = "in"},
                     %v: !tgl.tensor<[8, 8], f32> {tgl.name = "v", tgl.role = "in"},
                     %S: !tgl.tensor<[16, 8], f32> {tgl.name = "S", tgl.role = "inout"},
                     %o: !tgl.tensor<[8, 8], f32> {tgl.name = "o", tgl.role = "out"}) {
  tgl.for %t = 0 to 8 {
    tgl.parallel (%i = 0 to 16, %j = 0 to 8) {
      %0 = tgl.read %q[%t, %i] : !tgl.tensor<[8, 16], f32>
      %1 = tgl.read %S[%i, %j] : !tgl.tensor<[16, 8], f32>
      %2 = arith.mulf %0, %1 : f32
      %3 = tgl.read %v[%t, %j] : !tgl.tensor<[8, 8], f32>
      %4 = arith.mulf %0, %3 : f32
      %6 = arith.addf %2, %4 : f32
      %7 = arith.mulf %4, %3 : f32
      %5 = arith.addf %6, %7 : f32
      tgl.write %5, %S[%i, %j] : f32, !tgl.tensor<[16, 8], f32>
    }
    tgl.parallel (%j = 0 to 8) {
      %0 = tgl.reduce sum (%i = 0 to 16) -> f32 {
        %1 = tgl.read %q[%t, %i] : !tgl.tensor<[8, 16], f32>
        %2 = tgl.read %S[%i, %j] : !tgl.tensor<[16, 8], f32>
        %3 = arith.mulf %1, %2 : f32
        tgl.yield %3 : f32
      }
      tgl.write %0, %o[%t, %j] : f32, !tgl.tensor<[8, 8], f32>
    }
  }
}

// CHECK: tgl-chunk-recurrences: 1 loops written in chunks

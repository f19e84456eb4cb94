// RUN: tegula-opt %s --tgl-inline-reduced-products --split-input-file | FileCheck %s

// The logits are computed where their logsumexp is. The loss reads one of each row, and computes that sum again, in a
// statement of its own; a class that is none is reported where the weight is read.
// CHECK-LABEL: tgl.kernel @loss
// CHECK-NOT: tgl.tensor<[4096, 32000], f32>
// CHECK: tgl.parallel (%[[I:.*]] = 0 to 4096)
// CHECK-NEXT: tgl.reduce logsumexp (%[[J:.*]] = 0 to 32000)
// CHECK-NEXT: tgl.reduce sum (%[[D:.*]] = 0 to 1024)
// CHECK-NEXT: tgl.read %h[%[[I]], %[[D]]]
// CHECK-NEXT: tgl.read %w[%[[J]], %[[D]]]
// CHECK: %term = tgl.temp "term" : !tgl.tensor<[4096], f32>
// CHECK: tgl.parallel (%[[I:.*]] = 0 to 4096)
// CHECK: %[[Y:.*]] = tgl.read %y[%[[I]]]
// CHECK: %[[AT:.*]] = arith.index_cast %[[Y]]
// CHECK: tgl.reduce sum (%[[D:.*]] = 0 to 1024)
// CHECK: tgl.read %h[%[[I]], %[[D]]] :
// CHECK: tgl.read %w[%[[AT]], %[[D]]] checked "z[i, y[i]]" :
// CHECK: tgl.write %{{.*}}, %term[%[[I]]]
// CHECK: tgl.parallel ()
// CHECK: tgl.reduce sum (%[[I:.*]] = 0 to 4096)
// CHECK: tgl.read %l[%[[I]]]
// CHECK: tgl.read %term[%[[I]]]
tgl.kernel @loss(%h: !tgl.tensor<[4096, 1024], bf16> {tgl.name = "h", tgl.role = "in"},
                 %w: !tgl.tensor<[32000, 1024], bf16> {tgl.name = "w", tgl.role = "in"},
                 %y: !tgl.tensor<[4096], i64> {tgl.name = "y", tgl.role = "in"},
                 %loss: !tgl.tensor<[], f32> {tgl.name = "loss", tgl.role = "out"}) {
  %z = tgl.temp "z" : !tgl.tensor<[4096, 32000], f32>
  tgl.parallel (%i = 0 to 4096, %j = 0 to 32000) {
    %s = tgl.reduce sum (%d = 0 to 1024) -> f32 {
      %a = tgl.read %h[%i, %d] : !tgl.tensor<[4096, 1024], bf16>
      %b = tgl.read %w[%j, %d] : !tgl.tensor<[32000, 1024], bf16>
      %p = arith.mulf %a, %b : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %z[%i, %j] : f32, !tgl.tensor<[4096, 32000], f32>
  }
  %l = tgl.temp "l" : !tgl.tensor<[4096], f32>
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce logsumexp (%j = 0 to 32000) -> f32 {
      %v = tgl.read %z[%i, %j] : !tgl.tensor<[4096, 32000], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %l[%i] : f32, !tgl.tensor<[4096], f32>
  }
  tgl.parallel () {
    %s = tgl.reduce sum (%i = 0 to 4096) -> f32 {
      %v = tgl.read %l[%i] : !tgl.tensor<[4096], f32>
      %c = tgl.read %y[%i] : !tgl.tensor<[4096], i64>
      %at = arith.index_cast %c : i64 to index
      %t = tgl.read %z[%i, %at] checked "z[i, y[i]]" : !tgl.tensor<[4096, 32000], f32>
      %e = arith.subf %v, %t : f32
      tgl.yield %e : f32
    }
    tgl.write %s, %loss[] : f32, !tgl.tensor<[], f32>
  }
}

// -----

// Two reductions of one product have a copy each; tgl-fuse makes one statement of them.
// CHECK-LABEL: tgl.kernel @two
// CHECK-NOT: tgl.tensor<[4096, 32000], f32>
// CHECK: tgl.reduce logsumexp (%{{.*}} = 0 to 32000)
// CHECK-NEXT: tgl.reduce sum (%{{.*}} = 0 to 1024)
// CHECK: tgl.reduce max (%{{.*}} = 0 to 32000)
// CHECK-NEXT: tgl.reduce sum (%{{.*}} = 0 to 1024)
tgl.kernel @two(%h: !tgl.tensor<[4096, 1024], bf16> {tgl.name = "h", tgl.role = "in"},
                %w: !tgl.tensor<[32000, 1024], bf16> {tgl.name = "w", tgl.role = "in"},
                %l: !tgl.tensor<[4096], f32> {tgl.name = "l", tgl.role = "out"},
                %m: !tgl.tensor<[4096], f32> {tgl.name = "m", tgl.role = "out"}) {
  %z = tgl.temp "z" : !tgl.tensor<[4096, 32000], f32>
  tgl.parallel (%i = 0 to 4096, %j = 0 to 32000) {
    %s = tgl.reduce sum (%d = 0 to 1024) -> f32 {
      %a = tgl.read %h[%i, %d] : !tgl.tensor<[4096, 1024], bf16>
      %b = tgl.read %w[%j, %d] : !tgl.tensor<[32000, 1024], bf16>
      %p = arith.mulf %a, %b : f32
      tgl.yield %p : f32
    }
    tgl.write %s, %z[%i, %j] : f32, !tgl.tensor<[4096, 32000], f32>
  }
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce logsumexp (%j = 0 to 32000) -> f32 {
      %v = tgl.read %z[%i, %j] : !tgl.tensor<[4096, 32000], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %l[%i] : f32, !tgl.tensor<[4096], f32>
  }
  tgl.parallel (%i = 0 to 4096) {
    %s = tgl.reduce max (%j = 0 to 32000) -> f32 {
      %v = tgl.read %z[%i, %j] : !tgl.tensor<[4096, 32000], f32>
      tgl.yield %v : f32
    }
    tgl.write %s, %m[%i] : f32, !tgl.tensor<[4096], f32>
  }
}

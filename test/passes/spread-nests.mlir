// RUN: tegula-opt %s --tgl-spread-nests --split-input-file | FileCheck %s

// Four points would run on four blocks: the nest runs on as many as it has work for.
// CHECK-LABEL: tgl.kernel @few
// CHECK: %kept = tgl.temp "kept" : !tgl.tensor<[4], f32>
// CHECK: tgl.parallel (%[[N:.*]] = 0 to 4)
// CHECK: %[[S:.*]] = tgl.reduce sum
// CHECK: tgl.write %[[S]], %kept[%[[N]]]
// CHECK: tgl.parallel (%[[M:.*]] = 0 to 4, %[[I:.*]] = 0 to 1000000)
// CHECK: %[[K:.*]] = tgl.read %kept[%[[M]]]
// CHECK: tgl.read %x[%[[M]], %[[I]]]
// CHECK: arith.divf %{{.*}}, %[[K]]
// CHECK: tgl.write %{{.*}}, %y[%[[M]], %[[I]]]
tgl.kernel @few(%x: !tgl.tensor<[4, 1000000], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[4, 1000000], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%n = 0 to 4) {
    %s = tgl.reduce sum (%i = 0 to 1000000) -> f32 {
      %v = tgl.read %x[%n, %i] : !tgl.tensor<[4, 1000000], f32>
      tgl.yield %v : f32
    }
    tgl.parallel (%i = 0 to 1000000) {
      %v = tgl.read %x[%n, %i] : !tgl.tensor<[4, 1000000], f32>
      %q = arith.divf %v, %s : f32
      tgl.write %q, %y[%n, %i] : f32, !tgl.tensor<[4, 1000000], f32>
    }
  }
}

// -----

// Points enough, a short nest, and a nest that uses what only its point has.
// CHECK-LABEL: tgl.kernel @many
// CHECK: tgl.parallel (%n = 0 to 4096)
// CHECK-NOT: "kept"
// CHECK: tgl.parallel (%n = 0 to 4)
// CHECK: tgl.parallel (%i = 0 to 100)
// CHECK: tgl.parallel (%n = 0 to 4)
// CHECK: tgl.parallel (%i = 0 to 100000)
// CHECK: tgl.read %p[%i]
tgl.kernel @many(%x: !tgl.tensor<[4096, 100000], f32> {tgl.name = "x", tgl.role = "in"},
                 %y: !tgl.tensor<[4096, 100000], f32> {tgl.name = "y", tgl.role = "out"},
                 %z: !tgl.tensor<[4, 100000], f32> {tgl.name = "z", tgl.role = "out"}) {
  %one = arith.constant 1.000000e+00 : f32
  tgl.parallel (%n = 0 to 4096) {
    %s = tgl.read %x[%n, 0] : !tgl.tensor<[4096, 100000], f32>
    tgl.parallel (%i = 0 to 100000) {
      tgl.write %s, %y[%n, %i] : f32, !tgl.tensor<[4096, 100000], f32>
    }
  }
  tgl.parallel (%n = 0 to 4) {
    %s = tgl.read %x[%n, 0] : !tgl.tensor<[4096, 100000], f32>
    tgl.parallel (%i = 0 to 100) {
      tgl.write %s, %z[%n, %i] : f32, !tgl.tensor<[4, 100000], f32>
    }
  }
  tgl.parallel (%n = 0 to 4) {
    %p = tgl.temp "p" : !tgl.tensor<[100000], f32>
    tgl.parallel (%i = 0 to 100000) {
      tgl.write %one, %p[%i] : f32, !tgl.tensor<[100000], f32>
    }
    tgl.parallel (%i = 0 to 100000) {
      %v = tgl.read %p[%i] : !tgl.tensor<[100000], f32>
      tgl.write %v, %z[%n, %i] : f32, !tgl.tensor<[4, 100000], f32>
    }
  }
}

// -----

// Rows so long that no cluster keeps them: what follows from each runs on its own also where there are more of them.
// CHECK-LABEL: tgl.kernel @long
// CHECK: %kept = tgl.temp "kept" : !tgl.tensor<[512], f32>
// CHECK: tgl.parallel (%{{.*}} = 0 to 512, %{{.*}} = 0 to 1048576)
tgl.kernel @long(%x: !tgl.tensor<[512, 1048576], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[512, 1048576], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%n = 0 to 512) {
    %s = tgl.reduce max (%i = 0 to 1048576) -> f32 {
      %v = tgl.read %x[%n, %i] : !tgl.tensor<[512, 1048576], f32>
      tgl.yield %v : f32
    }
    tgl.parallel (%i = 0 to 1048576) {
      %v = tgl.read %x[%n, %i] : !tgl.tensor<[512, 1048576], f32>
      %q = arith.divf %v, %s : f32
      tgl.write %q, %y[%n, %i] : f32, !tgl.tensor<[512, 1048576], f32>
    }
  }
}

// -----

// CHECK-LABEL: tgl.kernel @shorter
// CHECK-NOT: "kept"
// CHECK: tgl.parallel (%n = 0 to 512)
// CHECK: tgl.parallel (%i = 0 to 1000000)
tgl.kernel @shorter(%x: !tgl.tensor<[512, 1000000], f32> {tgl.name = "x", tgl.role = "in"},
                %y: !tgl.tensor<[512, 1000000], f32> {tgl.name = "y", tgl.role = "out"}) {
  tgl.parallel (%n = 0 to 512) {
    %s = tgl.reduce max (%i = 0 to 1000000) -> f32 {
      %v = tgl.read %x[%n, %i] : !tgl.tensor<[512, 1000000], f32>
      tgl.yield %v : f32
    }
    tgl.parallel (%i = 0 to 1000000) {
      %v = tgl.read %x[%n, %i] : !tgl.tensor<[512, 1000000], f32>
      %q = arith.divf %v, %s : f32
      tgl.write %q, %y[%n, %i] : f32, !tgl.tensor<[512, 1000000], f32>
    }
  }
}

// RUN: tegula-opt %s --tgl-hoist-step-values | FileCheck %s
// RUN: tegula-opt %s --tgl-hoist-step-values=fewest-saved=1 | FileCheck %s --check-prefix=DATA

// A decay of channels, which 16 columns of the state share: the largest expression of its axes is computed for all steps, before the
// equation that begins the state.
// CHECK-LABEL: tgl.kernel @decayed
// CHECK: %[[T:.*]] = tgl.temp "of_steps" : !tgl.tensor<[4096, 256], f32>
// CHECK: tgl.parallel (%step = 0 to 4096, %i = 0 to 256) {
// CHECK: %[[W:.*]] = tgl.read %w[%step, %i]
// CHECK: %[[E:.*]] = math.exp %[[W]]
// CHECK: %[[H:.*]] = arith.mulf %[[E]]
// CHECK: tgl.write %[[H]], %[[T]][%step, %i]
// CHECK: tgl.parallel (%i = 0 to 256, %j = 0 to 16) {
// CHECK: tgl.for %t = 0 to 4096
// CHECK-NOT: math.exp
// CHECK: tgl.read %[[T]][%t, %i]
// CHECK-NOT: math.exp
tgl.kernel @decayed(%w: !tgl.tensor<[4096, 256], f32> {tgl.name = "w", tgl.role = "in"},
                    %v: !tgl.tensor<[4096, 16], f32> {tgl.name = "v", tgl.role = "in"},
                    %s: !tgl.tensor<[256, 16], f32> {tgl.name = "s", tgl.role = "out"}) {
  %half = arith.constant 5.0e-1 : f32
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to 256, %j = 0 to 16) {
    tgl.write %zero, %s[%i, %j] : f32, !tgl.tensor<[256, 16], f32>
  }
  tgl.for %t = 0 to 4096 {
    tgl.parallel (%i = 0 to 256, %j = 0 to 16) {
      %x = tgl.read %w[%t, %i] : !tgl.tensor<[4096, 256], f32>
      %e = math.exp %x : f32
      %h = arith.mulf %e, %half : f32
      %before = tgl.read %s[%i, %j] : !tgl.tensor<[256, 16], f32>
      %kept = arith.mulf %h, %before : f32
      %own = tgl.read %v[%t, %j] : !tgl.tensor<[4096, 16], f32>
      %next = arith.addf %kept, %own : f32
      tgl.write %next, %s[%i, %j] : f32, !tgl.tensor<[256, 16], f32>
    }
  }
}

// Four columns are too few, values of the state stay, and so do those of which each point has its own.
// CHECK-LABEL: tgl.kernel @kept
// CHECK-NOT: of_steps
tgl.kernel @kept(%w: !tgl.tensor<[4096, 256], f32> {tgl.name = "w", tgl.role = "in"},
                 %v: !tgl.tensor<[4096, 256, 4], f32> {tgl.name = "v", tgl.role = "in"},
                 %s: !tgl.tensor<[256, 4], f32> {tgl.name = "s", tgl.role = "out"}) {
  tgl.for %t = 0 to 4096 {
    tgl.parallel (%i = 0 to 256, %j = 0 to 4) {
      %x = tgl.read %w[%t, %i] : !tgl.tensor<[4096, 256], f32>
      %e = math.exp %x : f32
      %before = tgl.read %s[%i, %j] : !tgl.tensor<[256, 4], f32>
      %bound = math.tanh %before : f32
      %kept = arith.mulf %e, %bound : f32
      %own = tgl.read %v[%t, %i, %j] : !tgl.tensor<[4096, 256, 4], f32>
      %gate = math.exp %own : f32
      %next = arith.addf %kept, %gate : f32
      tgl.write %next, %s[%i, %j] : f32, !tgl.tensor<[256, 4], f32>
    }
  }
}
// What is hoisted stands behind what says where the loop begins.
// DATA-LABEL: tgl.kernel @from_data
// DATA: %[[LOW:.*]] = arith.index_cast
// DATA: of_steps
// DATA: tgl.for %{{.*}} = %[[LOW]]
tgl.kernel @from_data(%n: !tgl.tensor<[1], i64> {tgl.name = "n", tgl.role = "in"},
                      %w: !tgl.tensor<[4096, 256], f32> {tgl.name = "w", tgl.role = "in"},
                      %v: !tgl.tensor<[4096, 16], f32> {tgl.name = "v", tgl.role = "in"},
                      %s: !tgl.tensor<[256, 16], f32> {tgl.name = "s", tgl.role = "out"}) {
  %half = arith.constant 5.0e-1 : f32
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to 256, %j = 0 to 16) {
    tgl.write %zero, %s[%i, %j] : f32, !tgl.tensor<[256, 16], f32>
  }
  %c0 = arith.constant 0 : index
  %n0 = tgl.read %n[0] : !tgl.tensor<[1], i64>
  %lo = arith.index_cast %n0 : i64 to index
  tgl.for %t = %lo to %lo + 2 {
    tgl.parallel (%i = 0 to 256, %j = 0 to 16) {
      %x = tgl.read %w[%t, %i] checked "t" : !tgl.tensor<[4096, 256], f32>
      %e = math.exp %x : f32
      %before = tgl.read %s[%i, %j] : !tgl.tensor<[256, 16], f32>
      %kept = arith.mulf %e, %before : f32
      %tt = arith.index_cast %t : index to i64
      %tf = arith.sitofp %tt : i64 to f32
      %ef = math.exp %tf : f32
      %own = tgl.read %v[0, %j] : !tgl.tensor<[4096, 16], f32>
      %next = arith.addf %kept, %own : f32
      %next2 = arith.addf %next, %ef : f32
      tgl.write %next2, %s[%i, %j] : f32, !tgl.tensor<[256, 16], f32>
    }
  }
}

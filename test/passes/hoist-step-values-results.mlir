// RUN: tegula-opt %s --tgl-hoist-step-values=fewest-saved=1 -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir --kernel=mixed --against=%s --tolerance=0 --quiet
// RUN: tegula-interpret %t.mlir --kernel=nested --against=%s --tolerance=0 --quiet

// The same results: steps from the second on and from the last to the first, a value of what an equation before the loop writes,
// nested functions, one of which is used twice, a tensor that steps write.
// CHECK: tgl.write {{.*}}, %r
// CHECK: tgl.temp "of_steps"
// CHECK: math.exp
// CHECK: tgl.for %t = 2 to 11 reverse
// CHECK-NOT: math.log
// CHECK: tgl.read %of_steps
// CHECK: math.tanh
tgl.kernel @mixed(%w: !tgl.tensor<[12, 5], f32> {tgl.name = "w", tgl.role = "in"},
                  %v: !tgl.tensor<[12, 9], f32> {tgl.name = "v", tgl.role = "in"},
                  %r: !tgl.tensor<[12, 5], f32> {tgl.name = "r", tgl.role = "out"},
                  %p: !tgl.tensor<[12, 5], f32> {tgl.name = "p", tgl.role = "out"},
                  %s: !tgl.tensor<[5, 9], f32> {tgl.name = "s", tgl.role = "out"}) {
  %two = arith.constant 2.0 : f32
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to 12, %j = 0 to 5) {
    %x = tgl.read %w[%i, %j] : !tgl.tensor<[12, 5], f32>
    %y = arith.mulf %x, %two : f32
    tgl.write %y, %r[%i, %j] : f32, !tgl.tensor<[12, 5], f32>
    tgl.write %zero, %p[%i, %j] : f32, !tgl.tensor<[12, 5], f32>
  }
  tgl.parallel (%i = 0 to 5, %j = 0 to 9) {
    tgl.write %zero, %s[%i, %j] : f32, !tgl.tensor<[5, 9], f32>
  }
  tgl.for %t = 2 to 11 reverse {
    tgl.parallel (%i = 0 to 5) {
      %x = tgl.read %w[%t, %i] : !tgl.tensor<[12, 5], f32>
      tgl.write %x, %p[%t, %i] : f32, !tgl.tensor<[12, 5], f32>
    }
    tgl.parallel (%i = 0 to 5, %j = 0 to 9) {
      %x = tgl.read %r[%t, %i] : !tgl.tensor<[12, 5], f32>
      %e = math.exp %x : f32
      %more = arith.addf %e, %two : f32
      %l = math.log %more : f32
      %f = arith.mulf %l, %e : f32
      %written = tgl.read %p[%t, %i] : !tgl.tensor<[12, 5], f32>
      %bound = math.tanh %written : f32
      %before = tgl.read %s[%i, %j] : !tgl.tensor<[5, 9], f32>
      %kept = arith.mulf %f, %before : f32
      %own = tgl.read %v[%t, %j] : !tgl.tensor<[12, 9], f32>
      %added = arith.mulf %bound, %own : f32
      %next = arith.addf %kept, %added : f32
      tgl.write %next, %s[%i, %j] : f32, !tgl.tensor<[5, 9], f32>
    }
  }
}

// A loop in a loop: what an outer step knows is there for all of its inner steps.
// CHECK-LABEL: tgl.kernel @nested
// CHECK: tgl.for %l = 0 to 3
// CHECK: tgl.parallel (%step = 0 to 6, %i = 0 to 5)
// CHECK: math.exp
// CHECK: tgl.for %t = 0 to 6
// CHECK-NOT: math.exp
tgl.kernel @nested(%w: !tgl.tensor<[3, 6, 5], f32> {tgl.name = "w", tgl.role = "in"},
                   %v: !tgl.tensor<[6, 9], f32> {tgl.name = "v", tgl.role = "in"},
                   %s: !tgl.tensor<[5, 9], f32> {tgl.name = "s", tgl.role = "out"}) {
  %zero = arith.constant 0.0 : f32
  tgl.parallel (%i = 0 to 5, %j = 0 to 9) {
    tgl.write %zero, %s[%i, %j] : f32, !tgl.tensor<[5, 9], f32>
  }
  tgl.for %l = 0 to 3 {
    tgl.for %t = 0 to 6 {
      tgl.parallel (%i = 0 to 5, %j = 0 to 9) {
        %x = tgl.read %w[%l, %t, %i] : !tgl.tensor<[3, 6, 5], f32>
        %e = math.exp %x : f32
        %before = tgl.read %s[%i, %j] : !tgl.tensor<[5, 9], f32>
        %kept = arith.mulf %e, %before : f32
        %own = tgl.read %v[%t, %j] : !tgl.tensor<[6, 9], f32>
        %next = arith.addf %kept, %own : f32
        tgl.write %next, %s[%i, %j] : f32, !tgl.tensor<[5, 9], f32>
      }
    }
  }
}

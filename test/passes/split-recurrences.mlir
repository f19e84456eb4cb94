// RUN: tegula-opt %s --tgl-split-recurrences=threads=64 | FileCheck %s

// What each part makes of any state, what each begins with, and the steps as they were.
// CHECK-LABEL: @columns
// CHECK: tgl.temp "factor" : !tgl.tensor<[16, 8], f64>
// CHECK: tgl.parallel (%[[PART:.*]] = 0 to 16, %[[B:.*]] = 0 to 8)
// CHECK: tgl.for %{{.*}} = 63*%[[PART]] to min(1000, 63*%[[PART]] + 63) iter (%{{.*}} = %{{.*}} : f64, %{{.*}} = %{{.*}} : f64, %{{.*}} = %{{.*}} : f32, %{{.*}} = %{{.*}} : f32)
// CHECK: tgl.parallel (%[[B2:.*]] = 0 to 8)
// CHECK: tgl.for %[[P:.*]] = 0 to 16 iter (%[[H:.*]] = %{{.*}} : f32)
// CHECK: tgl.write %[[H]], %start[%[[P]], %[[B2]]]
// CHECK: %[[WALKED:.*]] = arith.cmpf ugt
// CHECK: tgl.for %{{.*}} = 63*%[[P]] to min(1000, 63*%[[P]] + 63*%{{.*}}) iter (%{{.*}} = %[[H]] : f32) attributes {seldom}
// CHECK: arith.select %[[WALKED]]
// CHECK: tgl.parallel (%[[PART3:.*]] = 0 to 16, %[[B3:.*]] = 0 to 8)
// CHECK: %[[START:.*]] = tgl.read %start[%[[PART3]], %[[B3]]]
// CHECK: tgl.for %[[T:.*]] = 63*%[[PART3]] to min(1000, 63*%[[PART3]] + 63) iter (%{{.*}} = %[[START]] : f32)
// CHECK: tgl.write %{{.*}}, %y[%[[T]], %[[B3]]]
tgl.kernel @columns(%a: !tgl.tensor<[1000, 8], f32> {tgl.name = "a", tgl.role = "in"},
                    %y: !tgl.tensor<[1000, 8], f32> {tgl.name = "y", tgl.role = "out"}) sizes [] {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%b = 0 to 8) {
      %0 = tgl.for %t = 0 to 1000 iter (%h = %zero : f32) {
        %1 = tgl.read %a[%t, %b] : !tgl.tensor<[1000, 8], f32>
        %2 = arith.mulf %1, %h : f32
        %3 = arith.addf %2, %1 : f32
        tgl.write %3, %y[%t, %b] : f32, !tgl.tensor<[1000, 8], f32>
        tgl.yield %3 : f32
      }
    }
  }
}

// Points that give the machine work stay, and so do states of which more is made than such a step.
// CHECK-LABEL: @others
// CHECK-NOT: f64
tgl.kernel @others(%a: !tgl.tensor<[1000, 64], f32> {tgl.name = "a", tgl.role = "in"},
                   %y: !tgl.tensor<[1000, 64], f32> {tgl.name = "y", tgl.role = "out"},
                   %z: !tgl.tensor<[1000], f32> {tgl.name = "z", tgl.role = "out"}) sizes [] {
  %zero = arith.constant 0.0 : f32
  tgl.launch "y" {
    tgl.parallel (%b = 0 to 64) {
      %0 = tgl.for %t = 0 to 1000 iter (%h = %zero : f32) {
        %1 = tgl.read %a[%t, %b] : !tgl.tensor<[1000, 64], f32>
        %2 = arith.mulf %1, %h : f32
        %3 = arith.addf %2, %1 : f32
        tgl.write %3, %y[%t, %b] : f32, !tgl.tensor<[1000, 64], f32>
        tgl.yield %3 : f32
      }
    }
  }
  tgl.launch "z" {
    tgl.parallel () {
      %0 = tgl.for %t = 0 to 1000 iter (%h = %zero : f32) {
        %1 = tgl.read %a[%t, 0] : !tgl.tensor<[1000, 64], f32>
        %2 = arith.mulf %1, %h : f32
        %3 = arith.mulf %2, %h : f32
        %4 = arith.addf %3, %1 : f32
        tgl.write %4, %z[%t] : f32, !tgl.tensor<[1000], f32>
        tgl.yield %4 : f32
      }
    }
  }
}

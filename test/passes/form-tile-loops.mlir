// RUN: tegula-opt %s --pass-pipeline='builtin.module(tgl.kernel(tgl-form-tiles))' -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: tegula-interpret %t.mlir -d P=7 --against=%s --quiet

// Three rows share keys and values, which lie in pages: a block takes part of them in tiles of 64. Keys are one operand, values
// the other way round a second; powers stay in registers between the products. What the loop does not change is read once.
// CHECK: tile.kernel "acc" (%[[PART:.*]] = 0 to 10, %b = 0 to 2, %block = 0 to 1) {
// CHECK: %[[ROWS:.*]] = tile.span 16*%block to 3 : !tile.span<16>
// CHECK: %[[D:.*]] = tile.span 0 to 64 : !tile.span<64>
// CHECK: %[[LEN:.*]] = arith.index_cast %{{.*}} : i32 to index
// CHECK: %[[Q:.*]] = tile.operand (%row in %[[ROWS]], %e in %[[E:.*]]) -> !tile.tile<16x64xbf16> {
// CHECK-NEXT: tgl.read %q[%b, %row, %e]
// CHECK: tile.for %[[J:.*]] = 64*%[[PART]] to min(%[[LEN]], 640, 64*%[[PART]] + 64) step 64
// CHECK-NEXT: %[[T:.*]] = tile.span %[[J]] to min(%[[LEN]], 640, 64*%[[PART]] + 64) : !tile.span<64>
// CHECK-NEXT: %[[K:.*]] = tile.operand (%t in %[[T]], %e in %[[E]]) -> !tile.tile<64x64xbf16> {
// CHECK: tgl.read %table[%b, %{{.*}} floordiv 16]
// CHECK: %[[V:.*]] = tile.operand (%d in %[[D]], %t in %[[T]]) -> !tile.tile<64x64xbf16> {
// CHECK: %[[S:.*]] = tile.dot %[[Q]], %[[K]], %{{.*}} : !tile.tile<16x64xbf16>, !tile.tile<64x64xbf16>, !tile.tile<16x64xf32>
// CHECK: %[[MASKED:.*]] = tile.map (%row in %[[ROWS]], %{{.*}} in %[[T]]) ({{.*}} = %[[S]] : !tile.tile<16x64xf32>)
// CHECK: tile.reduce %[[MASKED]] over %[[T]]
// CHECK: %[[MAX:.*]] = tile.map (%row in %[[ROWS]]) ({{.*}}) -> !tile.tile<16xf32> {
// CHECK-NEXT: arith.maximumf
// CHECK: %[[POWERS:.*]] = tile.map {{.*}} = %[[MAX]] : !tile.tile<16xf32>) -> !tile.tile<16x64xf32> {
// CHECK: %[[SCALED:.*]] = tile.map (%row in %[[ROWS]], %d in %[[D]])
// CHECK: %[[P:.*]] = tile.operand (%row in %[[ROWS]], %{{.*}} in %[[T]]) (%{{.*}} = %[[POWERS]] : !tile.tile<16x64xf32>) -> !tile.tile<16x64xbf16> {
// CHECK-NEXT: tgl.convert
// CHECK: tile.dot %[[P]], %[[V]], %[[SCALED]]
// CHECK: tile.store (%row in %[[ROWS]], %d in %[[D]])
// CHECK: } otherwise {
tgl.kernel @step(%q: !tgl.tensor<[2, 3, 64], bf16> {tgl.name = "q", tgl.role = "in"}, %k: !tgl.tensor<[P, 16, 64], bf16> {tgl.name = "k", tgl.role = "in"}, %v: !tgl.tensor<[P, 16, 64], bf16> {tgl.name = "v", tgl.role = "in"}, %table: !tgl.tensor<[2, 40], i32> {tgl.name = "table", tgl.role = "in"}, %len: !tgl.tensor<[2], i32> {tgl.name = "len", tgl.role = "in"}, %o: !tgl.tensor<[2, 3, 64], f32> {tgl.name = "o", tgl.role = "out"})
    sizes [P = 1 : 0] {
  %cst = arith.constant 1.000000e-03 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant 0.000000e+00 : f32
  %cst_2 = arith.constant -1.000000e+30 : f32
  %partial = tgl.temp "partial" : !tgl.tensor<[10, 2, 3], f32>
  %partial_3 = tgl.temp "partial" : !tgl.tensor<[10, 2, 3], f32>
  %partial_4 = tgl.temp "partial" : !tgl.tensor<[10, 2, 3, 64], f32>
  tgl.launch "acc" strategy "few-rows" {
    tgl.parallel (%part = 0 to 10, %b = 0 to 2, %r = 0 to 3) attributes {few_rows_tile = array<i64: 16, 64>, mapping = "thread,thread,thread"} {
      %acc = tgl.temp "acc" : !tgl.tensor<[64], f32>
      tgl.parallel (%d = 0 to 64) attributes {mapping = "vector"} {
        tgl.write %cst_1, %acc[%d] : f32, !tgl.tensor<[64], f32>
      }
      %0 = tgl.read %len[%b] : !tgl.tensor<[2], i32>
      %1 = arith.index_cast %0 : i32 to index
      %2 = arith.index_cast %1 : index to i64
      %3:2 = tgl.tiles (%t_lo, %t_hi) = 64*%part to min(%1, 640, 64*%part + 64) size 32 iter (%l = %cst_1 : f32, %m = %cst_2 : f32) {
        %s = tgl.temp "s" : !tgl.tensor<[32], f32>
        %p = tgl.temp "p" : !tgl.tensor<[32], f32>
        tgl.parallel (%t = %t_lo to %t_hi) attributes {mapping = "loop"} {
          %11 = arith.index_cast %t : index to i64
          %12 = arith.cmpi slt, %11, %2 : i64
          %13 = tgl.reduce sum (%e = 0 to 64) -> f32 attributes {mapping = "vector"} {
            %15 = tgl.read %q[%b, %r, %e] : !tgl.tensor<[2, 3, 64], bf16>
            %16 = tgl.read %table[%b, %t floordiv 16] : !tgl.tensor<[2, 40], i32>
            %17 = arith.index_cast %16 : i32 to index
            %18 = tgl.read %k[%17, %t - 16*(%t floordiv 16), %e] if %12 checked "k[table[b, t // 16], t % 16, e]" : !tgl.tensor<[P, 16, 64], bf16>
            %19 = arith.mulf %15, %18 fastmath<contract> : f32
            tgl.yield %19 : f32
          }
          %14 = arith.select %12, %13, %cst_0 : f32
          tgl.write %14, %s[%t - %t_lo] : f32, !tgl.tensor<[32], f32>
        }
        %4 = tgl.reduce max (%t = %t_lo to %t_hi) -> f32 attributes {mapping = "vector"} {
          %11 = tgl.read %s[%t - %t_lo] : !tgl.tensor<[32], f32>
          tgl.yield %11 : f32
        }
        %5 = arith.maximumf %m, %4 fastmath<contract> : f32
        tgl.parallel (%t = %t_lo to %t_hi) attributes {mapping = "vector"} {
          %11 = tgl.read %s[%t - %t_lo] : !tgl.tensor<[32], f32>
          %12 = arith.subf %11, %5 fastmath<contract> : f32
          %13 = math.exp2 %12 fastmath<contract> : f32
          tgl.write %13, %p[%t - %t_lo] : f32, !tgl.tensor<[32], f32>
        }
        %6 = arith.subf %m, %5 fastmath<contract> : f32
        %7 = math.exp2 %6 fastmath<contract> : f32
        %8 = arith.mulf %l, %7 fastmath<contract> : f32
        %9 = tgl.reduce sum (%t = %t_lo to %t_hi) -> f32 attributes {mapping = "vector"} {
          %11 = tgl.read %p[%t - %t_lo] : !tgl.tensor<[32], f32>
          tgl.yield %11 : f32
        }
        %10 = arith.addf %8, %9 fastmath<contract> : f32
        tgl.parallel (%d = 0 to 64) attributes {mapping = "vector"} {
          %11 = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
          %12 = arith.mulf %11, %7 fastmath<contract> : f32
          %13 = tgl.reduce sum (%t = %t_lo to %t_hi) -> f32 attributes {mapping = "loop"} {
            %15 = tgl.read %p[%t - %t_lo] : !tgl.tensor<[32], f32>
            %16 = tgl.convert %15 to bf16 : f32 -> f32
            %17 = tgl.read %table[%b, %t floordiv 16] : !tgl.tensor<[2, 40], i32>
            %18 = arith.index_cast %17 : i32 to index
            %19 = tgl.read %v[%18, %t - 16*(%t floordiv 16), %d] checked "v[table[b, t // 16], t % 16, d]" : !tgl.tensor<[P, 16, 64], bf16>
            %20 = arith.mulf %16, %19 fastmath<contract> : f32
            tgl.yield %20 : f32
          }
          %14 = arith.addf %12, %13 fastmath<contract> : f32
          tgl.write %14, %acc[%d] : f32, !tgl.tensor<[64], f32>
        }
        tgl.yield %10, %5 : f32, f32
      }
      tgl.write %3#0, %partial[%part, %b, %r] : f32, !tgl.tensor<[10, 2, 3], f32>
      tgl.write %3#1, %partial_3[%part, %b, %r] : f32, !tgl.tensor<[10, 2, 3], f32>
      tgl.parallel (%d = 0 to 64) attributes {mapping = "vector"} {
        %4 = tgl.read %acc[%d] : !tgl.tensor<[64], f32>
        tgl.write %4, %partial_4[%part, %b, %r, %d] : f32, !tgl.tensor<[10, 2, 3, 64], f32>
      }
    }
  }
  tgl.launch "merge" strategy "general" {
    tgl.parallel (%b_r = 0 to 6) attributes {mapping = "thread"} {
      %0 = tgl.reduce max (%part = 0 to 10) -> f32 attributes {mapping = "loop"} {
        %2 = tgl.read %partial_3[%part, %b_r floordiv 3, %b_r - 3*(%b_r floordiv 3)] : !tgl.tensor<[10, 2, 3], f32>
        tgl.yield %2 : f32
      }
      %1 = tgl.reduce sum (%part = 0 to 10) -> f32 attributes {mapping = "loop"} {
        %2 = tgl.read %partial[%part, %b_r floordiv 3, %b_r - 3*(%b_r floordiv 3)] : !tgl.tensor<[10, 2, 3], f32>
        %3 = tgl.read %partial_3[%part, %b_r floordiv 3, %b_r - 3*(%b_r floordiv 3)] : !tgl.tensor<[10, 2, 3], f32>
        %4 = arith.subf %3, %0 fastmath<contract> : f32
        %5 = math.exp2 %4 fastmath<contract> : f32
        %6 = arith.mulf %2, %5 : f32
        tgl.yield %6 : f32
      }
      tgl.parallel (%d = 0 to 64) attributes {mapping = "vector"} {
        %2 = arith.maximumf %1, %cst fastmath<contract> : f32
        %3 = tgl.reduce sum (%part = 0 to 10) -> f32 attributes {mapping = "loop"} {
          %5 = tgl.read %partial_4[%part, %b_r floordiv 3, %b_r - 3*(%b_r floordiv 3), %d] : !tgl.tensor<[10, 2, 3, 64], f32>
          %6 = tgl.read %partial_3[%part, %b_r floordiv 3, %b_r - 3*(%b_r floordiv 3)] : !tgl.tensor<[10, 2, 3], f32>
          %7 = arith.subf %6, %0 fastmath<contract> : f32
          %8 = math.exp2 %7 fastmath<contract> : f32
          %9 = arith.mulf %5, %8 : f32
          tgl.yield %9 : f32
        }
        %4 = arith.divf %3, %2 fastmath<contract> : f32
        tgl.write %4, %o[%b_r floordiv 3, %b_r - 3*(%b_r floordiv 3), %d] : f32, !tgl.tensor<[2, 3, 64], f32>
      }
    }
  }
}

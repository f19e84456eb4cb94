// RUN: tegula-opt %s -split-input-file -verify-diagnostics

// expected-error @+1 {{expected 16 x 16 elements, or multiples, for each warp of the layout}}
func.func private @layout(!tile.tile<24x16xf32, #tile.mma<1x1>>)

// -----

// expected-error @+1 {{expected warps along rows and columns, such as 4x1}}
func.func private @warps(!tile.tile<32x16xf32, #tile.mma<4>>)

// -----

// expected-error @+1 {{expected elements of bf16, f16, f32 or of 8 bits, found 'f64'}}
func.func private @shared(!tile.shared<32x16xf64, k_major>)

// -----

// expected-error @+1 {{expected lines of a multiple of 16 bytes}}
func.func private @bytes(!tile.shared<32x24xi8, k_major>)

// -----

// expected-error @+1 {{expected a multiple of 16 by 128 bytes}}
func.func private @depth(!tile.shared<32x64xf32, k_major>)

// -----

func.func @split(%a: !tile.tile<16x64xbf16>, %c: !tile.tile<16x16xf32>) {
  // expected-error @+1 {{expected split operands of f32, found '!tile.tile<16x64xbf16>'}}
  %0 = tile.dot split %a, %a, %c : !tile.tile<16x64xbf16>, !tile.tile<16x64xbf16>, !tile.tile<16x16xf32>
  return
}

// -----

func.func @whole(%a: !tile.shared<16x32xf32, k_major>, %c: !tile.tile<16x16xf32, #tile.mma<1x1>>) {
  // expected-error @+1 {{expected operands to be split where they are f32}}
  %0 = tile.mma %a, %a, %c : !tile.shared<16x32xf32, k_major>, !tile.shared<16x32xf32, k_major>, !tile.tile<16x16xf32, #tile.mma<1x1>>
  return
}

// -----

// expected-error @+1 {{no state for reductions var}}
func.func private @state(!tile.state<var, 32xf32>)

// -----

func.func @dot(%a: !tile.tile<16x64xbf16>, %b: !tile.tile<16x32xbf16>, %c: !tile.tile<16x16xf32>) {
  // expected-error @+1 {{expected tiles of M x K, N x K and M x N}}
  %0 = tile.dot %a, %b, %c : !tile.tile<16x64xbf16>, !tile.tile<16x32xbf16>, !tile.tile<16x16xf32>
  return
}

// -----

func.func @mma(%a: !tile.shared<16x64xbf16, k_major>, %c: !tile.tile<16x16xf32>) {
  // expected-error @+1 {{expected sums in a layout}}
  %0 = tile.mma %a, %a, %c : !tile.shared<16x64xbf16, k_major>, !tile.shared<16x64xbf16, k_major>, !tile.tile<16x16xf32>
  return
}

// -----

func.func @reduce(%v: !tile.tile<16x32xf32>, %n: !tile.span<16>, %s: !tile.state<max, 16xf32>) {
  // expected-error @+1 {{expected a tile of the state's rows by the span's columns}}
  %0 = tile.reduce %v over %n into %s : !tile.tile<16x32xf32>, !tile.span<16>, !tile.state<max, 16xf32>
  return
}

// -----

func.func @map(%m: !tile.span<16>, %v: !tile.tile<16xf32>) {
  // expected-error @+1 {{expected to yield one element}}
  %0 = tile.map (%i in %m) (%x = %v : !tile.tile<16xf32>) -> !tile.tile<16xf32> {
    tile.yield
  }
  return
}

// -----

func.func @for(%s: !tile.state<max, 16xf32>) {
  // expected-error @+1 {{expected a step of at least 1, found 0}}
  %0 = tile.for %j = 0 to 8 step 0 iter (%b = %s : !tile.state<max, 16xf32>) {
    tile.yield %b : !tile.state<max, 16xf32>
  }
  return
}

// -----

func.func @warp_columns(%v: !tile.tile<32x32xf32, #tile.mma<1x2>>, %n: !tile.span<32>, %s: !tile.state<max, 32xf32, #tile.mma<1x2>>) {
  // expected-error @+1 {{expected warps one above the other}}
  %0 = tile.reduce %v over %n into %s : !tile.tile<32x32xf32, #tile.mma<1x2>>, !tile.span<32>, !tile.state<max, 32xf32, #tile.mma<1x2>>
  return
}

// -----

tgl.kernel @place() sizes [] {
  tgl.launch "y" {
    tile.kernel "y" () attributes {shared_bytes = 4096 : i64, threads = 32 : i64} {
      // expected-error @+1 {{expected a place in the 4096 bytes of the kernel}}
      %0 = tile.alloc at 2048 : !tile.shared<32x64xbf16, k_major>
    }
  }
}

// -----

tgl.kernel @writes(%x: !tgl.tensor<[64], f32> {tgl.name = "x", tgl.role = "out"}) sizes [] {
  tgl.launch "y" {
    tile.kernel "y" () {
      %i = tile.span 0 to 64 : !tile.span<64>
      %zero = arith.constant 0.0 : f32
      // expected-error @+1 {{expected a region that writes nothing}}
      %0 = tile.operand (%a in %i, %b in %i) -> !tile.tile<64x64xbf16> {
        tgl.write %zero, %x[%a] : f32, !tgl.tensor<[64], f32>
        tile.yield %zero : f32
      }
    }
  }
}

// -----

tgl.kernel @bytes() sizes [] {
  tgl.launch "y" {
    tile.kernel "y" () {
      %i = tile.span 0 to 64 : !tile.span<64>
      %0 = tile.alloc : !tile.shared<64x64xbf16, k_major>
      %zero = arith.constant 0.0 : f32
      // expected-error @+1 {{expected a region that ends in a read, as cp_async copies bytes}}
      tile.copy cp_async (%a in %i, %b in %i) to %0 : !tile.shared<64x64xbf16, k_major> {
        tile.yield %zero : f32
      }
    }
  }
}

// -----

// expected-error @+1 {{expected a stage or more, found 0}}
func.func private @ring(!tile.ring<0, 32x64xbf16, k_major>)

// -----

func.func @stage(%n: index, %r: !tile.ring<2, 32x64xbf16, k_major>) {
  // expected-error @+1 {{expected a stage of '!tile.ring<2, 32x64xbf16, k_major>', found '!tile.shared<16x64xbf16, k_major>'}}
  %0 = "tile.stage"(%r, %n) <{number = #tgl.expr<d0>}> : (!tile.ring<2, 32x64xbf16, k_major>, index) -> !tile.shared<16x64xbf16, k_major>
  return
}

// -----

func.func @advance(%n: index) {
  // expected-error @+1 {{expected a number and 2 indices, found 1 values}}
  %0, %1, %2, %3 = tile.advance from %n in (0 to 8 step 1, 0 to 64 step 8)
  return
}

// -----

func.func @turns(%n: index) {
  // expected-error @+1 {{expected steps of at least 1}}
  %0, %1, %2 = tile.advance in (0 to %n step 0)
  return
}

// -----

// expected-error @+1 {{expected warps of all rows and columns where they have slices of the sum}}
func.func private @slices(!tile.tile<32x16xf32, #tile.mma<2x1x4>>)

// -----

// expected-error @+1 {{expected a multiple of 8 rows, and columns, where warps have slices of the sum}}
func.func private @slice(!tile.tile<12x16xf32, #tile.mma<1x1x8>>)

// -----

// expected-error @+1 {{expected #tile.mma, #tile.wgmma or #tile.linear, found 1 : i64}}
func.func private @other(!tile.tile<16x16xf32, 1 : i64>)

// -----

// expected-error @+1 {{expected elements of f32, found 'bf16'}}
func.func private @scratch(!tile.scratch<8x16x32xbf16>)

// -----

func.func @sum(%c: !tile.tile<16x8xf32, #tile.mma<1x1x8>>, %x: !tile.scratch<4x8x16xf32>) {
  // expected-error @+1 {{expected scratch for the columns of each warp, found '!tile.scratch<4x8x16xf32>'}}
  %0 = tile.sum_warps %c in %x : !tile.tile<16x8xf32, #tile.mma<1x1x8>>, !tile.scratch<4x8x16xf32> -> !tile.tile<16x8xf32, #tile.linear<256>>
  return
}

// -----

func.func @terms(%c: !tile.tile<16x16xf32, #tile.mma<1x1>>, %x: !tile.scratch<8x16x16xf32>) {
  // expected-error @+1 {{expected accumulators of warps with slices}}
  %0 = tile.sum_warps %c in %x : !tile.tile<16x16xf32, #tile.mma<1x1>>, !tile.scratch<8x16x16xf32> -> !tile.tile<16x16xf32, #tile.linear<32>>
  return
}

// -----

func.func @computed(%a: !tile.tile<16x128xbf16, #tile.mma<1x1x8>>, %c: !tile.tile<16x16xf32, #tile.mma<1x1x8>>) {
  // expected-error @+1 {{expected operands in the layout of the sums}}
  %0 = tile.mma %a, %a, %c : !tile.tile<16x128xbf16, #tile.mma<1x1x8>>, !tile.tile<16x128xbf16, #tile.mma<1x1x8>>, !tile.tile<16x16xf32, #tile.mma<1x1x8>>
  return
}

// -----

func.func @vectors(%m: !tile.span<16>, %n: !tile.span<64>) {
  // expected-error @+1 {{expected a region that ends in a read of the tile's elements}}
  %0 = tile.vectors (%i in %m, %j in %n) -> !tile.tile<16x64xf32, #tile.mma<1x1x8>> {
    %c = arith.constant 1.0 : f32
    tile.yield %c : f32
  }
  return
}

// -----

func.func @places(%m: !tile.span<16>, %n: !tile.span<64>) {
  // expected-error @+1 {{expected a layout of warps with slices}}
  %0 = tile.vectors (%i in %m, %j in %n) -> !tile.tile<16x64xf32> {
    %c = arith.constant 1.0 : f32
    tile.yield %c : f32
  }
  return
}

// -----

// expected-error @+1 {{expected 64 rows for each warpgroup of the layout, and a multiple of 8 columns up to 256}}
func.func private @warpgroups(!tile.tile<64x128xf32, #tile.wgmma<2>>)

// -----

// expected-error @+1 {{expected 64 rows for each warpgroup of the layout, and a multiple of 8 columns up to 256}}
func.func private @wide(!tile.tile<64x264xf32, #tile.wgmma<1>>)

// -----

// expected-error @+1 {{expected 1 to 8 warpgroups}}
func.func private @many(!tile.tile<576x8xf32, #tile.wgmma<9>>)

// -----

func.func @across(%a: !tile.shared<64x64xbf16, mn_major>, %b: !tile.shared<16x64xbf16, k_major>, %c: !tile.tile<64x16xf32, #tile.wgmma<1>>) {
  // expected-error @+1 {{expected factors of 16 bits in shared memory, k_major, found '!tile.shared<64x64xbf16, mn_major>'}}
  %0 = tile.mma %a, %b, %c : !tile.shared<64x64xbf16, mn_major>, !tile.shared<16x64xbf16, k_major>, !tile.tile<64x16xf32, #tile.wgmma<1>>
  return
}

// -----

func.func @ready(%c: !tile.tile<64x16xf32, #tile.mma<4x1>>) {
  // expected-error @+1 {{expected sums in a layout of wgmma}}
  %0 = tile.ready %c : !tile.tile<64x16xf32, #tile.mma<4x1>>
  return
}

// -----

// expected-error @+1 {{expected 1 to 12 stages, found 13}}
func.func private @pipe(!tile.pipe<13>)

// -----

// expected-error @+1 {{expected at most 256 lines of 128 bytes}}
func.func private @map(!tile.tma_descriptor<64x32xbf16>)

// -----

// expected-error @+1 {{expected elements of bf16 or f16, found 'f32'}}
func.func private @map(!tile.tma_descriptor<64x32xf32>)

// -----

func.func @map(%x: !tgl.tensor<[64, 100], bf16>) {
  %m = tile.span 0 to 64 : !tile.span<64>
  // expected-error @+1 {{expected lines a known multiple of 16 bytes apart, of neighbours}}
  %map = tile.tma_descriptor (%i in %m, %k in %m) -> !tile.tma_descriptor<64x64xbf16> {
    %e = tgl.read %x[%i, %k] : !tgl.tensor<[64, 100], bf16>
    tile.yield %e : f32
  }
  return
}

// -----

func.func @map(%x: !tgl.tensor<[64, 128], bf16>) {
  %m = tile.span 0 to 64 : !tile.span<64>
  // expected-error @+1 {{expected a region that is a read of the descriptor's elements}}
  %map = tile.tma_descriptor (%i in %m, %k in %m) -> !tile.tma_descriptor<64x64xbf16> {
    %e = tgl.read %x[%i, %k] : !tgl.tensor<[64, 128], bf16>
    %f = arith.negf %e : f32
    tile.yield %f : f32
  }
  return
}

// -----

func.func @roles() {
  // expected-error @+1 {{expected whole warpgroups of consumers, found 96 threads}}
  tile.roles producer registers 40 {
    %s = tile.span 0 to 64 : !tile.span<64>
  } consumers 96 registers 232 {
    %s2 = tile.span 0 to 64 : !tile.span<64>
  }
  return
}

// -----

func.func @roles() {
  // expected-error @+1 {{expected 24 to 256 registers, a multiple of 8, found 44}}
  tile.roles producer registers 44 {
    %s = tile.span 0 to 64 : !tile.span<64>
  } consumers 256 registers 232 {
    %s2 = tile.span 0 to 64 : !tile.span<64>
  }
  return
}

// -----

func.func @roles() {
  // expected-error @+1 {{expected at most 65536 registers in all, found 66560}}
  tile.roles producer registers 40 {
    %s = tile.span 0 to 64 : !tile.span<64>
  } consumers 256 registers 240 {
    %s2 = tile.span 0 to 64 : !tile.span<64>
  }
  return
}

// -----

func.func @roles() {
  tile.roles producer registers 40 {
    %s = tile.span 0 to 64 : !tile.span<64>
  } consumers 256 registers 232 {
    // expected-error @+1 {{expected to be of all threads of the block}}
    tile.barrier
  }
  return
}

// -----

func.func @roles(%p: !tile.pipe<4>) {
  tile.roles producer registers 40 {
    // expected-error @+1 {{expected to be the consumers'}}
    tile.wait %p at 0 : !tile.pipe<4>
  } consumers 256 registers 232 {
    %s2 = tile.span 0 to 64 : !tile.span<64>
  }
  return
}

// -----

func.func @fill(%p: !tile.pipe<4>) {
  // expected-error @+1 {{expected a copy of a box}}
  tile.fill %p at 0 : !tile.pipe<4> {
    %s = tile.span 0 to 64 : !tile.span<64>
  }
  return
}

; Results of products are what is waited for.
; RUN: tegula-device-opt --passes=count-groups %s | FileCheck %s

declare void @llvm.nvvm.wgmma.commit_group.sync.aligned()
declare void @tegula.wgmma.await.f32(float)
declare { float, float } @tegula.wgmma.read.f32.2(float, float)

; The second of two groups need not be done for the first one's sums, to which it does not add.
; CHECK-LABEL: @two
; CHECK: [[A:%.*]] = extractvalue
; CHECK: [[B:%.*]] = extractvalue
; CHECK: asm sideeffect "wgmma.wait_group.sync.aligned $2;", "=f,=f,n,0,1,~{memory}"(i32 1, float [[A]], float [[A]])
; CHECK: asm sideeffect "wgmma.wait_group.sync.aligned $2;", "=f,=f,n,0,1,~{memory}"(i32 0, float [[B]], float [[B]])
define float @two() {
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  %a = extractvalue { float, float } %p, 0
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  %q = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f"()
  %b = extractvalue { float, float } %q, 0
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  %r = call { float, float } @tegula.wgmma.read.f32.2(float %a, float %a)
  %x = extractvalue { float, float } %r, 0
  %s = call { float, float } @tegula.wgmma.read.f32.2(float %b, float %b)
  %y = extractvalue { float, float } %s, 0
  %sum = fadd float %x, %y
  ret float %sum
}

; Operands of an iteration's product may change once the next has been started and the one before is done.
; CHECK-LABEL: @chain
; CHECK: loop:
; CHECK: asm sideeffect "wgmma.mma_async
; CHECK: call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
; CHECK-NEXT: call void @llvm.nvvm.wgmma.wait_group.sync.aligned(i64 1)
; CHECK: end:
; CHECK: "wgmma.wait_group.sync.aligned $2;", "=f,=f,n,0,1,~{memory}"(i32 0, float
define float @chain(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %sum = phi float [ 0.0, %entry ], [ %next, %loop ]
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f,0,1"(float %sum, float %sum)
  %next = extractvalue { float, float } %p, 0
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  call void @tegula.wgmma.await.f32(float %sum)
  %j = add i32 %i, 1
  %more = icmp slt i32 %j, %n
  br i1 %more, label %loop, label %end
end:
  %r = call { float, float } @tegula.wgmma.read.f32.2(float %next, float %next)
  %x = extractvalue { float, float } %r, 0
  ret float %x
}

; A product that only some paths start, and a value that is not under way, which comes out as it is.
; CHECK-LABEL: @some
; CHECK: "wgmma.wait_group.sync.aligned $2;", "=f,=f,n,0,1,~{memory}"(i32 0, float %sums, float %other)
define float @some(i1 %c, float %before, float %other) {
entry:
  br i1 %c, label %start, label %join
start:
  %p = call { float, float } asm sideeffect "wgmma.mma_async.sync.aligned {$0, $1};", "=f,=f,0,1"(float %before, float %before)
  %a = extractvalue { float, float } %p, 0
  br label %join
join:
  %sums = phi float [ %a, %start ], [ %before, %entry ]
  call void @llvm.nvvm.wgmma.commit_group.sync.aligned()
  %r = call { float, float } @tegula.wgmma.read.f32.2(float %sums, float %other)
  %x = extractvalue { float, float } %r, 0
  %y = extractvalue { float, float } %r, 1
  %sum = fadd float %x, %y
  ret float %sum
}

; CHECK-LABEL: @nothing
; CHECK-NEXT: ret float %x
define float @nothing(float %x) {
  %r = call { float, float } @tegula.wgmma.read.f32.2(float %x, float %x)
  %y = extractvalue { float, float } %r, 0
  ret float %y
}

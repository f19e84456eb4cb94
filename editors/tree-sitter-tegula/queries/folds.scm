[
  (block)
  (function_block)
  (schedule_block)
] @fold

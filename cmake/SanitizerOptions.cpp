// Part of every program that is built with sanitizers, and of the fuzz targets.

// LLVM and MLIR are linked as they come, without AddressSanitizer: memory that our instances of
// their allocators and containers mark as unused, theirs use without taking the mark away.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0:detect_container_overflow=0";
}

# Toolchain settings and the helpers that every folder uses:
#   tegula_library(NAME SOURCES... [TABLEGEN TARGET...] [LINK LIB...] [EXCEPTIONS])
#   tegula_executable(NAME SOURCES... [LINK LIB...])
#   tegula_tablegen(TARGET FILE.td (OUTPUT ARGS...)...)
# LLVM and MLIR are linked statically, so that `tegula` is one file.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Dev CACHE STRING "Dev, Release or Debug" FORCE)
endif()
# Dev: what daily work needs. -O1 halves compile time against -O2; assertions stay on.
set(CMAKE_CXX_FLAGS_DEV "-O1" CACHE STRING "" FORCE)
set(CMAKE_C_FLAGS_DEV "-O1" CACHE STRING "" FORCE)
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG" CACHE STRING "" FORCE)

find_program(CCACHE ccache)
if(CCACHE)
  set(launcher ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 CCACHE_PCH_EXTSUM=1
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
endif()

find_package(MLIR REQUIRED CONFIG PATHS /usr/lib/llvm-22/lib/cmake/mlir NO_DEFAULT_PATH)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(llvm_definitions NATIVE_COMMAND ${LLVM_DEFINITIONS})

# The exported MLIR targets name the shared LLVM and MLIR libraries; linking those beside the
# static ones would duplicate type ids, so they are taken out of every link interface. Compression
# becomes part of the file as well.
find_library(TEGULA_ZLIB NAMES libz.a REQUIRED)
find_library(TEGULA_ZSTD NAMES libzstd.a REQUIRED)
function(tegula_make_static target)
  if(NOT TARGET ${target})
    return()
  endif()
  get_property(done GLOBAL PROPERTY TEGULA_STATIC_${target})
  if(done)
    return()
  endif()
  set_property(GLOBAL PROPERTY TEGULA_STATIC_${target} TRUE)
  get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
  if(links)
    set(kept)
    foreach(link IN LISTS links)
      if(link STREQUAL "LLVM" OR link STREQUAL "MLIR")
        continue()
      elseif(link STREQUAL "ZLIB::ZLIB")
        set(link ${TEGULA_ZLIB})
      elseif(link STREQUAL "zstd::libzstd_shared")
        set(link ${TEGULA_ZSTD})
      endif()
      list(APPEND kept ${link})
      tegula_make_static(${link})
    endforeach()
    set_target_properties(${target} PROPERTIES INTERFACE_LINK_LIBRARIES "${kept}")
  endif()
endfunction()

add_library(tegula_flags INTERFACE)
target_include_directories(tegula_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
target_include_directories(tegula_flags SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(tegula_flags INTERFACE ${llvm_definitions})
target_compile_options(tegula_flags INTERFACE
  -Wall -Wextra -Wno-unused-parameter -ffunction-sections -fdata-sections
  $<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Xclang -fno-pch-timestamp>)
target_link_options(tegula_flags INTERFACE
  -fuse-ld=lld -Wl,--gc-sections -Wl,--as-needed)
# A sanitizer's runtime in a program throws for libtorch too: both must unwind with one library.
set(link_static 1)
if(TEGULA_SANITIZE)
  set(link_static $<NOT:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>>)
endif()
target_link_options(tegula_flags INTERFACE "$<${link_static}:-static-libstdc++;-static-libgcc>")
target_link_options(tegula_flags INTERFACE $<$<CONFIG:Release>:-s>)
if(TEGULA_SANITIZE)
  # Calls through pointers are checked for no type: it would be read before the function, and before code that is made
  # in process there is none, at times not even memory.
  target_compile_options(tegula_flags INTERFACE -fsanitize=${TEGULA_SANITIZE} -fno-sanitize=function
    -fno-omit-frame-pointer -g1)
  target_link_options(tegula_flags INTERFACE -fsanitize=${TEGULA_SANITIZE})
endif()

# tegula_pch(NAME HEADERS...): a precompiled header of others' headers (never ours: they change), to be reused.
function(tegula_pch name)
  file(WRITE ${CMAKE_BINARY_DIR}/${name}.cpp "")
  add_library(${name} OBJECT ${CMAKE_BINARY_DIR}/${name}.cpp)
  target_link_libraries(${name} PRIVATE tegula_flags)
  target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions>)
  target_precompile_headers(${name} PRIVATE ${ARGN})
  # What ccache compares instead of the precompiled header itself, which holds absolute paths: two builds
  # of one LLVM with one compiler share objects. (The command line is compared as it always is.)
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch.sum
    "LLVM ${LLVM_PACKAGE_VERSION}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}\n")
endfunction()

# MLIR's headers serve every target; those of LLVM's IR the code generators too, which saves a third of their time.
set(mlir_headers
  "<mlir/IR/Builders.h>" "<mlir/IR/BuiltinOps.h>" "<mlir/IR/BuiltinTypes.h>" "<mlir/IR/Dialect.h>"
  "<mlir/IR/OpImplementation.h>" "<mlir/IR/PatternMatch.h>" "<mlir/IR/AffineExpr.h>"
  "<mlir/Interfaces/SideEffectInterfaces.h>" "<mlir/Pass/Pass.h>" "<mlir/Pass/PassManager.h>"
  "<mlir/Dialect/Arith/IR/Arith.h>" "<mlir/Dialect/Math/IR/Math.h>"
  "<llvm/ADT/StringMap.h>" "<llvm/Support/raw_ostream.h>" "<map>" "<memory>" "<optional>"
  "<string>" "<vector>" "<functional>")
tegula_pch(tegula_pch ${mlir_headers})
tegula_pch(tegula_llvm_pch ${mlir_headers}
  "<llvm/IR/IRBuilder.h>" "<llvm/IR/InstIterator.h>" "<llvm/IR/IntrinsicsNVPTX.h>" "<llvm/IR/Module.h>")

# tegula_library(NAME [EXCEPTIONS] [LLVM_IR] SOURCES...): LLVM_IR: most of its sources include LLVM's IR.
function(tegula_library name)
  cmake_parse_arguments(arg "EXCEPTIONS;LLVM_IR" "" "TABLEGEN;LINK" ${ARGN})
  add_library(${name} STATIC ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC tegula_flags ${arg_LINK})
  if(arg_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fexceptions)
  else()
    target_compile_options(${name} PRIVATE -fno-exceptions)
    if(arg_LLVM_IR)
      target_precompile_headers(${name} REUSE_FROM tegula_llvm_pch)
    else()
      target_precompile_headers(${name} REUSE_FROM tegula_pch)
    endif()
  endif()
  if(arg_TABLEGEN)
    add_dependencies(${name} ${arg_TABLEGEN})
  endif()
  foreach(link IN LISTS arg_LINK)
    tegula_make_static(${link})
  endforeach()
endfunction()

function(tegula_executable name)
  cmake_parse_arguments(arg "" "" "LINK" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE tegula_flags ${arg_LINK})
  if(TEGULA_SANITIZE)
    target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/SanitizerOptions.cpp)
  endif()
  # The shared precompiled header is built with -fPIC; -fPIE would not match it.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fno-exceptions -fPIC)
  target_precompile_headers(${name} REUSE_FROM tegula_pch)
  foreach(link IN LISTS arg_LINK)
    tegula_make_static(${link})
  endforeach()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

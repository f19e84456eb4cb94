# tegula_run_on_old_glibc(TARGET): what the target links of a newer C library than glibc 2.28 is bound away (OldGlibc.c).
# For what users get: libtegula, the command, the Python module. Sanitizers have functions of the same names.

option(TEGULA_OLD_GLIBC "Make libtegula, tegula and the Python module run on glibc 2.28" ON)

if(NOT TEGULA_OLD_GLIBC OR TEGULA_SANITIZE OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  function(tegula_run_on_old_glibc target)
  endfunction()
  return()
endif()

# From glibc 2.34 on these are empty; before, threads and dlopen are in them.
find_library(TEGULA_LIBPTHREAD NAMES libpthread.so.0 REQUIRED)
find_library(TEGULA_LIBDL NAMES libdl.so.2 REQUIRED)

add_library(tegula_old_glibc OBJECT ${CMAKE_CURRENT_LIST_DIR}/OldGlibc.c)
add_library(tegula_old_glibc_start OBJECT ${CMAKE_CURRENT_LIST_DIR}/OldGlibcStart.c)
foreach(objects tegula_old_glibc tegula_old_glibc_start)
  set_target_properties(${objects} PROPERTIES POSITION_INDEPENDENT_CODE ON C_STANDARD 11)
  # An optimiser takes a definition of pow() for the library's own.
  target_compile_options(${objects} PRIVATE -O2 -Wall -Wextra -ffunction-sections -fno-builtin)
endforeach()

function(tegula_run_on_old_glibc target)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:tegula_old_glibc>)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "EXECUTABLE")
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:tegula_old_glibc_start>)
  endif()
  target_link_options(${target} PRIVATE -Wl,--push-state,--no-as-needed ${TEGULA_LIBPTHREAD} ${TEGULA_LIBDL}
    -Wl,--pop-state)
endfunction()

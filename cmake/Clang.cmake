# The compiler of every preset: Clang of the LLVM that is linked. It is looked for once for a build tree; a
# name in the preset would be looked up again in each run, and with another PATH CMake would take what it
# finds for a change of compilers and throw the tree's settings away.
find_program(TEGULA_CLANG clang-22 REQUIRED)
find_program(TEGULA_CLANGXX clang++-22 REQUIRED)
set(CMAKE_C_COMPILER ${TEGULA_CLANG})
set(CMAKE_CXX_COMPILER ${TEGULA_CLANGXX})
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TEGULA_CLANG TEGULA_CLANGXX)

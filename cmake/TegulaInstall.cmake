# `cmake --install`: the command, the library with its headers, and what lets others find them. By components:
#   runtime      the command with its manual page and completion, and the library that programs load
#   development  headers, the link that linkers follow, files for CMake and pkg-config
#   python       what a wheel holds; only where it is asked for by name (python/CMakeLists.txt)

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS tegula RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
install(FILES ${CMAKE_BINARY_DIR}/share/man/man1/tegula.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime
  OPTIONAL) # without Python, and with sanitizers, there is none
install(FILES ${CMAKE_BINARY_DIR}/share/bash-completion/completions/tegula
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime OPTIONAL)
install(TARGETS tegula_shared EXPORT TegulaTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT development)
install(FILES ${CMAKE_SOURCE_DIR}/runtime/include/tegula/tegula.h ${CMAKE_SOURCE_DIR}/runtime/include/tegula/tegula.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula COMPONENT development)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tegula)
install(EXPORT TegulaTargets NAMESPACE Tegula:: DESTINATION ${config_dir} COMPONENT development
  FILE TegulaConfig.cmake) # the targets need no other package: they are the configuration
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TegulaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TegulaConfigVersion.cmake DESTINATION ${config_dir} COMPONENT development)

# The prefix follows from where tegula.pc lies, so that a tree may be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(${CMAKE_SOURCE_DIR}/cmake/tegula.pc.in ${CMAKE_BINARY_DIR}/tegula.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tegula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)

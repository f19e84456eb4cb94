# `cmake --install`: the command, the library with its header, and what lets others find them.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS tegula RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT tegula)
install(TARGETS tegula_shared EXPORT TegulaTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT tegula NAMELINK_COMPONENT tegula)
install(FILES ${CMAKE_SOURCE_DIR}/runtime/include/tegula/tegula.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/tegula COMPONENT tegula)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Tegula)
install(EXPORT TegulaTargets NAMESPACE Tegula:: DESTINATION ${config_dir} COMPONENT tegula
  FILE TegulaConfig.cmake) # the targets need no other package: they are the configuration
write_basic_package_version_file(${CMAKE_BINARY_DIR}/TegulaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/TegulaConfigVersion.cmake DESTINATION ${config_dir} COMPONENT tegula)

# The prefix follows from where tegula.pc lies, so that a tree may be moved.
file(RELATIVE_PATH pc_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" pc_to_prefix ${pc_to_prefix})
configure_file(${CMAKE_SOURCE_DIR}/cmake/tegula.pc.in ${CMAKE_BINARY_DIR}/tegula.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/tegula.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT tegula)

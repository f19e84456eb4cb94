# libtegula and the command of another build tree, or of an installed one.

get_filename_component(prebuilt ${TEGULA_PREBUILT} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
set(library ${prebuilt}/lib/libtegula.so.${PROJECT_VERSION_MAJOR})
foreach(file ${library} ${prebuilt}/bin/tegula)
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "TEGULA_PREBUILT is ${TEGULA_PREBUILT}, and ${file} does not exist")
  endif()
endforeach()
file(REAL_PATH ${library} real_library)
add_library(Tegula::tegula SHARED IMPORTED GLOBAL)
set_target_properties(Tegula::tegula PROPERTIES IMPORTED_LOCATION ${real_library}
  IMPORTED_SONAME libtegula.so.${PROJECT_VERSION_MAJOR}
  INTERFACE_INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/runtime/include)
add_executable(tegula IMPORTED GLOBAL)
set_target_properties(tegula PROPERTIES IMPORTED_LOCATION ${prebuilt}/bin/tegula)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# snappy under one name, PenstockSnappy::PenstockSnappy, however it is packaged: with a
# CMake package of its own, or with only a header and a library. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockSnappy::PenstockSnappy)
  find_package(Snappy CONFIG QUIET)
  foreach(candidate IN ITEMS Snappy::snappy)
    if(TARGET ${candidate})
      add_library(PenstockSnappy::PenstockSnappy INTERFACE IMPORTED)
      set_target_properties(
        PenstockSnappy::PenstockSnappy PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockSnappy::PenstockSnappy)
  set(PenstockSnappy_TARGET PenstockSnappy::PenstockSnappy)
  find_package_handle_standard_args(PenstockSnappy REQUIRED_VARS PenstockSnappy_TARGET)
else()
  find_path(PenstockSnappy_INCLUDE_DIR snappy.h)
  find_library(PenstockSnappy_LIBRARY NAMES snappy)
  mark_as_advanced(PenstockSnappy_INCLUDE_DIR PenstockSnappy_LIBRARY)
  find_package_handle_standard_args(
    PenstockSnappy REQUIRED_VARS PenstockSnappy_LIBRARY PenstockSnappy_INCLUDE_DIR)
  if(PenstockSnappy_FOUND)
    add_library(PenstockSnappy::PenstockSnappy UNKNOWN IMPORTED)
    set_target_properties(
      PenstockSnappy::PenstockSnappy
      PROPERTIES IMPORTED_LOCATION ${PenstockSnappy_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockSnappy_INCLUDE_DIR})
  endif()
endif()

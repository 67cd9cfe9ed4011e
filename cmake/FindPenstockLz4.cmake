# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# liblz4 under one name, PenstockLz4::PenstockLz4, however it is packaged: with a CMake package of its own
# (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockLz4::PenstockLz4)
  find_package(lz4 CONFIG QUIET)
  foreach(candidate IN ITEMS lz4::lz4 LZ4::lz4_shared LZ4::lz4_static LZ4::lz4)
    if(TARGET ${candidate})
      add_library(PenstockLz4::PenstockLz4 INTERFACE IMPORTED)
      set_target_properties(PenstockLz4::PenstockLz4 PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockLz4::PenstockLz4)
  set(PenstockLz4_TARGET PenstockLz4::PenstockLz4)
  find_package_handle_standard_args(PenstockLz4 REQUIRED_VARS PenstockLz4_TARGET)
else()
  find_path(PenstockLz4_INCLUDE_DIR lz4frame.h)
  find_library(PenstockLz4_LIBRARY NAMES lz4 liblz4 lz4_static)
  mark_as_advanced(PenstockLz4_INCLUDE_DIR PenstockLz4_LIBRARY)
  find_package_handle_standard_args(PenstockLz4 REQUIRED_VARS PenstockLz4_LIBRARY PenstockLz4_INCLUDE_DIR)
  if(PenstockLz4_FOUND)
    add_library(PenstockLz4::PenstockLz4 UNKNOWN IMPORTED)
    set_target_properties(
      PenstockLz4::PenstockLz4
      PROPERTIES IMPORTED_LOCATION ${PenstockLz4_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockLz4_INCLUDE_DIR})
  endif()
endif()

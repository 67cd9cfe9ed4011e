# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libzstd under one name, PenstockZstd::PenstockZstd, however it is packaged: with a CMake package of its
# own (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockZstd::PenstockZstd)
  find_package(zstd CONFIG QUIET)
  foreach(candidate IN ITEMS zstd::libzstd zstd::libzstd_shared zstd::libzstd_static)
    if(TARGET ${candidate})
      add_library(PenstockZstd::PenstockZstd INTERFACE IMPORTED)
      set_target_properties(PenstockZstd::PenstockZstd PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockZstd::PenstockZstd)
  set(PenstockZstd_TARGET PenstockZstd::PenstockZstd)
  find_package_handle_standard_args(PenstockZstd REQUIRED_VARS PenstockZstd_TARGET)
else()
  find_path(PenstockZstd_INCLUDE_DIR zstd.h)
  find_library(PenstockZstd_LIBRARY NAMES zstd libzstd zstd_static)
  mark_as_advanced(PenstockZstd_INCLUDE_DIR PenstockZstd_LIBRARY)
  find_package_handle_standard_args(PenstockZstd REQUIRED_VARS PenstockZstd_LIBRARY PenstockZstd_INCLUDE_DIR)
  if(PenstockZstd_FOUND)
    add_library(PenstockZstd::PenstockZstd UNKNOWN IMPORTED)
    set_target_properties(
      PenstockZstd::PenstockZstd
      PROPERTIES IMPORTED_LOCATION ${PenstockZstd_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockZstd_INCLUDE_DIR})
  endif()
endif()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libavif under one name, PenstockAvif::PenstockAvif, however it is packaged: with a CMake package of its own
# (vcpkg, Conan, Debian), or with only a header and a library. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockAvif::PenstockAvif)
  find_package(libavif CONFIG QUIET)
  foreach(candidate IN ITEMS avif avif::avif)
    if(TARGET ${candidate})
      add_library(PenstockAvif::PenstockAvif INTERFACE IMPORTED)
      set_target_properties(PenstockAvif::PenstockAvif PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockAvif::PenstockAvif)
  set(PenstockAvif_TARGET PenstockAvif::PenstockAvif)
  find_package_handle_standard_args(PenstockAvif REQUIRED_VARS PenstockAvif_TARGET)
else()
  find_path(PenstockAvif_INCLUDE_DIR avif/avif.h)
  find_library(PenstockAvif_LIBRARY NAMES avif libavif)
  mark_as_advanced(PenstockAvif_INCLUDE_DIR PenstockAvif_LIBRARY)
  find_package_handle_standard_args(PenstockAvif REQUIRED_VARS PenstockAvif_LIBRARY PenstockAvif_INCLUDE_DIR)
  if(PenstockAvif_FOUND)
    add_library(PenstockAvif::PenstockAvif UNKNOWN IMPORTED)
    set_target_properties(
      PenstockAvif::PenstockAvif
      PROPERTIES IMPORTED_LOCATION ${PenstockAvif_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockAvif_INCLUDE_DIR})
  endif()
endif()

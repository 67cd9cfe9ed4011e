# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libbrotlidec under one name, PenstockBrotli::PenstockBrotli, however it is packaged: with a
# CMake package of its own, or with only a header and a library. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockBrotli::PenstockBrotli)
  find_package(brotli CONFIG QUIET)
  foreach(candidate IN ITEMS brotli::brotlidec unofficial::brotli::brotlidec)
    if(TARGET ${candidate})
      add_library(PenstockBrotli::PenstockBrotli INTERFACE IMPORTED)
      set_target_properties(
        PenstockBrotli::PenstockBrotli PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockBrotli::PenstockBrotli)
  set(PenstockBrotli_TARGET PenstockBrotli::PenstockBrotli)
  find_package_handle_standard_args(PenstockBrotli REQUIRED_VARS PenstockBrotli_TARGET)
else()
  find_path(PenstockBrotli_INCLUDE_DIR brotli/decode.h)
  find_library(PenstockBrotli_LIBRARY NAMES brotlidec brotlidec-static)
  mark_as_advanced(PenstockBrotli_INCLUDE_DIR PenstockBrotli_LIBRARY)
  find_package_handle_standard_args(
    PenstockBrotli REQUIRED_VARS PenstockBrotli_LIBRARY PenstockBrotli_INCLUDE_DIR)
  if(PenstockBrotli_FOUND)
    add_library(PenstockBrotli::PenstockBrotli UNKNOWN IMPORTED)
    set_target_properties(
      PenstockBrotli::PenstockBrotli
      PROPERTIES IMPORTED_LOCATION ${PenstockBrotli_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockBrotli_INCLUDE_DIR})
  endif()
endif()

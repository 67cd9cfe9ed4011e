# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libspng under one name, PenstockPng::PenstockPng, however it is packaged: with a CMake package of its own
# (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockPng::PenstockPng)
  find_package(spng CONFIG QUIET)
  if(NOT spng_FOUND)
    find_package(SPNG CONFIG QUIET)
  endif()
  foreach(candidate IN ITEMS spng::spng spng::spng_static)
    if(TARGET ${candidate})
      add_library(PenstockPng::PenstockPng INTERFACE IMPORTED)
      set_target_properties(PenstockPng::PenstockPng PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockPng::PenstockPng)
  set(PenstockPng_TARGET PenstockPng::PenstockPng)
  find_package_handle_standard_args(PenstockPng REQUIRED_VARS PenstockPng_TARGET)
else()
  find_path(PenstockPng_INCLUDE_DIR spng.h)
  find_library(PenstockPng_LIBRARY NAMES spng libspng spng_static)
  mark_as_advanced(PenstockPng_INCLUDE_DIR PenstockPng_LIBRARY)
  find_package_handle_standard_args(PenstockPng REQUIRED_VARS PenstockPng_LIBRARY PenstockPng_INCLUDE_DIR)
  if(PenstockPng_FOUND)
    add_library(PenstockPng::PenstockPng UNKNOWN IMPORTED)
    set_target_properties(
      PenstockPng::PenstockPng
      PROPERTIES IMPORTED_LOCATION ${PenstockPng_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockPng_INCLUDE_DIR})
  endif()
endif()

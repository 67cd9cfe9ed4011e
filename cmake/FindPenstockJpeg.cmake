# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libjpeg-turbo under one name, PenstockJpeg::PenstockJpeg, however it is packaged: with a CMake package of
# its own (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockJpeg::PenstockJpeg)
  find_package(libjpeg-turbo CONFIG QUIET)
  foreach(candidate IN ITEMS libjpeg-turbo::jpeg libjpeg-turbo::jpeg-static libjpeg-turbo::libjpeg-turbo)
    if(TARGET ${candidate})
      add_library(PenstockJpeg::PenstockJpeg INTERFACE IMPORTED)
      set_target_properties(PenstockJpeg::PenstockJpeg PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockJpeg::PenstockJpeg)
  set(PenstockJpeg_TARGET PenstockJpeg::PenstockJpeg)
  find_package_handle_standard_args(PenstockJpeg REQUIRED_VARS PenstockJpeg_TARGET)
else()
  find_path(PenstockJpeg_INCLUDE_DIR jpeglib.h)
  find_library(PenstockJpeg_LIBRARY NAMES jpeg libjpeg jpeg-static)
  mark_as_advanced(PenstockJpeg_INCLUDE_DIR PenstockJpeg_LIBRARY)
  find_package_handle_standard_args(
    PenstockJpeg REQUIRED_VARS PenstockJpeg_LIBRARY PenstockJpeg_INCLUDE_DIR)
  if(PenstockJpeg_FOUND)
    add_library(PenstockJpeg::PenstockJpeg UNKNOWN IMPORTED)
    set_target_properties(
      PenstockJpeg::PenstockJpeg
      PROPERTIES IMPORTED_LOCATION ${PenstockJpeg_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockJpeg_INCLUDE_DIR})
  endif()
endif()

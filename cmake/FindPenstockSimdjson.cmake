# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# simdjson under one name, PenstockSimdjson::PenstockSimdjson, however it is packaged: with a
# CMake package of its own, or with only a header and a library. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockSimdjson::PenstockSimdjson)
  find_package(simdjson CONFIG QUIET)
  foreach(candidate IN ITEMS simdjson::simdjson)
    if(TARGET ${candidate})
      add_library(PenstockSimdjson::PenstockSimdjson INTERFACE IMPORTED)
      set_target_properties(
        PenstockSimdjson::PenstockSimdjson PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockSimdjson::PenstockSimdjson)
  set(PenstockSimdjson_TARGET PenstockSimdjson::PenstockSimdjson)
  find_package_handle_standard_args(PenstockSimdjson REQUIRED_VARS PenstockSimdjson_TARGET)
else()
  find_path(PenstockSimdjson_INCLUDE_DIR simdjson.h)
  find_library(PenstockSimdjson_LIBRARY NAMES simdjson)
  mark_as_advanced(PenstockSimdjson_INCLUDE_DIR PenstockSimdjson_LIBRARY)
  find_package_handle_standard_args(
    PenstockSimdjson REQUIRED_VARS PenstockSimdjson_LIBRARY PenstockSimdjson_INCLUDE_DIR)
  if(PenstockSimdjson_FOUND)
    add_library(PenstockSimdjson::PenstockSimdjson UNKNOWN IMPORTED)
    set_target_properties(
      PenstockSimdjson::PenstockSimdjson
      PROPERTIES IMPORTED_LOCATION ${PenstockSimdjson_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockSimdjson_INCLUDE_DIR})
  endif()
endif()

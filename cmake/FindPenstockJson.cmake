# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# nlohmann-json under one name, PenstockJson::PenstockJson, however it is packaged: with its CMake package, or
# as a header alone. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockJson::PenstockJson)
  find_package(nlohmann_json CONFIG QUIET)
  if(TARGET nlohmann_json::nlohmann_json)
    add_library(PenstockJson::PenstockJson INTERFACE IMPORTED)
    set_target_properties(PenstockJson::PenstockJson PROPERTIES INTERFACE_LINK_LIBRARIES
                                                                nlohmann_json::nlohmann_json)
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockJson::PenstockJson)
  set(PenstockJson_TARGET PenstockJson::PenstockJson)
  find_package_handle_standard_args(PenstockJson REQUIRED_VARS PenstockJson_TARGET)
else()
  find_path(PenstockJson_INCLUDE_DIR nlohmann/json.hpp)
  mark_as_advanced(PenstockJson_INCLUDE_DIR)
  find_package_handle_standard_args(PenstockJson REQUIRED_VARS PenstockJson_INCLUDE_DIR)
  if(PenstockJson_FOUND)
    add_library(PenstockJson::PenstockJson INTERFACE IMPORTED)
    set_target_properties(PenstockJson::PenstockJson PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                                ${PenstockJson_INCLUDE_DIR})
  endif()
endif()

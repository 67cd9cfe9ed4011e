# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libyaml under one name, PenstockYaml::PenstockYaml, however it is packaged: with a CMake package of its
# own (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library. Installed beside
# penstockConfig.cmake.

if(NOT TARGET PenstockYaml::PenstockYaml)
  find_package(yaml CONFIG QUIET)
  foreach(candidate IN ITEMS yaml yaml::yaml)
    if(TARGET ${candidate})
      add_library(PenstockYaml::PenstockYaml INTERFACE IMPORTED)
      set_target_properties(PenstockYaml::PenstockYaml PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockYaml::PenstockYaml)
  set(PenstockYaml_TARGET PenstockYaml::PenstockYaml)
  find_package_handle_standard_args(PenstockYaml REQUIRED_VARS PenstockYaml_TARGET)
else()
  find_path(PenstockYaml_INCLUDE_DIR yaml.h)
  find_library(PenstockYaml_LIBRARY NAMES yaml libyaml yaml_static)
  mark_as_advanced(PenstockYaml_INCLUDE_DIR PenstockYaml_LIBRARY)
  find_package_handle_standard_args(PenstockYaml REQUIRED_VARS PenstockYaml_LIBRARY PenstockYaml_INCLUDE_DIR)
  if(PenstockYaml_FOUND)
    add_library(PenstockYaml::PenstockYaml UNKNOWN IMPORTED)
    set_target_properties(
      PenstockYaml::PenstockYaml
      PROPERTIES IMPORTED_LOCATION ${PenstockYaml_LIBRARY}
                 INTERFACE_INCLUDE_DIRECTORIES ${PenstockYaml_INCLUDE_DIR})
  endif()
endif()

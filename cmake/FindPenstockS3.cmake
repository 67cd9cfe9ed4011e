# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What the component s3 needs under one name, PenstockS3::PenstockS3: the hashes of OpenSSL, pugixml and
# nlohmann-json, however they are packaged. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockS3::PenstockS3)
  find_package(OpenSSL 1.1.1 QUIET)
  find_package(PenstockJson QUIET)
  set(PenstockS3_pugixml "")
  find_package(pugixml CONFIG QUIET)
  foreach(candidate IN ITEMS pugixml::pugixml pugixml)
    if(TARGET ${candidate})
      set(PenstockS3_pugixml ${candidate})
      break()
    endif()
  endforeach()
  if(NOT PenstockS3_pugixml)
    find_path(PenstockS3_pugixml_INCLUDE_DIR pugixml.hpp)
    find_library(PenstockS3_pugixml_LIBRARY NAMES pugixml)
    mark_as_advanced(PenstockS3_pugixml_INCLUDE_DIR PenstockS3_pugixml_LIBRARY)
    if(PenstockS3_pugixml_INCLUDE_DIR AND PenstockS3_pugixml_LIBRARY)
      add_library(PenstockS3::pugixml UNKNOWN IMPORTED)
      set_target_properties(
        PenstockS3::pugixml
        PROPERTIES IMPORTED_LOCATION ${PenstockS3_pugixml_LIBRARY}
                   INTERFACE_INCLUDE_DIRECTORIES ${PenstockS3_pugixml_INCLUDE_DIR})
      set(PenstockS3_pugixml PenstockS3::pugixml)
    endif()
  endif()
  if(TARGET OpenSSL::Crypto AND TARGET PenstockJson::PenstockJson AND PenstockS3_pugixml)
    add_library(PenstockS3::PenstockS3 INTERFACE IMPORTED)
    set_target_properties(
      PenstockS3::PenstockS3
      PROPERTIES INTERFACE_LINK_LIBRARIES "OpenSSL::Crypto;${PenstockS3_pugixml};PenstockJson::PenstockJson")
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockS3::PenstockS3)
  set(PenstockS3_TARGET PenstockS3::PenstockS3)
endif()
find_package_handle_standard_args(PenstockS3 REQUIRED_VARS PenstockS3_TARGET)

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# How the libraries of components are found, here and by the installed package: penstock_component_table.cmake
# says where. Installed beside penstockConfig.cmake.

include_guard(GLOBAL)
set_property(GLOBAL PROPERTY PENSTOCK_OPTIONAL_COMPONENTS "")

# penstock_row(...): see penstock_component_table.cmake
function(penstock_row component sentence)
  set(one LIBRARY HEADER)
  set(several FIND PACKAGES TARGETS NAMES ALSO LINKS SET NEEDS SHARES DEFINES PC_REQUIRES PC_LIBS VCPKG CONAN)
  cmake_parse_arguments(PARSE_ARGV 2 row "" "${one}" "${several}")
  if(NOT row_FIND OR row_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "penstock_component_table.cmake: the row ${component} lacks FIND, or has more than "
                        "fields: ${row_UNPARSED_ARGUMENTS}")
  endif()
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_OPTIONAL_COMPONENTS ${component})
  foreach(field IN LISTS one several)
    set_property(GLOBAL PROPERTY PENSTOCK_${field}_OF_${component} "${row_${field}}")
  endforeach()
endfunction()

# penstock_find(<component> <REQUIRED or QUIET> <variable>): is its library here? Then the property
# PENSTOCK_LIBRARIES_OF_<component> has the targets to link.
function(penstock_find component how result)
  foreach(field IN ITEMS LIBRARY FIND PACKAGES TARGETS HEADER NAMES ALSO LINKS SET SHARES DEFINES)
    get_property(${field} GLOBAL PROPERTY PENSTOCK_${field}_OF_${component})
  endforeach()
  list(GET FIND 0 package)
  set(packages ${package})
  foreach(variable IN LISTS SET)
    set(${variable} TRUE)
  endforeach()
  string(CONCAT reason "penstock::${component} needs ${LIBRARY}: install it with its headers, or put the "
                "folder that has it into CMAKE_PREFIX_PATH")
  set(hints "")
  if(ALSO)
    find_package(${ALSO} ${how})
    list(GET ALSO 0 also)
    list(APPEND packages ${also})
    set(hints ${${also}_INCLUDE_DIRS} ${${also}_LIBRARY_DIR})
  endif()
  if(HEADER)
    penstock_find_library(
      ${package} ${how}
      PACKAGES ${PACKAGES}
      TARGETS ${TARGETS}
      HEADER ${HEADER}
      NAMES ${NAMES}
      HINTS ${hints}
      DEFINES ${DEFINES}
      REASON "${reason}")
    list(PREPEND LINKS ${package}::${package})
  else()
    find_package(${FIND} ${how})
    if(NOT LINKS)
      set(LINKS ${package}::${package})
    endif()
  endif()
  foreach(other IN LISTS SHARES)
    penstock_find(${other} ${how} shared)
    get_property(libraries GLOBAL PROPERTY PENSTOCK_LIBRARIES_OF_${other})
    list(APPEND LINKS ${libraries})
  endforeach()
  set_property(GLOBAL PROPERTY PENSTOCK_LIBRARIES_OF_${component} "${LINKS}")
  # A target that another component has found first may be of an older version.
  set(missing "")
  foreach(name IN LISTS packages)
    if(NOT ${name}_FOUND)
      list(APPEND missing ${name})
    endif()
  endforeach()
  foreach(target IN LISTS LINKS)
    if(NOT TARGET ${target})
      list(APPEND missing ${target})
    endif()
  endforeach()
  if(missing AND how STREQUAL "REQUIRED")
    list(JOIN missing ", " missing)
    message(FATAL_ERROR "penstock::${component} needs ${LIBRARY}; not found: ${missing}")
  endif()
  if(missing)
    set(${result} FALSE PARENT_SCOPE)
  else()
    set(${result} TRUE PARENT_SCOPE)
  endif()
endfunction()

# penstock_find_library(<name> <REQUIRED or QUIET> PACKAGES <package>... TARGETS <target>... HEADER <file>
#                       NAMES <library>... HINTS <folder>... DEFINES <definition>... REASON <sentence>)
#
# The target <name>::<name> and <name>_FOUND, however the library is packaged: with a CMake package of its own
# (vcpkg, Conan, recent releases) or, as in Debian, with only a header and a library.
function(penstock_find_library name how)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "HEADER;REASON" "PACKAGES;TARGETS;NAMES;HINTS;DEFINES")
  set(global "")
  if(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL)
    set(global GLOBAL)
  endif()
  # What <name>_ROOT is for find_package: searched first.
  list(PREPEND CMAKE_PREFIX_PATH ${${name}_ROOT} $ENV{${name}_ROOT})
  if(NOT TARGET ${name}::${name})
    foreach(package IN LISTS arg_PACKAGES)
      find_package(${package} CONFIG QUIET)
    endforeach()
    foreach(candidate IN LISTS arg_TARGETS)
      if(TARGET ${candidate})
        add_library(${name}::${name} INTERFACE IMPORTED ${global})
        set_target_properties(
          ${name}::${name} PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate}
                                      INTERFACE_COMPILE_DEFINITIONS "${arg_DEFINES}")
        break()
      endif()
    endforeach()
  endif()
  set(needed ${name}_TARGET)
  set(${name}_TARGET ${name}::${name})
  if(NOT TARGET ${name}::${name})
    find_path(${name}_INCLUDE_DIR ${arg_HEADER} HINTS ${arg_HINTS})
    mark_as_advanced(${name}_INCLUDE_DIR)
    set(needed ${name}_INCLUDE_DIR)
    if(arg_NAMES)
      find_library(${name}_LIBRARY NAMES ${arg_NAMES} HINTS ${arg_HINTS})
      mark_as_advanced(${name}_LIBRARY)
      list(PREPEND needed ${name}_LIBRARY)
    endif()
  endif()
  set(${name}_FIND_REQUIRED FALSE)
  set(${name}_FIND_QUIETLY FALSE)
  if(how STREQUAL "REQUIRED")
    set(${name}_FIND_REQUIRED TRUE)
  else()
    set(${name}_FIND_QUIETLY TRUE)
  endif()
  find_package_handle_standard_args(
    ${name} NAME_MISMATCHED REQUIRED_VARS ${needed} REASON_FAILURE_MESSAGE "${arg_REASON}")
  set(${name}_FOUND ${${name}_FOUND} PARENT_SCOPE)
  if(NOT ${name}_FOUND OR TARGET ${name}::${name})
    return()
  endif()
  if(arg_NAMES)
    add_library(${name}::${name} UNKNOWN IMPORTED ${global})
    set_target_properties(${name}::${name} PROPERTIES IMPORTED_LOCATION ${${name}_LIBRARY})
  else()
    add_library(${name}::${name} INTERFACE IMPORTED ${global})
  endif()
  set_target_properties(
    ${name}::${name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${${name}_INCLUDE_DIR}
                                INTERFACE_COMPILE_DEFINITIONS "${arg_DEFINES}")
endfunction()

include(FindPackageHandleStandardArgs)
include(${CMAKE_CURRENT_LIST_DIR}/penstock_component_table.cmake)

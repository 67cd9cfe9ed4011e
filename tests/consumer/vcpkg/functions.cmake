# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Stands in for vcpkg for one port: the functions that its portfile calls behave as vcpkg documents them, as
# far as a port of headers and a static library can tell. Run with
#   cmake -DPORT=... -DPORT_DIR=... -DFEATURES=... -DCURRENT_PACKAGES_DIR=... -DBUILD=... -DGENERATOR=...
#         -DCOMPILER=... -P functions.cmake

cmake_minimum_required(VERSION 3.25)
set(refused "the portfile calls this with what vcpkg does not take")

# vcpkg sets every pair's option: ON for a requested feature, OFF for any other.
function(vcpkg_check_features)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "OUT_FEATURE_OPTIONS" "FEATURES")
  if(NOT arg_OUT_FEATURE_OPTIONS OR DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_check_features: ${refused}")
  endif()
  set(options "")
  while(arg_FEATURES)
    list(POP_FRONT arg_FEATURES feature option)
    set(value OFF)
    if(feature IN_LIST FEATURES)
      set(value ON)
    endif()
    list(APPEND options -D${option}=${value})
    set_property(GLOBAL APPEND PROPERTY known_features ${feature})
  endwhile()
  set(${arg_OUT_FEATURE_OPTIONS} ${options} PARENT_SCOPE)
endfunction()

function(vcpkg_cmake_configure)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "SOURCE_PATH" "OPTIONS")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_configure: ${refused}")
  endif()
  set(all_said "")
  foreach(kind IN ITEMS release debug)
    if(DEFINED VCPKG_BUILD_TYPE AND NOT kind STREQUAL VCPKG_BUILD_TYPE)
      continue()
    endif()
    set(there ${CURRENT_PACKAGES_DIR})
    if(kind STREQUAL debug)
      string(APPEND there /debug)
    endif()
    execute_process(
      COMMAND
        ${CMAKE_COMMAND} -S ${arg_SOURCE_PATH} -B ${BUILD}/${kind} -G ${GENERATOR} -DCMAKE_BUILD_TYPE=${kind}
        -DCMAKE_INSTALL_PREFIX=${there} -DCMAKE_CXX_COMPILER=${COMPILER} -DBUILD_SHARED_LIBS=OFF
        -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_EXPORT_NO_PACKAGE_REGISTRY=ON ${arg_OPTIONS}
        -DCMAKE_CXX_FLAGS_RELEASE= -DCMAKE_CXX_FLAGS_DEBUG= # this is about files, not about speed
      OUTPUT_VARIABLE said
      ERROR_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
    string(APPEND all_said "${said}")
  endforeach()
  # vcpkg warns about unused options; here they are an error.
  if(all_said MATCHES "Manually-specified variables were not used[^\n]*\n(.*)")
    string(REGEX REPLACE "BUILD_SHARED_LIBS|CMAKE_BUILD_TYPE|CMAKE_[A-Z_]+" "" unused "${CMAKE_MATCH_1}")
    if(unused MATCHES "PENSTOCK_[A-Z_]+")
      message(FATAL_ERROR "the portfile sets an option that penstock does not have: ${CMAKE_MATCH_0}")
    endif()
  endif()
endfunction()

function(vcpkg_cmake_install)
  foreach(kind IN ITEMS release debug)
    if(EXISTS ${BUILD}/${kind})
      execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD}/${kind} --target install OUTPUT_QUIET
                      COMMAND_ERROR_IS_FATAL ANY)
    endif()
  endforeach()
endfunction()

# Moves the package to share/<port>, with the debug build's description of its libraries, and corrects the two
# ways in which CMake's files find their prefix.
function(vcpkg_cmake_config_fixup)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "PACKAGE_NAME;CONFIG_PATH" "")
  if(DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_cmake_config_fixup: ${refused}")
  endif()
  if(NOT arg_PACKAGE_NAME)
    set(arg_PACKAGE_NAME ${PORT})
  endif()
  set(there ${CURRENT_PACKAGES_DIR}/${arg_CONFIG_PATH})
  set(wanted ${CURRENT_PACKAGES_DIR}/share/${arg_PACKAGE_NAME})
  file(GLOB files ${there}/*)
  file(COPY ${files} DESTINATION ${wanted})
  file(REMOVE_RECURSE ${there})
  get_filename_component(parent ${there} DIRECTORY)
  get_filename_component(name ${parent} NAME)
  if(name STREQUAL "cmake")
    file(REMOVE_RECURSE ${parent})
  endif()
  file(GLOB files ${CURRENT_PACKAGES_DIR}/debug/${arg_CONFIG_PATH}/*-debug.cmake)
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME)
    file(READ ${file} text)
    string(REPLACE "\${_IMPORT_PREFIX}/lib" "\${_IMPORT_PREFIX}/debug/lib" text "${text}")
    file(WRITE ${wanted}/${name} "${text}")
  endforeach()
  get_filename_component(parent ${CURRENT_PACKAGES_DIR}/debug/${arg_CONFIG_PATH} DIRECTORY)
  file(REMOVE_RECURSE ${parent} ${CURRENT_PACKAGES_DIR}/debug/share)
  file(GLOB_RECURSE files ${wanted}/*.cmake)
  set(one "get_filename_component(_IMPORT_PREFIX \"\${_IMPORT_PREFIX}\" PATH)")
  set(first "get_filename_component(_IMPORT_PREFIX \"\${CMAKE_CURRENT_LIST_FILE}\" PATH)")
  foreach(file IN LISTS files)
    file(READ ${file} text)
    string(REPLACE "\n${one}" "" text "${text}")
    string(REPLACE "${first}" "${first}\n${one}\n${one}" text "${text}")
    string(REGEX REPLACE "(PACKAGE_PREFIX_DIR \"[$]{CMAKE_CURRENT_LIST_DIR}/)[./]*\"" "\\1../../\"" text
                         "${text}")
    string(REPLACE "${CURRENT_PACKAGES_DIR}" "\${_IMPORT_PREFIX}" text "${text}")
    file(WRITE ${file} "${text}")
  endforeach()
endfunction()

function(vcpkg_fixup_pkgconfig)
  file(GLOB_RECURSE files ${CURRENT_PACKAGES_DIR}/*.pc)
  foreach(file IN LISTS files)
    set(root ${CURRENT_PACKAGES_DIR})
    file(READ ${file} text)
    if(file MATCHES "/debug/") # its headers are those of the release
      string(APPEND root /debug)
      string(REPLACE "\${prefix}/include" "\${prefix}/../include" text "${text}")
    endif()
    get_filename_component(place ${file} DIRECTORY)
    file(RELATIVE_PATH up ${place} ${root})
    string(REGEX REPLACE "/$" "" up ${up})
    string(REGEX REPLACE "\nprefix=[^\n]*" "" text "\n${text}")
    string(REPLACE "${CURRENT_PACKAGES_DIR}" "\${prefix}" text "${text}")
    file(WRITE ${file} "prefix=\${pcfiledir}/${up}${text}")
  endforeach()
endfunction()

function(vcpkg_install_copyright)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "COMMENT" "FILE_LIST")
  list(LENGTH arg_FILE_LIST count)
  if(NOT count EQUAL 1 OR DEFINED arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "vcpkg_install_copyright: ${refused}")
  endif()
  file(INSTALL ${arg_FILE_LIST} DESTINATION ${CURRENT_PACKAGES_DIR}/share/${PORT} RENAME copyright)
endfunction()

include(${PORT_DIR}/portfile.cmake)

get_property(known GLOBAL PROPERTY known_features)
foreach(feature IN LISTS FEATURES)
  if(NOT feature IN_LIST known)
    message(FATAL_ERROR "the portfile does nothing for the feature ${feature}")
  endif()
endforeach()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# penstock_component(<name> HEADERS <header>... LINKS <target>... [PC_REQUIRES <package>] [PC_LIBS <flag>]
#                     [PC_CFLAGS <flags>])
#
# One component: the target penstock_<name>, known as penstock::<name> here and once installed. Headers are
# listed, because a glob is not reproducible; tools/check_headers.py compares the list with the tree. Files of
# bodies (*.ipp) and of kernels (*.cuh) are listed with them. They are a file set of their own: a header
# includes its bodies, so compiling each header by itself compiles them too; kernels need nvcc.
# PC_REQUIRES is the name that pkg-config knows the library by; PC_LIBS links a library without such a name.
# Headers without one need neither.
function(penstock_component component)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PC_REQUIRES;PC_LIBS;PC_CFLAGS" "HEADERS;LINKS")
  set(target penstock_${component})
  add_library(${target} INTERFACE)
  add_library(penstock::${component} ALIAS ${target})
  list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/penstock/ OUTPUT_VARIABLE headers)
  set(bodies ${headers})
  list(FILTER headers EXCLUDE REGEX "[.](ipp|cuh)$")
  list(FILTER bodies INCLUDE REGEX "[.](ipp|cuh)$")
  target_sources(
    ${target}
    INTERFACE FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${headers}
    INTERFACE FILE_SET bodies TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/include FILES ${bodies})
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_link_libraries(${target} INTERFACE ${arg_LINKS})
  set_target_properties(
    ${target} PROPERTIES EXPORT_NAME ${component} VERIFY_INTERFACE_HEADER_SETS ${PROJECT_IS_TOP_LEVEL}
                         INTERFACE_HEADER_SETS_TO_VERIFY HEADERS)
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_COMPONENTS ${component})
  foreach(field IN ITEMS REQUIRES LIBS CFLAGS)
    set_property(GLOBAL PROPERTY PENSTOCK_PC_FILE_${field}_OF_${component} "${arg_PC_${field}}")
  endforeach()
endfunction()

# penstock_component_options()
#
# PENSTOCK_ENABLE_<NAME> for each row of penstock_component_table.cmake; what one needs is turned on with it.
# ON means required: a component is never enabled just because its library was found.
macro(penstock_component_options)
  get_property(penstock_optional GLOBAL PROPERTY PENSTOCK_OPTIONAL_COMPONENTS)
  list(REVERSE penstock_optional) # before those that they need
  foreach(component IN LISTS penstock_optional)
    get_property(penstock_library GLOBAL PROPERTY PENSTOCK_LIBRARY_OF_${component})
    get_property(penstock_needs GLOBAL PROPERTY PENSTOCK_NEEDS_OF_${component})
    string(TOUPPER ${component} upper)
    option(PENSTOCK_ENABLE_${upper} "Component penstock::${component} (needs ${penstock_library})" OFF)
    foreach(needed IN LISTS penstock_needs)
      string(TOUPPER ${needed} needed_upper)
      if(PENSTOCK_ENABLE_${upper} AND NOT PENSTOCK_ENABLE_${needed_upper})
        message(STATUS "penstock: the component ${component} needs ${needed}, which is therefore on")
        set(PENSTOCK_ENABLE_${needed_upper} ON)
      endif()
    endforeach()
  endforeach()
endmacro()

# penstock_optional_component(<name> HEADERS <header>...)
#
# A component that needs a third-party library, which penstock_component_table.cmake describes: defined only
# if PENSTOCK_ENABLE_<NAME> is on. Its headers are recorded in any case, so that tests and examples that
# include them can be left out.
function(penstock_optional_component component)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS")
  set_property(GLOBAL PROPERTY PENSTOCK_HEADERS_OF_${component} ${arg_HEADERS})
  string(TOUPPER ${component} upper)
  if(NOT PENSTOCK_ENABLE_${upper})
    return()
  endif()
  penstock_find(${component} REQUIRED found)
  foreach(field IN ITEMS LIBRARIES NEEDS SHARES DEFINES PC_REQUIRES PC_LIBS)
    get_property(${field} GLOBAL PROPERTY PENSTOCK_${field}_OF_${component})
  endforeach()
  if(PENSTOCK_${upper}_PKGCONFIG)
    set(PC_REQUIRES ${PENSTOCK_${upper}_PKGCONFIG})
  endif()
  foreach(other IN LISTS SHARES)
    get_property(shared GLOBAL PROPERTY PENSTOCK_PC_REQUIRES_OF_${other})
    list(APPEND PC_REQUIRES ${shared})
  endforeach()
  list(TRANSFORM NEEDS PREPEND penstock- OUTPUT_VARIABLE packages)
  list(PREPEND PC_REQUIRES ${packages})
  list(JOIN PC_REQUIRES " " PC_REQUIRES)
  list(JOIN PC_LIBS " " PC_LIBS)
  list(TRANSFORM DEFINES PREPEND -D)
  list(JOIN DEFINES " " DEFINES)
  list(TRANSFORM NEEDS PREPEND penstock::)
  penstock_component(
    ${component}
    HEADERS ${arg_HEADERS}
    LINKS penstock::core ${NEEDS} ${LIBRARIES}
    PC_REQUIRES "${PC_REQUIRES}"
    PC_LIBS "${PC_LIBS}"
    PC_CFLAGS "${DEFINES}")
endfunction()

# penstock_compiled_library()
#
# The component penstock::compiled: a static library with the bodies (*.ipp) of penstock::core, one source for
# each room. It and the targets that link it are built with PENSTOCK_COMPILED; nothing else sets that. It has
# no headers, needs no third-party library, and exists if PENSTOCK_ENABLE_COMPILED is on.
function(penstock_compiled_library)
  add_library(penstock_compiled STATIC)
  add_library(penstock::compiled ALIAS penstock_compiled)
  get_target_property(bodies penstock_core HEADER_SET_bodies)
  set(rooms "")
  foreach(file IN LISTS bodies)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/include)
    string(REGEX REPLACE "^penstock/([^/]*)/.*" "\\1" room ${file})
    list(APPEND rooms ${room})
    string(APPEND text_of_${room} "#include <${file}>\n")
  endforeach()
  list(REMOVE_DUPLICATES rooms)
  foreach(room IN LISTS rooms)
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/compiled/${room}.cpp CONTENT "${text_of_${room}}" @ONLY)
    target_sources(penstock_compiled PRIVATE ${PROJECT_BINARY_DIR}/compiled/${room}.cpp)
  endforeach()
  target_link_libraries(penstock_compiled PUBLIC penstock::core)
  target_compile_definitions(penstock_compiled PUBLIC PENSTOCK_COMPILED)
  set_target_properties(
    penstock_compiled PROPERTIES EXPORT_NAME compiled OUTPUT_NAME penstock POSITION_INDEPENDENT_CODE ON)
  # A source is a whole room; so programs get only the functions that they call.
  if(CMAKE_CXX_COMPILER_ID MATCHES "GNU|Clang" AND NOT APPLE)
    target_compile_options(penstock_compiled PRIVATE -ffunction-sections -fdata-sections)
    target_link_options(penstock_compiled INTERFACE LINKER:--gc-sections)
    set_property(GLOBAL PROPERTY PENSTOCK_PC_FILE_GC_OF_compiled "-Wl,--gc-sections")
  endif()
  if(TARGET penstock_dev_flags) # the sanitizers of the programs that link it, above all
    target_link_libraries(penstock_compiled PRIVATE $<BUILD_INTERFACE:penstock_dev_flags>)
  endif()
  if(PENSTOCK_SANITIZE) # where tests spend most of their time
    target_compile_options(penstock_compiled PRIVATE -O1)
  endif()
  set_property(GLOBAL APPEND PROPERTY PENSTOCK_COMPONENTS compiled)
  set_property(GLOBAL PROPERTY PENSTOCK_PC_FILE_CFLAGS_OF_compiled -DPENSTOCK_COMPILED)
endfunction()

# penstock_single_headers()
#
# The target penstock_single_include: penstock.hpp and penstock_<component>.hpp for every component, in the
# folder single_include/penstock of the build. Tests are built against these; nothing is installed.
function(penstock_single_headers)
  find_package(Python3 QUIET COMPONENTS Interpreter)
  if(NOT TARGET Python3::Interpreter)
    return()
  endif()
  set(folder ${PROJECT_BINARY_DIR}/single_include/penstock)
  set(files ${folder}/penstock.hpp)
  get_target_property(sources penstock_core HEADER_SET)
  get_target_property(bodies penstock_core HEADER_SET_bodies)
  get_property(optional GLOBAL PROPERTY PENSTOCK_OPTIONAL_COMPONENTS)
  foreach(component IN LISTS optional)
    list(APPEND files ${folder}/penstock_${component}.hpp)
    get_property(headers GLOBAL PROPERTY PENSTOCK_HEADERS_OF_${component})
    list(TRANSFORM headers PREPEND ${PROJECT_SOURCE_DIR}/include/penstock/)
    list(APPEND sources ${headers})
  endforeach()
  # A file whose text is the same is not written, so programs that include it are not compiled again.
  add_custom_command(
    OUTPUT ${PROJECT_BINARY_DIR}/single_include/written
    BYPRODUCTS ${files}
    COMMAND Python3::Interpreter -B ${PROJECT_SOURCE_DIR}/tools/amalgamate.py ${folder}
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/single_include/written
    DEPENDS ${PROJECT_SOURCE_DIR}/tools/amalgamate.py ${PROJECT_SOURCE_DIR}/tools/source_tree.py
            ${PROJECT_SOURCE_DIR}/cmake/penstock_component_table.cmake ${sources}
            ${bodies}
    VERBATIM)
  set(all "")
  if(PENSTOCK_BUILD_TESTS)
    set(all ALL)
  endif()
  add_custom_target(penstock_single_include ${all} DEPENDS ${PROJECT_BINARY_DIR}/single_include/written)
endfunction()

# penstock_header_only(<target>): links everything penstock::penstock links except penstock::compiled
function(penstock_header_only target)
  get_property(components GLOBAL PROPERTY PENSTOCK_COMPONENTS)
  list(REMOVE_ITEM components compiled)
  list(TRANSFORM components PREPEND penstock::)
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE ${components})
endfunction()

# penstock_buildable(<source> <variable>): is every component that the source includes enabled?
#
# A source file's includes say what it needs; there is no second list to maintain.
function(penstock_buildable source result)
  set(${result} TRUE PARENT_SCOPE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source})
  file(STRINGS ${source} includes REGEX "^#include <penstock/")
  get_property(optional GLOBAL PROPERTY PENSTOCK_OPTIONAL_COMPONENTS)
  set(missing "")
  foreach(component IN LISTS optional)
    if(TARGET penstock::${component})
      continue()
    endif()
    get_property(headers GLOBAL PROPERTY PENSTOCK_HEADERS_OF_${component})
    foreach(header IN LISTS headers)
      if("#include <penstock/${header}>" IN_LIST includes)
        list(APPEND missing ${component})
        break()
      endif()
    endforeach()
  endforeach()
  if(missing)
    set(${result} FALSE PARENT_SCOPE)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
    list(JOIN missing ", " missing)
    set_property(GLOBAL APPEND PROPERTY PENSTOCK_LEFT_OUT "${name} needs ${missing}")
  endif()
endfunction()

# penstock_say_what_is_left_out(): what penstock_buildable found to need components that are off
function(penstock_say_what_is_left_out)
  get_property(left_out GLOBAL PROPERTY PENSTOCK_LEFT_OUT)
  if(left_out)
    list(REMOVE_DUPLICATES left_out)
    list(JOIN left_out "\n--   " left_out)
    message(STATUS "penstock: left out, because components are off (-DPENSTOCK_ENABLE_...=ON turns one on):\n"
                   "--   ${left_out}")
  endif()
endfunction()

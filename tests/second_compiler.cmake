# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# PENSTOCK_SECOND_COMPILER reads every test, example and fuzzer without a warning; no object file is made. The
# preset `clang` builds and runs tests and examples instead. PENSTOCK_SECOND_WITHOUT leaves out the tests that
# it builds anyway, as those with sanitizers in .ci/run. If these are built against penstock::compiled, so
# are they here; the bodies are compiled in the file that includes all headers. The headers they have in
# common are parsed once, as a precompiled header: the first compiler checks that each of them includes what
# it needs.

get_filename_component(second_name ${PENSTOCK_SECOND_COMPILER} NAME)
set(second_flags -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
set(includes -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/fuzz)
get_target_property(catch_includes Catch2::Catch2 INTERFACE_INCLUDE_DIRECTORIES)
foreach(directory IN LISTS catch_includes)
  if(NOT directory STREQUAL "/usr/include") # naming it again would change the compiler's search order
    list(APPEND includes -isystem ${directory})
  endif()
endforeach()
if(TARGET PenstockAsio::PenstockAsio)
  get_target_property(definitions PenstockAsio::PenstockAsio INTERFACE_COMPILE_DEFINITIONS)
  list(TRANSFORM definitions PREPEND -D)
  list(APPEND includes ${definitions})
endif()

if(PENSTOCK_SECOND_WITHOUT)
  list(FILTER test_files EXCLUDE REGEX "${PENSTOCK_SECOND_WITHOUT}")
endif()
if(TARGET penstock::mpi)
  list(APPEND test_files integration/mpi.test.cpp)
  get_target_property(mpi_includes MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  foreach(directory IN LISTS mpi_includes)
    list(APPEND includes -isystem ${directory})
  endforeach()
  list(APPEND includes -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
endif()

# The test of device/cuda.hpp with the fake runtime, and the header itself where the toolkit is.
if(TARGET penstock::cuda)
  get_target_property(cuda_includes CUDA::cudart INTERFACE_INCLUDE_DIRECTORIES)
else()
  set(cuda_includes ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda)
endif()
foreach(directory IN LISTS cuda_includes)
  list(APPEND includes -isystem ${directory})
endforeach()
list(APPEND test_files device/cuda.test.cpp)

file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp ${PROJECT_SOURCE_DIR}/fuzz/*.cpp)
set(sources "")
foreach(file IN LISTS programs)
  penstock_buildable(${file} buildable)
  if(buildable)
    list(APPEND sources ${file})
  endif()
endforeach()
# In a unity build a room's tests are read in units as well, except where the room has rules of its own.
set(in_units "")
set(alone ${test_files})
if(PENSTOCK_TEST_UNITY)
  set(in_units ${test_files})
  list(FILTER in_units EXCLUDE REGEX "^(names|device|gpu|steady|integration)/")
  list(REMOVE_ITEM alone ${in_units})
endif()
# Of the tests with the wheel's Arrow, those that between them include all of its headers.
if(arrow_files AND NOT TARGET penstock::arrow)
  set(second_arrow ${arrow_files})
  if(TARGET penstock::s3)
    list(FILTER second_arrow EXCLUDE REGEX "^source/(delta|iceberg|parquet|parquet_agreement)[.]")
  endif()
  list(APPEND alone ${second_arrow})
  get_target_property(arrow_includes PenstockArrow::arrow INTERFACE_INCLUDE_DIRECTORIES)
  list(APPEND includes -isystem ${arrow_includes})
endif()
set(units "")
set(unit "")
set(room_of_unit "")
set(files_in_unit 0)
foreach(file IN LISTS in_units ITEMS end)
  string(REGEX REPLACE "/.*" "" room ${file})
  if(NOT unit STREQUAL ""
     AND (NOT room STREQUAL room_of_unit OR files_in_unit EQUAL PENSTOCK_TEST_UNITY_SIZE))
    list(LENGTH units number)
    file(CONFIGURE OUTPUT second_compiler/${room_of_unit}_${number}.cpp CONTENT "${unit}" @ONLY)
    list(APPEND units ${CMAKE_CURRENT_BINARY_DIR}/second_compiler/${room_of_unit}_${number}.cpp)
    set(unit "")
    set(files_in_unit 0)
  endif()
  set(room_of_unit ${room})
  string(APPEND unit "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
  math(EXPR files_in_unit "${files_in_unit} + 1")
endforeach()
list(TRANSFORM alone PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE absolute_test_files)
set(form "")
if(TARGET penstock::compiled)
  set(form -DPENSTOCK_COMPILED)
endif()
set(precompiled ${CMAKE_CURRENT_BINARY_DIR}/second_compiler.hpp)
file(CONFIGURE OUTPUT ${precompiled} CONTENT
     "#pragma once\n#include \"support/precompiled.hpp\"\n#include <penstock/all.hpp>\n" @ONLY)
add_test(NAME ${second_name}/precompiled
         COMMAND ${PENSTOCK_SECOND_COMPILER} ${second_flags} ${form} ${includes} -x c++-header ${precompiled}
                 -o ${precompiled}.pch)
set_tests_properties(
  ${second_name}/precompiled PROPERTIES LABELS second_compiler TIMEOUT 300
                                       FIXTURES_SETUP second_compiler_precompiled)
set(all_headers_file ${CMAKE_CURRENT_BINARY_DIR}/all_headers_forward.cpp)
foreach(file IN LISTS absolute_test_files units sources all_headers_file)
  string(REPLACE ${PROJECT_BINARY_DIR}/ "" short ${file})
  string(REPLACE ${PROJECT_SOURCE_DIR}/ "" short ${short})
  string(REGEX REPLACE "^tests/(second_compiler/)?" "" short ${short})
  string(REGEX REPLACE "(\\.(test|fuzz))?\\.cpp$" "" short ${short})
  set(how ${form} -include-pch ${precompiled}.pch)
  if(file STREQUAL all_headers_file)
    set(how "")
  elseif(short MATCHES "^names/") # it tests the order of includes
    set(how ${form})
  elseif(file IN_LIST units) # a test may use a name that another one has as a global
    list(APPEND how -Wno-shadow)
  endif()
  add_test(NAME ${second_name}/${short} COMMAND ${PENSTOCK_SECOND_COMPILER} ${second_flags} ${how} ${includes}
                                                -fsyntax-only ${file})
  set_tests_properties(${second_name}/${short} PROPERTIES LABELS second_compiler TIMEOUT 300
                                                          FIXTURES_REQUIRED second_compiler_precompiled)
endforeach()

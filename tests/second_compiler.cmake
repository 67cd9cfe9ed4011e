# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# What compilers read without a warning; no object file is made. PENSTOCK_SECOND_COMPILER reads the tests,
# examples and fuzzers that are not built with it elsewhere: the preset `clang` builds and runs tests and
# examples, and .ci/run the tests that PENSTOCK_TESTED_ELSEWHERE matches, with sanitizers. Those the first
# compiler reads, as it does not build them. If tests are built against penstock::compiled, so are they here;
# the bodies are compiled in the file that includes all headers. The headers they have in common are parsed
# once, as a precompiled header: the first compiler checks that each of them includes what it needs.

set(read_flags -std=c++20 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
set(includes -I${PROJECT_SOURCE_DIR}/include -I${CMAKE_CURRENT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/fuzz
             -I${PROJECT_BINARY_DIR}/examples/made) # what inspect reads, made when examples are configured
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

set(second_files ${test_files})
if(PENSTOCK_TESTED_ELSEWHERE)
  list(FILTER second_files EXCLUDE REGEX "${PENSTOCK_TESTED_ELSEWHERE}")
endif()
if(TARGET penstock::mpi)
  list(APPEND second_files integration/mpi.test.cpp)
  get_target_property(mpi_includes MPI::MPI_CXX INTERFACE_INCLUDE_DIRECTORIES)
  foreach(directory IN LISTS mpi_includes)
    list(APPEND includes -isystem ${directory})
  endforeach()
  list(APPEND includes -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX)
endif()

# The tests with the fake runtime of CUDA and the fakes beside it, and the headers themselves where the
# libraries are.
set(fake_targets CUDA::cudart PenstockNvjpeg::PenstockNvjpeg PenstockCufile::PenstockCufile)
foreach(library IN ITEMS cuda nvjpeg cufile)
  list(POP_FRONT fake_targets fake_target)
  if(TARGET penstock::${library})
    get_target_property(fake_includes ${fake_target} INTERFACE_INCLUDE_DIRECTORIES)
  else()
    set(fake_includes ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_${library})
  endif()
  foreach(directory IN LISTS fake_includes)
    list(APPEND includes -isystem ${directory})
  endforeach()
endforeach()
list(APPEND second_files ${fake_cuda_files})

file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp ${PROJECT_SOURCE_DIR}/fuzz/*.cpp)
set(sources "")
foreach(file IN LISTS programs)
  penstock_buildable(${file} buildable)
  if(buildable AND (PENSTOCK_BUILD_EXAMPLES OR NOT file MATCHES "/inspect[a-z_]*[.]cpp$"))
    list(APPEND sources ${file})
  endif()
endforeach()
# Of the tests with the wheel's Arrow, those that between them include all of its headers.
set(second_arrow "")
if(arrow_files AND NOT TARGET penstock::arrow)
  set(second_arrow ${arrow_files})
  if(TARGET penstock::s3)
    list(FILTER second_arrow EXCLUDE REGEX "^source/(delta|iceberg|parquet|parquet_agreement)[.]")
  endif()
  get_target_property(arrow_includes PenstockArrow::arrow INTERFACE_INCLUDE_DIRECTORIES)
  list(APPEND includes -isystem ${arrow_includes})
endif()

set(form "")
if(TARGET penstock::compiled)
  set(form -DPENSTOCK_COMPILED)
endif()

# penstock_reads(<compiler> FILES <test file>... SOURCES <path>... BARE <path>...): in a unity build FILES are
# read in units; BARE without what all have in common.
function(penstock_reads compiler)
  cmake_parse_arguments(PARSE_ARGV 1 read "" "" "FILES;SOURCES;BARE")
  get_filename_component(name ${compiler} NAME)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/read_by/${name})
  # Rooms that have rules of their own.
  set(alone "")
  set(in_units "")
  if(PENSTOCK_TEST_UNITY)
    set(in_units ${read_FILES})
    list(FILTER in_units EXCLUDE REGEX "^(names|device|gpu|steady|integration)/")
    list(REMOVE_ITEM read_FILES ${in_units})
  endif()
  list(APPEND alone ${read_FILES})
  list(TRANSFORM alone PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  # What is not made into an object file needs half the memory, so there may be more in a unit than is built;
  # but not of those rooms below whose tests have names in common.
  math(EXPR many_files "3 * ${PENSTOCK_TEST_UNITY_SIZE}")
  set(units "")
  set(unit "")
  set(room_of_unit "")
  set(files_in_unit 0)
  foreach(file IN LISTS in_units ITEMS end)
    string(REGEX REPLACE "/.*" "" room ${file})
    set(most_files ${many_files})
    if(room_of_unit MATCHES "^(codec|source|stage)$")
      set(most_files ${PENSTOCK_TEST_UNITY_SIZE})
    endif()
    if(NOT unit STREQUAL ""
       AND (NOT room STREQUAL room_of_unit OR files_in_unit EQUAL most_files))
      list(LENGTH units number)
      file(CONFIGURE OUTPUT ${folder}/${room_of_unit}_${number}.cpp CONTENT "${unit}" @ONLY)
      list(APPEND units ${folder}/${room_of_unit}_${number}.cpp)
      set(unit "")
      set(files_in_unit 0)
    endif()
    set(room_of_unit ${room})
    string(APPEND unit "#include \"${CMAKE_CURRENT_SOURCE_DIR}/${file}\"\n")
    math(EXPR files_in_unit "${files_in_unit} + 1")
  endforeach()

  set(header ${folder}/precompiled.hpp)
  file(CONFIGURE OUTPUT ${header} CONTENT
       "#include \"support/precompiled.hpp\"\n#include <penstock/all.hpp>\n" @ONLY)
  set(of_units -Wno-shadow) # a test may use a name that another one has as a global
  if(name MATCHES "clang")
    set(precompiled ${header}.pch)
    set(using -include-pch ${precompiled})
  else()
    set(precompiled ${header}.gch)
    set(using -include ${header})
    list(APPEND of_units -Wno-subobject-linkage --param ggc-min-expand=400
                         --param ggc-min-heapsize=1000000)
  endif()
  add_test(NAME ${name}/precompiled
           COMMAND ${compiler} ${read_flags} ${form} ${includes} -x c++-header ${header} -o ${precompiled})
  set_tests_properties(${name}/precompiled PROPERTIES LABELS second_compiler TIMEOUT 1200
                                                      FIXTURES_SETUP precompiled_for_${name})
  foreach(file IN LISTS alone units read_SOURCES read_BARE)
    string(REPLACE ${PROJECT_BINARY_DIR}/ "" short ${file})
    string(REPLACE ${PROJECT_SOURCE_DIR}/ "" short ${short})
    string(REGEX REPLACE "^tests/(read_by/[^/]*/)?" "" short ${short})
    string(REGEX REPLACE "(\\.(test|fuzz))?\\.cpp$" "" short ${short})
    set(how ${form} ${using})
    if(file IN_LIST read_BARE)
      set(how "")
    elseif(short MATCHES "^names/") # it tests the order of includes
      set(how ${form})
    elseif(file IN_LIST units)
      list(APPEND how ${of_units})
    endif()
    add_test(NAME ${name}/${short}
             COMMAND ${compiler} ${read_flags} ${how} ${includes} -fsyntax-only ${file})
    set_tests_properties(${name}/${short} PROPERTIES LABELS second_compiler TIMEOUT 1200
                                                     FIXTURES_REQUIRED precompiled_for_${name})
    if(file IN_LIST units OR file IN_LIST read_BARE)
      set_tests_properties(${name}/${short} PROPERTIES COST 50) # begins early
    endif()
  endforeach()
endfunction()

penstock_reads(
  ${PENSTOCK_SECOND_COMPILER} FILES ${second_files} ${second_arrow} SOURCES ${sources}
  BARE ${CMAKE_CURRENT_BINARY_DIR}/all_headers_forward.cpp)
if(tested_elsewhere)
  penstock_reads(${CMAKE_CXX_COMPILER} FILES ${tested_elsewhere})
endif()

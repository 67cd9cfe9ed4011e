# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests that need several processes: the test of integration/mpi.hpp on 1 to 5 processes, started by
# mpirun. Every process runs all test cases in one fixed order.

if(PENSTOCK_SANITIZE MATCHES "thread") # it would report races in an uninstrumented MPI library
  return()
endif()

add_executable(penstock_test_mpi integration/mpi.test.cpp)
if(TARGET penstock::asio)
  target_sources(penstock_test_mpi PRIVATE integration/mpi_metrics.test.cpp)
endif()
target_link_libraries(penstock_test_mpi PRIVATE penstock_test_main)
if(PENSTOCK_TEST_SINGLE_HEADER)
  target_link_libraries(penstock_test_mpi PRIVATE penstock_single_header)
else()
  target_link_libraries(penstock_test_mpi PRIVATE penstock::penstock)
endif()

# penstock_mpi_test(<name> <script> <argument>...): a script in mpi/ that starts processes
function(penstock_mpi_test name script)
  add_test(NAME mpi/${name} COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tests/mpi/${script}.py ${ARGN})
  set_tests_properties(
    mpi/${name} PROPERTIES LABELS mpi TIMEOUT 1200 SKIP_RETURN_CODE 77
                           ENVIRONMENT "ASAN_OPTIONS=detect_leaks=0") # MPI libraries leak
endfunction()
foreach(processes RANGE 1 5)
  penstock_mpi_test(integration_on_${processes} run ${processes} $<TARGET_FILE:penstock_test_mpi>)
endforeach()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests that a chain of stages becomes one function, by reading the machine code of a program rather than
# by timing it. The program is always optimised, whatever the other tests are.

if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64|aarch64")
  return()
endif()
add_executable(penstock_test_disasm ${PROJECT_SOURCE_DIR}/bench/disasm/evaluate.cpp)
target_link_libraries(penstock_test_disasm PRIVATE penstock::penstock penstock_dev_flags)
target_compile_options(penstock_test_disasm PRIVATE -O3)
target_compile_definitions(penstock_test_disasm PRIVATE NDEBUG)
add_test(NAME no_indirect_calls
         COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/check_indirect_calls.py
                 $<TARGET_OBJECTS:penstock_test_disasm> ^slots_of_ from_source.*write_each)
set_tests_properties(no_indirect_calls PROPERTIES LABELS checks TIMEOUT 1200)

# Where GCC puts the loops of programs that make a plan and use it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_library(penstock_test_train OBJECT ${PROJECT_SOURCE_DIR}/bench/disasm/train.cpp)
  target_link_libraries(penstock_test_train PRIVATE penstock::penstock penstock_dev_flags)
  target_compile_options(penstock_test_train PRIVATE -O2)
  target_compile_definitions(penstock_test_train PRIVATE NDEBUG)
  add_test(NAME hot_loops COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/tools/check_hot_loops.py
                                  $<TARGET_OBJECTS:penstock_test_train> ^train_)
  set_tests_properties(hot_loops PROPERTIES LABELS checks TIMEOUT 1200)
endif()

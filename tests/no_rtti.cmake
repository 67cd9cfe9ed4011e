# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Everything works without run-time type information: every header of every enabled component compiles, and
# whole programs, with threads, errors that are caught by their type and states, do as they do with it.

add_executable(penstock_test_no_rtti ${CMAKE_CURRENT_BINARY_DIR}/all_headers_forward.cpp
                                     ${CMAKE_CURRENT_BINARY_DIR}/all_headers_backward.cpp)
foreach(example IN ITEMS epochs_and_state errors readme)
  add_executable(penstock_test_no_rtti_${example} ${PROJECT_SOURCE_DIR}/examples/reference/${example}.cpp)
endforeach()
foreach(program IN ITEMS "" _epochs_and_state _errors _readme)
  target_link_libraries(penstock_test_no_rtti${program} PRIVATE penstock::penstock penstock_dev_flags)
  target_compile_options(penstock_test_no_rtti${program} PRIVATE -fno-rtti)
  target_compile_definitions(penstock_test_no_rtti${program} PRIVATE ASIO_NO_TYPEID)
  add_test(NAME no_rtti${program} COMMAND penstock_test_no_rtti${program})
  set_tests_properties(no_rtti${program} PROPERTIES LABELS unit TIMEOUT 300)
endforeach()

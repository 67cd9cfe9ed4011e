# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Everything works without run-time type information: every header of every enabled component compiles, and
# whole programs, with threads, errors caught by type, and states, behave as they do with it. They are built
# without penstock::compiled, so that the bodies are compiled like this too; the last one links it, built
# with type information, as someone else's build of the library would be.

add_executable(penstock_test_no_rtti ${CMAKE_CURRENT_BINARY_DIR}/all_headers.cpp)
foreach(example IN ITEMS epochs_and_state errors readme)
  add_executable(penstock_test_no_rtti_${example} ${PROJECT_SOURCE_DIR}/examples/reference/${example}.cpp)
endforeach()
set(programs_without_types "" _epochs_and_state _errors _readme)
foreach(program IN LISTS programs_without_types)
  target_link_libraries(penstock_test_no_rtti${program} PRIVATE penstock_test_headers)
endforeach()
if(TARGET penstock::compiled)
  list(APPEND programs_without_types _compiled)
  add_executable(penstock_test_no_rtti_compiled ${PROJECT_SOURCE_DIR}/examples/reference/errors.cpp)
  target_link_libraries(penstock_test_no_rtti_compiled PRIVATE penstock::penstock)
endif()
foreach(program IN LISTS programs_without_types)
  target_link_libraries(penstock_test_no_rtti${program} PRIVATE penstock_dev_flags)
  target_compile_options(penstock_test_no_rtti${program} PRIVATE -fno-rtti)
  target_compile_definitions(penstock_test_no_rtti${program} PRIVATE ASIO_NO_TYPEID BOOST_ASIO_NO_TYPEID)
  add_test(NAME no_rtti${program} COMMAND penstock_test_no_rtti${program})
  set_tests_properties(no_rtti${program} PROPERTIES LABELS unit TIMEOUT 1200)
endforeach()

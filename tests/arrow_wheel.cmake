# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests Parquet, tables, storage/arrow_files.hpp, and what is exchanged with Arrow C++, with the Arrow of the
# wheel that PENSTOCK_ARROW_PYTHON has where the component is off: what is installed and packaged has no
# wheel. With the component, these tests are some of their rooms'.

find_package(PenstockArrow REQUIRED)
set(arrow_tests
    source/csv
    source/delta
    source/iceberg
    source/parquet
    source/parquet_checks
    source/parquet_drift
    source/parquet_nested
    source/parquet_where
    source/parquet_writer
    source/splits
    source/table_types
    source/windows_of_tables
    storage/arrow_files
    integration/arrow_exchange)
if(TARGET penstock::s3)
  list(APPEND arrow_tests source/tables_over_s3)
endif()
if(TARGET penstock::gzip AND TARGET penstock::png)
  list(APPEND arrow_tests source/parquet_agreement)
endif()
if(TARGET penstock::json AND TARGET penstock::video)
  list(APPEND arrow_tests source/lerobot source/lerobot_sets)
endif()
list(TRANSFORM arrow_tests APPEND .test.cpp OUTPUT_VARIABLE arrow_files)
add_executable(penstock_test_arrow_wheel ${arrow_files})
if(PENSTOCK_TEST_UNITY AND PENSTOCK_TEST_UNITY_SIZE GREATER 0)
  set_target_properties(penstock_test_arrow_wheel PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE
                                                                            ${PENSTOCK_TEST_UNITY_SIZE})
endif()
target_link_libraries(
  penstock_test_arrow_wheel PRIVATE penstock_test_main penstock::core PenstockArrow::PenstockArrow)
if(TARGET penstock::s3)
  target_link_libraries(penstock_test_arrow_wheel PRIVATE penstock::s3)
endif()
if(TARGET penstock::gzip AND TARGET penstock::png)
  target_link_libraries(penstock_test_arrow_wheel PRIVATE penstock::gzip penstock::png)
endif()
if(TARGET penstock::json AND TARGET penstock::video)
  target_link_libraries(penstock_test_arrow_wheel PRIVATE penstock::json penstock::video)
endif()
if(TARGET penstock::compiled)
  target_link_libraries(penstock_test_arrow_wheel PRIVATE penstock::compiled)
endif()
if(PENSTOCK_BUILD_EXAMPLES)
  add_executable(task_parquet_tables ${PROJECT_SOURCE_DIR}/examples/tasks/parquet_tables.cpp)
  target_link_libraries(
    task_parquet_tables PRIVATE penstock_dev_flags penstock::core PenstockArrow::PenstockArrow)
  if(TARGET penstock::compiled)
    target_link_libraries(task_parquet_tables PRIVATE penstock::compiled)
  endif()
  if(TARGET penstock::json AND TARGET penstock::video)
    add_executable(train_policy ${PROJECT_SOURCE_DIR}/examples/train_policy.cpp)
    target_link_libraries(train_policy PRIVATE penstock_dev_flags penstock::penstock
                                               PenstockArrow::PenstockArrow)
  endif()
endif()
foreach(test IN LISTS arrow_tests)
  get_filename_component(stem ${test} NAME)
  get_filename_component(room ${test} DIRECTORY)
  add_test(NAME ${test} COMMAND penstock_test_arrow_wheel ${catch_options} "[#${stem}.test]")
  set_tests_properties(${test} PROPERTIES LABELS "unit;${room}" TIMEOUT 1200
                                          ENVIRONMENT "${penstock_test_environment}")
endforeach()

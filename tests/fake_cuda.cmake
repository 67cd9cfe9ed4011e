# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests the logic of what uses the CUDA runtime with a fake one that needs no GPU: its order of calls, its
# errors, what it releases. Compiled with the toolkit's headers if the component is on, otherwise with the few
# declarations that are needed. Each file is a program of its own, because each has the fake's functions.

foreach(file IN LISTS fake_cuda_files)
  string(REGEX REPLACE "\\.test\\.cpp$" "" short ${file})
  string(REPLACE "/" "_" name penstock_test_fake_${short})
  add_executable(${name} ${file})
  target_link_libraries(${name} PRIVATE penstock_test_main penstock::core)
  if(TARGET penstock::compiled)
    target_link_libraries(${name} PRIVATE penstock::compiled)
  endif()
  target_precompile_headers(${name} REUSE_FROM penstock_test_precompiled)
  if(TARGET penstock::cuda)
    set(cuda_headers $<TARGET_PROPERTY:CUDA::cudart,INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    set(cuda_headers ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_cuda)
  endif()
  target_include_directories(${name} SYSTEM PRIVATE ${cuda_headers})
  add_test(NAME ${short} COMMAND ${name})
  set_tests_properties(${short} PROPERTIES LABELS "unit;device" TIMEOUT 300
                                           ENVIRONMENT "${penstock_test_environment}")
endforeach()

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Tests the logic of what uses the CUDA runtime with a fake one that needs no GPU: its order of calls, its
# errors, what it releases. Compiled with the toolkit's headers if the component is on, otherwise with the few
# declarations that are needed; so it is with nvJPEG and cuFile, whose fakes stand beside it. Each file is a
# program of its own, because each has the fakes' functions.

set(fake_headers "")
set(fake_targets CUDA::cudart PenstockNvjpeg::PenstockNvjpeg PenstockCufile::PenstockCufile)
foreach(library IN ITEMS cuda nvjpeg cufile)
  list(POP_FRONT fake_targets fake_target)
  if(TARGET penstock::${library})
    list(APPEND fake_headers $<TARGET_PROPERTY:${fake_target},INTERFACE_INCLUDE_DIRECTORIES>)
  else()
    list(APPEND fake_headers ${CMAKE_CURRENT_SOURCE_DIR}/support/fake_${library})
  endif()
endforeach()
add_custom_target(penstock_test_stand_ins)
foreach(file IN LISTS fake_cuda_files)
  string(REGEX REPLACE "\\.test\\.cpp$" "" short ${file})
  string(REPLACE "/" "_" name penstock_test_fake_${short})
  add_executable(${name} ${file})
  add_dependencies(penstock_test_stand_ins ${name})
  target_link_libraries(${name} PRIVATE penstock_test_main penstock::core)
  if(TARGET penstock::compiled)
    target_link_libraries(${name} PRIVATE penstock::compiled)
  endif()
  target_precompile_headers(${name} REUSE_FROM penstock_test_precompiled)
  target_include_directories(${name} SYSTEM PRIVATE ${fake_headers})
  if(file MATCHES "nvjpeg")
    target_link_libraries(${name} PRIVATE penstock::jpeg)
  endif()
  add_test(NAME ${short} COMMAND ${name})
  set_tests_properties(${short} PROPERTIES LABELS "unit;device;stand_ins" TIMEOUT 1200
                                           ENVIRONMENT "${penstock_test_environment}")
endforeach()

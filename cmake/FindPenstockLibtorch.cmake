# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# libtorch under one name, PenstockLibtorch::PenstockLibtorch. Its own package sets variables and flags of the
# folder that looks for it; here they are a target's. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockLibtorch::PenstockLibtorch)
  find_package(Torch CONFIG QUIET)
  if(Torch_FOUND)
    add_library(PenstockLibtorch::PenstockLibtorch INTERFACE IMPORTED)
    separate_arguments(PenstockLibtorch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
    set_target_properties(
      PenstockLibtorch::PenstockLibtorch
      PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${TORCH_INCLUDE_DIRS}"
                 INTERFACE_LINK_LIBRARIES "${TORCH_LIBRARIES}"
                 INTERFACE_COMPILE_OPTIONS "${PenstockLibtorch_flags}")
    set(PenstockLibtorch_VERSION ${Torch_VERSION})
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockLibtorch::PenstockLibtorch)
  set(PenstockLibtorch_TARGET PenstockLibtorch::PenstockLibtorch)
endif()
find_package_handle_standard_args(
  PenstockLibtorch REQUIRED_VARS PenstockLibtorch_TARGET VERSION_VAR PenstockLibtorch_VERSION)

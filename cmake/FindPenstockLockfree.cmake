# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Boost.Lockfree under one name, PenstockLockfree::PenstockLockfree, however it is packaged: by itself
# (vcpkg), with all of Boost (Conan, Debian), or as headers alone. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockLockfree::PenstockLockfree)
  find_package(boost_lockfree CONFIG QUIET)
  find_package(Boost CONFIG QUIET)
  foreach(candidate IN ITEMS Boost::lockfree Boost::headers Boost::boost)
    if(TARGET ${candidate})
      add_library(PenstockLockfree::PenstockLockfree INTERFACE IMPORTED)
      set_target_properties(
        PenstockLockfree::PenstockLockfree PROPERTIES INTERFACE_LINK_LIBRARIES ${candidate})
      break()
    endif()
  endforeach()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockLockfree::PenstockLockfree)
  set(PenstockLockfree_TARGET PenstockLockfree::PenstockLockfree)
  find_package_handle_standard_args(PenstockLockfree REQUIRED_VARS PenstockLockfree_TARGET)
else()
  find_path(PenstockLockfree_INCLUDE_DIR boost/lockfree/queue.hpp)
  mark_as_advanced(PenstockLockfree_INCLUDE_DIR)
  find_package_handle_standard_args(PenstockLockfree REQUIRED_VARS PenstockLockfree_INCLUDE_DIR)
  if(PenstockLockfree_FOUND)
    add_library(PenstockLockfree::PenstockLockfree INTERFACE IMPORTED)
    set_target_properties(
      PenstockLockfree::PenstockLockfree
      PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${PenstockLockfree_INCLUDE_DIR})
  endif()
endif()

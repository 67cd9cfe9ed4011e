# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The flags of the project's own programs. Nothing here is exported.

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(PENSTOCK_CCACHE ccache)
  if(PENSTOCK_CCACHE)
    # Without these ccache ignores everything that is built with a precompiled header. It learns what a file
    # includes from the compiler, so a file that it does not have yet is not preprocessed twice.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        ${CMAKE_COMMAND} -E env CCACHE_DEPEND=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime ${PENSTOCK_CCACHE})
  endif()
endif()

add_library(penstock_dev_flags INTERFACE)
if(MSVC)
  target_compile_options(
    penstock_dev_flags INTERFACE /W4 /permissive- $<$<BOOL:${PENSTOCK_WARNINGS_AS_ERRORS}>:/WX>)
else()
  target_compile_options(
    penstock_dev_flags
    INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
              $<$<BOOL:${PENSTOCK_WARNINGS_AS_ERRORS}>:-Werror>
              # ccache needs to see through the precompiled header
              $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>
              $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12's warnings about sizes and about empty std::optional are often wrong after inlining, or about
    # std::string's own code (GCC bugs 105329, 105651, 80635); the sanitizers find these errors instead.
    target_compile_options(penstock_dev_flags INTERFACE -Wno-array-bounds -Wno-restrict -Wno-stringop-overflow
                                                        -Wno-stringop-overread -Wno-uninitialized
                                                        -Wno-maybe-uninitialized)
  endif()
  # A quarter of the usual linker's time, for more than a hundred programs.
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld PENSTOCK_HAS_LLD)
  if(PENSTOCK_HAS_LLD)
    target_link_options(penstock_dev_flags INTERFACE -fuse-ld=lld)
  endif()
  if(PENSTOCK_TEST_UNITY) # a test may use a name that another one has as a global
    target_compile_options(penstock_dev_flags INTERFACE -Wno-shadow)
    # in a unity build a test is an included file, whose unnamed namespace GCC takes for a header's
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(penstock_dev_flags INTERFACE -Wno-subobject-linkage)
      # A unit takes 2 to 3 GB; a compiler that collects its garbage less often takes an eighth less time.
      target_compile_options(penstock_dev_flags INTERFACE "SHELL:--param ggc-min-expand=400"
                                                          "SHELL:--param ggc-min-heapsize=1000000")
    endif()
  endif()
  if(PENSTOCK_SANITIZE)
    target_compile_options(
      penstock_dev_flags
      INTERFACE -fsanitize=${PENSTOCK_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(penstock_dev_flags INTERFACE -fsanitize=${PENSTOCK_SANITIZE})
    # By which tests leave out what a sanitizer does not allow; GCC defines them itself.
    foreach(sanitizer IN ITEMS address thread)
      if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND PENSTOCK_SANITIZE MATCHES ${sanitizer})
        string(TOUPPER ${sanitizer} upper)
        target_compile_definitions(penstock_dev_flags INTERFACE __SANITIZE_${upper}__=1)
      endif()
    endforeach()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT PENSTOCK_BUILD_FUZZ)
      # A library, as GCC's is: only then may tests define operator new, and replace malloc for other
      # libraries.
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir OUTPUT_VARIABLE penstock_runtimes
                      OUTPUT_STRIP_TRAILING_WHITESPACE)
      target_link_options(penstock_dev_flags INTERFACE -shared-libsan LINKER:-rpath,${penstock_runtimes})
    endif()
    if(PENSTOCK_SANITIZE MATCHES "address.*undefined")
      # Saves compile time: the address sanitizer finds null by itself, and there are no virtual functions.
      target_compile_options(penstock_dev_flags INTERFACE -fno-sanitize=null,vptr)
    endif()
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU") # it reports the standard library's own code when instrumented
      target_compile_options(penstock_dev_flags INTERFACE -Wno-maybe-uninitialized)
      if(PENSTOCK_SANITIZE MATCHES "thread") # it does not follow fences: Asio's, and ours except on x86
        target_compile_options(penstock_dev_flags INTERFACE -Wno-tsan)
      endif()
    endif()
  endif()
endif()

# penstock_program(<target> <source>...): an executable of the project that may use every enabled component
function(penstock_program target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE penstock::penstock penstock_dev_flags)
  # A warning that users may turn on, and which must then say nothing about the library.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wuseless-cast>)
endfunction()

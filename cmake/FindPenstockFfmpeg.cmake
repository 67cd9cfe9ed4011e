# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# FFmpeg's libavformat, libavcodec, libswscale and libavutil under one name, PenstockFfmpeg::PenstockFfmpeg,
# however they are packaged: with a CMake package (Conan), with files for pkg-config (distributions, vcpkg),
# or as libraries and headers alone. Installed beside penstockConfig.cmake.

if(NOT TARGET PenstockFfmpeg::PenstockFfmpeg)
  set(PenstockFfmpeg_libraries)
  find_package(ffmpeg CONFIG QUIET)
  if(TARGET ffmpeg::ffmpeg)
    set(PenstockFfmpeg_libraries ffmpeg::ffmpeg)
  endif()
  if(NOT PenstockFfmpeg_libraries)
    find_package(PkgConfig QUIET)
    if(PkgConfig_FOUND)
      pkg_check_modules(PenstockFfmpeg_pc QUIET IMPORTED_TARGET libavformat>=58.76 libavcodec libswscale
                        libavutil)
      if(TARGET PkgConfig::PenstockFfmpeg_pc)
        set(PenstockFfmpeg_libraries PkgConfig::PenstockFfmpeg_pc)
        set(PenstockFfmpeg_VERSION ${PenstockFfmpeg_pc_libavformat_VERSION})
      endif()
    endif()
  endif()
  if(NOT PenstockFfmpeg_libraries)
    find_path(PenstockFfmpeg_INCLUDE_DIR libavformat/avformat.h)
    mark_as_advanced(PenstockFfmpeg_INCLUDE_DIR)
    foreach(library IN ITEMS avformat avcodec swscale avutil)
      find_library(PenstockFfmpeg_${library}_LIBRARY NAMES ${library})
      mark_as_advanced(PenstockFfmpeg_${library}_LIBRARY)
      if(PenstockFfmpeg_INCLUDE_DIR AND PenstockFfmpeg_${library}_LIBRARY)
        list(APPEND PenstockFfmpeg_libraries ${PenstockFfmpeg_${library}_LIBRARY})
      endif()
    endforeach()
    list(LENGTH PenstockFfmpeg_libraries PenstockFfmpeg_count)
    if(NOT PenstockFfmpeg_count EQUAL 4)
      set(PenstockFfmpeg_libraries)
    endif()
  endif()
  if(PenstockFfmpeg_libraries)
    add_library(PenstockFfmpeg::PenstockFfmpeg INTERFACE IMPORTED)
    set_target_properties(PenstockFfmpeg::PenstockFfmpeg PROPERTIES INTERFACE_LINK_LIBRARIES
                                                                    "${PenstockFfmpeg_libraries}")
    if(PenstockFfmpeg_INCLUDE_DIR)
      set_target_properties(PenstockFfmpeg::PenstockFfmpeg PROPERTIES INTERFACE_INCLUDE_DIRECTORIES
                                                                      "${PenstockFfmpeg_INCLUDE_DIR}")
    endif()
  endif()
endif()

include(FindPackageHandleStandardArgs)
if(TARGET PenstockFfmpeg::PenstockFfmpeg)
  set(PenstockFfmpeg_TARGET PenstockFfmpeg::PenstockFfmpeg)
endif()
find_package_handle_standard_args(
  PenstockFfmpeg REQUIRED_VARS PenstockFfmpeg_TARGET VERSION_VAR PenstockFfmpeg_VERSION)

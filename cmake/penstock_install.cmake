# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Headers, a package that find_package(penstock COMPONENTS ...) understands, and files for pkg-config. Nothing
# in it depends on a compiler or an architecture, so it goes under share/; penstock::compiled does, and with
# it everything goes under lib/. The licence is left to packagers.
#
# `cmake --install <build> --component penstock-<name>` installs one component; the others need penstock-core.

include(CMakePackageConfigHelpers)
if(TARGET penstock_compiled)
  set(penstock_files_dir ${CMAKE_INSTALL_LIBDIR})
  set(penstock_any_machine "")
else()
  set(penstock_files_dir ${CMAKE_INSTALL_DATADIR})
  set(penstock_any_machine ARCH_INDEPENDENT)
endif()
set(penstock_package_dir ${penstock_files_dir}/cmake/penstock)
# Packagers who keep all of these in one place can set it here.
set(PENSTOCK_INSTALL_PKGCONFIGDIR ""
    CACHE STRING "Where files for pkg-config go, if not beside those of CMake")
set(penstock_pc_dir ${penstock_files_dir}/pkgconfig)
if(PENSTOCK_INSTALL_PKGCONFIGDIR)
  set(penstock_pc_dir ${PENSTOCK_INSTALL_PKGCONFIGDIR})
endif()

# They locate files relative to their own place, so that the installation may be moved.
if(IS_ABSOLUTE "${penstock_pc_dir}")
  set(penstock_pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  string(REGEX REPLACE "[^/]+" ".." penstock_pc_prefix "\${pcfiledir}/${penstock_pc_dir}")
  string(REGEX REPLACE "^[.][.]" "\${pcfiledir}" penstock_pc_prefix "${penstock_pc_prefix}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_INCLUDEDIR}")
  set(penstock_pc_includedir "${CMAKE_INSTALL_INCLUDEDIR}")
else()
  set(penstock_pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(penstock_pc_libdir "${CMAKE_INSTALL_LIBDIR}")
else()
  set(penstock_pc_libdir "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
endif()

# Each component has an export of its own, so that libraries of components not requested are not looked for.
get_property(penstock_components GLOBAL PROPERTY PENSTOCK_COMPONENTS)
foreach(component IN LISTS penstock_components)
  if(component STREQUAL "compiled") # it has no headers
    set(penstock_what ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT penstock-compiled)
    get_property(penstock_pc_gc GLOBAL PROPERTY PENSTOCK_PC_FILE_GC_OF_compiled)
    string(STRIP "-L${penstock_pc_libdir} -lpenstock ${penstock_pc_gc}" penstock_pc_compiled)
    set_property(GLOBAL PROPERTY PENSTOCK_PC_FILE_LIBS_OF_compiled "${penstock_pc_compiled}")
  else()
    set(penstock_what FILE_SET HEADERS COMPONENT penstock-${component} FILE_SET bodies COMPONENT
                      penstock-${component})
  endif()
  install(TARGETS penstock_${component} EXPORT penstock-${component}-targets ${penstock_what})
  install(
    EXPORT penstock-${component}-targets
    NAMESPACE penstock::
    DESTINATION ${penstock_package_dir}
    COMPONENT penstock-${component})

  get_property(penstock_pc_requires GLOBAL PROPERTY PENSTOCK_PC_FILE_REQUIRES_OF_${component})
  get_property(penstock_pc_libs GLOBAL PROPERTY PENSTOCK_PC_FILE_LIBS_OF_${component})
  set(penstock_pc_name penstock)
  set(penstock_pc_description "${PROJECT_DESCRIPTION}")
  get_property(penstock_pc_cflags GLOBAL PROPERTY PENSTOCK_PC_FILE_CFLAGS_OF_${component})
  string(STRIP "-I\${includedir} ${penstock_pc_cflags}" penstock_pc_cflags)
  if(NOT component STREQUAL "core")
    set(penstock_pc_name penstock-${component})
    set(penstock_pc_description "Penstock's component ${component}")
    string(PREPEND penstock_pc_requires "penstock = ${PROJECT_VERSION} ")
    string(STRIP "${penstock_pc_requires}" penstock_pc_requires)
  endif()
  configure_file(
    ${PROJECT_SOURCE_DIR}/cmake/penstock.pc.in ${PROJECT_BINARY_DIR}/pkgconfig/${penstock_pc_name}.pc @ONLY)
  install(
    FILES ${PROJECT_BINARY_DIR}/pkgconfig/${penstock_pc_name}.pc
    DESTINATION ${penstock_pc_dir}
    COMPONENT penstock-${component})
endforeach()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/penstockConfig.cmake.in ${PROJECT_BINARY_DIR}/penstockConfig.cmake
  INSTALL_DESTINATION ${penstock_package_dir})
# While the major version is 0, a minor version may change everything.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake COMPATIBILITY SameMinorVersion
  ${penstock_any_machine})
install(
  FILES ${PROJECT_BINARY_DIR}/penstockConfig.cmake
        ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/penstock_find.cmake
        ${PROJECT_SOURCE_DIR}/cmake/penstock_component_table.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockArrow.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockLibtorch.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockFfmpeg.cmake
  DESTINATION ${penstock_package_dir}
  COMPONENT penstock-core)

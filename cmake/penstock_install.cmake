# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# Headers, and a package that find_package(penstock COMPONENTS ...) understands. Nothing in it depends on a
# compiler or an architecture, so it lies under share/. The licence is left to whoever makes a package of it.

include(CMakePackageConfigHelpers)
set(penstock_package_dir ${CMAKE_INSTALL_DATADIR}/cmake/penstock)

# Each component has an export of its own, so that the libraries of those not asked for are not looked for.
get_property(penstock_components GLOBAL PROPERTY PENSTOCK_COMPONENTS)
foreach(component IN LISTS penstock_components)
  install(TARGETS penstock_${component} EXPORT penstock-${component}-targets FILE_SET HEADERS)
  install(
    EXPORT penstock-${component}-targets
    NAMESPACE penstock::
    DESTINATION ${penstock_package_dir})
endforeach()

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/penstockConfig.cmake.in ${PROJECT_BINARY_DIR}/penstockConfig.cmake
  INSTALL_DESTINATION ${penstock_package_dir})
# While the major version is 0, a minor version may change everything.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(
  FILES ${PROJECT_BINARY_DIR}/penstockConfig.cmake
        ${PROJECT_BINARY_DIR}/penstockConfigVersion.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockAsio.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockJson.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockLockfree.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockLz4.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockZstd.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockDeflate.cmake
        ${PROJECT_SOURCE_DIR}/cmake/FindPenstockYaml.cmake
  DESTINATION ${penstock_package_dir})

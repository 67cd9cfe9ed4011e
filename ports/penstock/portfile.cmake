# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
if("compiled" IN_LIST FEATURES)
  set(package lib/cmake/penstock)
else()
  set(VCPKG_BUILD_TYPE release) # header-only
  set(package share/cmake/penstock)
endif()
# The port lives in the repository and builds what it lies in; the index replaces this line by a download.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_check_features(
  OUT_FEATURE_OPTIONS options
  FEATURES compiled PENSTOCK_ENABLE_COMPILED
           zstd PENSTOCK_ENABLE_ZSTD
           gzip PENSTOCK_ENABLE_GZIP
           zlib PENSTOCK_ENABLE_ZLIB
           lz4 PENSTOCK_ENABLE_LZ4
           bz2 PENSTOCK_ENABLE_BZ2
           xz PENSTOCK_ENABLE_XZ
           brotli PENSTOCK_ENABLE_BROTLI
           snappy PENSTOCK_ENABLE_SNAPPY
           json PENSTOCK_ENABLE_JSON
           simdjson PENSTOCK_ENABLE_SIMDJSON
           yaml PENSTOCK_ENABLE_YAML
           jpeg PENSTOCK_ENABLE_JPEG
           png PENSTOCK_ENABLE_PNG
           webp PENSTOCK_ENABLE_WEBP
           gif PENSTOCK_ENABLE_GIF
           avif PENSTOCK_ENABLE_AVIF
           tiff PENSTOCK_ENABLE_TIFF
           utf8proc PENSTOCK_ENABLE_UTF8PROC
           audio PENSTOCK_ENABLE_AUDIO
           resample PENSTOCK_ENABLE_RESAMPLE
           video PENSTOCK_ENABLE_VIDEO
           pcre2 PENSTOCK_ENABLE_PCRE2
           sentencepiece PENSTOCK_ENABLE_SENTENCEPIECE
           tfrecord PENSTOCK_ENABLE_TFRECORD
           cache PENSTOCK_ENABLE_CACHE
           fmt PENSTOCK_ENABLE_FMT
           range-v3 PENSTOCK_ENABLE_RANGE_V3
           asio PENSTOCK_ENABLE_ASIO
           lockfree PENSTOCK_ENABLE_LOCKFREE
           mpi PENSTOCK_ENABLE_MPI
           uring PENSTOCK_ENABLE_URING
           http PENSTOCK_ENABLE_HTTP
           s3 PENSTOCK_ENABLE_S3
           crypto PENSTOCK_ENABLE_CRYPTO
           arrow PENSTOCK_ENABLE_ARROW
           libtorch PENSTOCK_ENABLE_LIBTORCH
           cuda PENSTOCK_ENABLE_CUDA
           nvjpeg PENSTOCK_ENABLE_NVJPEG
           cufile PENSTOCK_ENABLE_CUFILE)
# vcpkg wants files for pkg-config that name libraries under lib/.
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS ${options} -DPENSTOCK_BUILD_TESTS=OFF -DPENSTOCK_BUILD_EXAMPLES=OFF -DPENSTOCK_BUILD_BENCH=OFF
          -DPENSTOCK_BUILD_FUZZ=OFF -DPENSTOCK_INSTALL_PKGCONFIGDIR=lib/pkgconfig)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH ${package})
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include")
file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")

# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

# The optional components, one row each, behind those that it needs. Options, targets, the installed package
# and the files for pkg-config are made from it; tools/check_components.py --write makes what vcpkg and Conan
# read, and the table of docs/building.md. Installed beside penstockConfig.cmake.
#
# penstock_row(<name> <sentence for those who choose> LIBRARY <what it needs, for them, too>
#   FIND <arguments of find_package>  the package, of which the target <package>::<package> is linked; with
#                                     HEADER the name of a target that is made, out of
#   [PACKAGES <package>...]           CMake packages that may have the library, with
#   [TARGETS <target>...]             targets that they may have, the first one that is there; or else out of
#   [HEADER <file>]                   the folder that has this header, and
#   [NAMES <library>...]              the first of these libraries that is there
#   [ALSO <arguments of find_package>]  another package
#   [LINKS <target>...]               what to link besides; without HEADER, instead of <package>::<package>
#   [SET <variable>...]               these are true for find_package
#   [NEEDS <component>...]            components whose headers it includes; they are turned on with it
#   [SHARES <component>...]           components whose library it uses, without their headers
#   [DEFINES <definition>...]         what the library's headers must be told
#   [PC_REQUIRES <package>...]        what pkg-config calls the library, or
#   [PC_LIBS <flag>...]               flags where not every system has a file for it
#   [VCPKG <port>...]                 with their features in brackets
#   [CONAN "<package>/<versions> <library>..."...])  the libraries are the system's where it has the package;
#                                     without a package they always are

penstock_row(zstd "The codec zstd, and shards compressed with it, read forward" LIBRARY "zstd"
  FIND PenstockZstd PACKAGES zstd TARGETS zstd::libzstd zstd::libzstd_shared zstd::libzstd_static
  HEADER zstd.h NAMES zstd libzstd zstd_static
  PC_REQUIRES libzstd VCPKG zstd CONAN "zstd/[>=1.4 <2] zstd")

penstock_row(gzip "The codec gzip, and IDX files compressed with it" LIBRARY "libdeflate"
  FIND PenstockDeflate PACKAGES libdeflate
  TARGETS libdeflate::libdeflate_shared libdeflate::libdeflate_static
  HEADER libdeflate.h NAMES deflate libdeflate deflatestatic
  PC_REQUIRES libdeflate VCPKG libdeflate CONAN "libdeflate/[>=1.10 <2] deflate")

penstock_row(zlib "Shards compressed with gzip, read forward" LIBRARY "zlib"
  FIND ZLIB
  PC_REQUIRES zlib VCPKG zlib CONAN "zlib/[>=1.2.11 <2] z")

penstock_row(lz4 "The codec lz4, and shards compressed with it, read forward" LIBRARY "lz4"
  FIND PenstockLz4 PACKAGES lz4 TARGETS lz4::lz4 LZ4::lz4_shared LZ4::lz4_static LZ4::lz4
  HEADER lz4frame.h NAMES lz4 liblz4 lz4_static
  PC_REQUIRES liblz4 VCPKG lz4 CONAN "lz4/[>=1.9.2 <2] lz4")

penstock_row(bz2 "Shards compressed with bzip2, read forward" LIBRARY "bzip2"
  FIND BZip2
  PC_LIBS -lbz2 VCPKG bzip2 CONAN "bzip2/[>=1.0.8 <2] bz2")

penstock_row(xz "Shards compressed with xz, read forward" LIBRARY "liblzma"
  FIND LibLZMA
  PC_REQUIRES liblzma VCPKG liblzma CONAN "xz_utils/[>=5.2 <6] lzma")

penstock_row(brotli "Shards of MosaicML Streaming compressed with brotli" LIBRARY "brotli"
  FIND PenstockBrotli PACKAGES brotli unofficial-brotli
  TARGETS brotli::brotlidec unofficial::brotli::brotlidec
  HEADER brotli/decode.h NAMES brotlidec brotlidec-static
  PC_REQUIRES libbrotlidec VCPKG brotli CONAN "brotli/[>=1.0.9 <2] brotlidec")

penstock_row(snappy "Shards of MosaicML Streaming compressed with snappy" LIBRARY "snappy"
  FIND PenstockSnappy PACKAGES Snappy TARGETS Snappy::snappy
  HEADER snappy.h NAMES snappy
  PC_REQUIRES snappy VCPKG snappy CONAN "snappy/[>=1.1.9 <2] snappy")

penstock_row(json "Documents of JSON, descriptions of shards, and safetensors" LIBRARY "nlohmann-json"
  FIND PenstockJson PACKAGES nlohmann_json TARGETS nlohmann_json::nlohmann_json
  HEADER nlohmann/json.hpp
  PC_REQUIRES nlohmann_json VCPKG nlohmann-json CONAN "nlohmann_json/[>=3.9 <4]")

penstock_row(simdjson "Values of JSON objects, without building documents" LIBRARY "simdjson 3 or later"
  FIND PenstockSimdjson PACKAGES simdjson TARGETS simdjson::simdjson
  HEADER simdjson.h NAMES simdjson
  PC_REQUIRES simdjson VCPKG simdjson CONAN "simdjson/[>=3 <5] simdjson")

penstock_row(yaml "Datasets that Megatron-Energon prepared" LIBRARY "libyaml"
  FIND PenstockYaml PACKAGES yaml TARGETS yaml yaml::yaml
  HEADER yaml.h NAMES yaml libyaml yaml_static
  PC_REQUIRES yaml-0.1 VCPKG libyaml CONAN "libyaml/[>=0.2.5 <1] yaml")

penstock_row(jpeg "JPEG images, decoded and encoded" LIBRARY "libjpeg-turbo 2.1 or later"
  FIND PenstockJpeg PACKAGES libjpeg-turbo
  TARGETS libjpeg-turbo::jpeg libjpeg-turbo::jpeg-static libjpeg-turbo::libjpeg-turbo
  HEADER jpeglib.h NAMES jpeg libjpeg jpeg-static
  PC_REQUIRES libjpeg VCPKG libjpeg-turbo CONAN "libjpeg-turbo/[>=2.1 <4] jpeg")

penstock_row(png "PNG images, decoded and encoded" LIBRARY "libspng"
  FIND PenstockPng PACKAGES spng SPNG TARGETS spng::spng spng::spng_static
  HEADER spng.h NAMES spng libspng spng_static
  PC_REQUIRES spng VCPKG libspng CONAN "libspng/[>=0.7 <1] spng")

penstock_row(webp "WebP images, decoded and encoded" LIBRARY "libwebp"
  FIND PenstockWebp PACKAGES WebP TARGETS WebP::webp webp::webp
  HEADER webp/decode.h NAMES webp libwebp
  PC_REQUIRES libwebp VCPKG libwebp CONAN "libwebp/[>=1.2 <2] webp")

penstock_row(gif "GIF images, decoded" LIBRARY "giflib 5.1 or later"
  FIND GIF
  PC_LIBS -lgif VCPKG giflib CONAN "giflib/[>=5.1 <6] gif")

penstock_row(avif "AVIF images, decoded" LIBRARY "libavif 0.11 or later, built with a decoder of AV1"
  FIND PenstockAvif PACKAGES libavif TARGETS avif avif::avif
  HEADER avif/avif.h NAMES avif libavif
  PC_REQUIRES libavif VCPKG libavif[dav1d] CONAN "libavif/[>=0.11 <2] avif")

penstock_row(tiff "TIFF images, decoded" LIBRARY "libtiff 4.5 or later"
  FIND TIFF
  PC_REQUIRES libtiff-4 VCPKG tiff CONAN "libtiff/[>=4.5 <5] tiff")

penstock_row(utf8proc "Unicode's normal forms of text, NFC and others" LIBRARY "utf8proc 2.2 or later"
  FIND PenstockUtf8proc PACKAGES utf8proc TARGETS utf8proc::utf8proc
  HEADER utf8proc.h NAMES utf8proc utf8proc_static
  PC_REQUIRES libutf8proc VCPKG utf8proc CONAN "utf8proc/[>=2.2 <3] utf8proc")

penstock_row(audio "Sounds of WAV, FLAC, Ogg, Opus and MP3 files, decoded"
  LIBRARY "libsndfile 1.1 or later"
  FIND PenstockSndfile PACKAGES SndFile TARGETS SndFile::sndfile
  HEADER sndfile.h NAMES sndfile libsndfile
  PC_REQUIRES sndfile VCPKG libsndfile CONAN "libsndfile/[>=1.1 <2] sndfile")

penstock_row(resample "Sounds resampled to another rate, and played faster or slower" LIBRARY "libsoxr"
  FIND PenstockSoxr
  HEADER soxr.h NAMES soxr libsoxr
  PC_REQUIRES soxr VCPKG soxr CONAN "soxr/[>=0.1.3 <1] soxr")

penstock_row(video "Films in mp4, mkv and webm files, decoded" LIBRARY "FFmpeg 4.4 or later"
  FIND PenstockFfmpeg
  PC_REQUIRES libavformat libavcodec libswscale libavutil VCPKG ffmpeg[avcodec,avformat,swscale]
  CONAN "ffmpeg/[>=4.4 <9] avformat avcodec swscale avutil")

penstock_row(pcre2 "Tokenisers of byte-level BPE: tokenizer.json, tiktoken and GPT-2"
  LIBRARY "PCRE2 10.30 or later, utf8proc and nlohmann-json"
  FIND PenstockPcre2 PACKAGES PCRE2 pcre2 TARGETS PCRE2::8BIT pcre2::pcre2-8
  HEADER pcre2.h NAMES pcre2-8 pcre2-8-static
  NEEDS json utf8proc
  PC_REQUIRES libpcre2-8 VCPKG pcre2 CONAN "pcre2/[>=10.30 <11] pcre2-8")

penstock_row(sentencepiece "Tokenisers of SentencePiece" LIBRARY "SentencePiece 0.1.97 or later"
  FIND PenstockSentencepiece
  HEADER sentencepiece_processor.h NAMES sentencepiece
  PC_REQUIRES sentencepiece VCPKG sentencepiece CONAN "sentencepiece")

penstock_row(tfrecord "TFRecord files, read and written" LIBRARY "ISA-L 2.30 or later"
  FIND PenstockIsal PACKAGES unofficial-isal isal isa-l
  TARGETS unofficial::isal::isal ISAL::isal ISAL::isa-l isa-l::isa-l
  HEADER isa-l/crc.h NAMES isal libisal
  PC_REQUIRES libisal VCPKG isal CONAN "isa-l/[>=2.30 <3] isal")

penstock_row(cache "A cache of a node for storages that are far away" LIBRARY "xxHash 0.8.1 or later"
  FIND PenstockXxhash PACKAGES xxHash TARGETS xxHash::xxhash xxhash::xxhash
  HEADER xxh3.h NAMES xxhash libxxhash
  PC_REQUIRES libxxhash VCPKG xxhash CONAN "xxhash/[>=0.8.1 <1] xxhash")

penstock_row(fmt "Formatters for fmt" LIBRARY "fmt"
  FIND fmt
  PC_REQUIRES fmt VCPKG fmt CONAN "fmt/[>=9.1 <13] fmt")

penstock_row(range_v3 "Runs and epochs as views of range-v3" LIBRARY "range-v3"
  FIND range-v3
  VCPKG range-v3 CONAN "range-v3/[>=0.12 <1]")

penstock_row(asio "Batches awaited in coroutines and callbacks of Asio, and metrics served over HTTP"
  LIBRARY "Asio without Boost"
  FIND PenstockAsio PACKAGES asio TARGETS asio::asio
  HEADER asio/version.hpp
  DEFINES ASIO_HAS_CO_AWAIT=1 ASIO_HAS_STD_COROUTINE=1 # Asio 1.22 looks for C++20 coroutines only with GCC
  VCPKG asio CONAN "asio/[>=1.22 <2]")

penstock_row(lockfree "A hand-over through Boost.Lockfree" LIBRARY "Boost.Lockfree"
  FIND PenstockLockfree PACKAGES boost_lockfree Boost TARGETS Boost::lockfree Boost::headers Boost::boost
  HEADER boost/lockfree/queue.hpp
  VCPKG boost-lockfree CONAN "boost/[>=1.74 <2]")

# The old C++ bindings, which MPI 3 removed and which need a library of their own, are left out.
penstock_row(mpi "Worlds, agreement and states over MPI"
  LIBRARY "MPI (Open MPI, MPICH)"
  FIND MPI COMPONENTS CXX LINKS MPI::MPI_CXX SET MPI_CXX_SKIP_MPICXX
  DEFINES OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX
  PC_REQUIRES ompi VCPKG mpi CONAN "openmpi/[>=4.1 <6] mpi")

penstock_row(uring "Files read in the background, through io_uring" LIBRARY "liburing"
  FIND PenstockUring PACKAGES liburing TARGETS liburing::liburing liburing::uring
  HEADER liburing.h NAMES uring liburing
  PC_REQUIRES liburing VCPKG liburing CONAN "liburing/[>=2.0 <3] uring")

penstock_row(http "Objects read over HTTP and HTTPS"
  LIBRARY "Boost.Asio and Boost.Beast 1.74 or later, headers that must be on the search path, and OpenSSL"
  FIND PenstockHttp PACKAGES boost_beast Boost TARGETS Boost::beast Boost::headers Boost::boost
  HEADER boost/beast/http/parser.hpp
  ALSO OpenSSL 1.1.1 LINKS OpenSSL::SSL OpenSSL::Crypto
  PC_REQUIRES openssl VCPKG boost-asio boost-beast openssl
  CONAN "boost/[>=1.74 <2]" "openssl/[>=1.1.1 <4] ssl crypto")

penstock_row(s3 "Objects of S3 and of stores that speak its language"
  LIBRARY "pugixml, OpenSSL and nlohmann-json"
  FIND PenstockS3 PACKAGES pugixml TARGETS pugixml::pugixml pugixml
  HEADER pugixml.hpp NAMES pugixml
  ALSO OpenSSL 1.1.1 LINKS OpenSSL::Crypto
  NEEDS http SHARES json
  PC_REQUIRES libcrypto pugixml VCPKG openssl pugixml
  CONAN "pugixml/[>=1.11 <2] pugixml" "openssl/[>=1.1.1 <4] crypto")

# Behind http and s3, which ask Conan for less.
penstock_row(crypto
  "Objects encrypted as Tink does, read at random and written; lists of hashes and signed manifests"
  LIBRARY "OpenSSL 3 or later"
  FIND OpenSSL 3 LINKS OpenSSL::Crypto
  PC_REQUIRES libcrypto VCPKG openssl CONAN "openssl/[>=3 <4] crypto")

penstock_row(arrow "Parquet, and files in file systems of Arrow C++"
  LIBRARY "Arrow C++ 15 or later with Parquet, or the wheel pyarrow of PyPI (see below)"
  FIND PenstockArrow
  NEEDS json
  PC_REQUIRES arrow parquet VCPKG arrow[parquet] CONAN "arrow/[>=15] arrow parquet")

penstock_row(libtorch "Batches as tensors of libtorch"
  LIBRARY "libtorch 1.13 or later, with Clang libtorch 2 or later"
  FIND PenstockLibtorch
  PC_LIBS -ltorch -ltorch_cpu -lc10 VCPKG libtorch CONAN "libtorch/[>=1.13 <3] torch torch_cpu c10")

penstock_row(cuda "Batches on GPUs of CUDA" LIBRARY "the CUDA runtime, with its headers on the search path"
  FIND CUDAToolkit LINKS CUDA::cudart
  PC_LIBS -lcudart VCPKG cuda CONAN "cudart")

# The libraries of the wheels of PyPI have no name without a version. PenstockNvjpeg_ROOT and
# PenstockCufile_ROOT name the folder of a wheel that has include/.
penstock_row(nvjpeg "JPEG images decoded on GPUs, with nvJPEG"
  LIBRARY "nvJPEG of the toolkit, or of the wheel nvidia-nvjpeg (see below)"
  FIND PenstockNvjpeg HEADER nvjpeg.h NAMES nvjpeg libnvjpeg.so.13 libnvjpeg.so.12 libnvjpeg.so.11
  ALSO CUDAToolkit LINKS CUDA::cudart
  NEEDS cuda jpeg
  PC_LIBS -lnvjpeg CONAN "nvjpeg")

penstock_row(cufile "Files read straight to GPUs, with GPUDirect Storage"
  LIBRARY "cuFile of the toolkit, or of the wheel nvidia-cufile (see below)"
  FIND PenstockCufile HEADER cufile.h NAMES cufile libcufile.so.0
  ALSO CUDAToolkit LINKS CUDA::cudart
  NEEDS cuda
  PC_LIBS -lcufile CONAN "cufile")

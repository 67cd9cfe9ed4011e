// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// Every single header in one translation unit: no two may have a definition in common.
#ifdef CONSUMER_HAS_XZ
#include <penstock/penstock_xz.hpp>
#endif
#ifdef CONSUMER_HAS_ZSTD
#include <penstock/penstock_zstd.hpp>
#endif
#ifdef CONSUMER_HAS_LZ4
#include <penstock/penstock_lz4.hpp>
#endif
#ifdef CONSUMER_HAS_BROTLI
#include <penstock/penstock_brotli.hpp>
#endif
#ifdef CONSUMER_HAS_SNAPPY
#include <penstock/penstock_snappy.hpp>
#endif
#ifdef CONSUMER_HAS_SIMDJSON
#include <penstock/penstock_simdjson.hpp>
#endif
#ifdef CONSUMER_HAS_JSON
#include <penstock/penstock_json.hpp>
#endif
#ifdef CONSUMER_HAS_GZIP
#include <penstock/penstock_gzip.hpp>
#endif
#ifdef CONSUMER_HAS_ZLIB
#include <penstock/penstock_zlib.hpp>
#endif
#ifdef CONSUMER_HAS_BZ2
#include <penstock/penstock_bz2.hpp>
#endif
#ifdef CONSUMER_HAS_YAML
#include <penstock/penstock_yaml.hpp>
#endif
#ifdef CONSUMER_HAS_CUDA
#include <penstock/penstock_cuda.hpp>
#endif
#ifdef CONSUMER_HAS_JPEG
#include <penstock/penstock_jpeg.hpp>
#endif
#ifdef CONSUMER_HAS_PNG
#include <penstock/penstock_png.hpp>
#endif
#ifdef CONSUMER_HAS_WEBP
#include <penstock/penstock_webp.hpp>
#endif
#ifdef CONSUMER_HAS_GIF
#include <penstock/penstock_gif.hpp>
#endif
#ifdef CONSUMER_HAS_UTF8PROC
#include <penstock/penstock_utf8proc.hpp>
#endif
#ifdef CONSUMER_HAS_AUDIO
#include <penstock/penstock_audio.hpp>
#endif
#ifdef CONSUMER_HAS_RESAMPLE
#include <penstock/penstock_resample.hpp>
#endif
#ifdef CONSUMER_HAS_PCRE2
#include <penstock/penstock_pcre2.hpp>
#endif
#ifdef CONSUMER_HAS_SENTENCEPIECE
#include <penstock/penstock_sentencepiece.hpp>
#endif
#ifdef CONSUMER_HAS_AVIF
#include <penstock/penstock_avif.hpp>
#endif
#ifdef CONSUMER_HAS_TIFF
#include <penstock/penstock_tiff.hpp>
#endif
#ifdef CONSUMER_HAS_TFRECORD
#include <penstock/penstock_tfrecord.hpp>
#endif
#ifdef CONSUMER_HAS_CACHE
#include <penstock/penstock_cache.hpp>
#endif
#ifdef CONSUMER_HAS_FMT
#include <penstock/penstock_fmt.hpp>
#endif
#ifdef CONSUMER_HAS_RANGE_V3
#include <penstock/penstock_range_v3.hpp>
#endif
#ifdef CONSUMER_HAS_ASIO
#include <penstock/penstock_asio.hpp>
#endif
#ifdef CONSUMER_HAS_MPI
#include <penstock/penstock_mpi.hpp>
#endif
#ifdef CONSUMER_HAS_URING
#include <penstock/penstock_uring.hpp>
#endif
#ifdef CONSUMER_HAS_CRYPTO
#include <penstock/penstock_crypto.hpp>
#endif
#ifdef CONSUMER_HAS_HTTP
#include <penstock/penstock_http.hpp>
#endif
#ifdef CONSUMER_HAS_S3
#include <penstock/penstock_s3.hpp>
#endif
#ifdef CONSUMER_HAS_LOCKFREE
#include <penstock/penstock_lockfree.hpp>
#endif
#include <penstock/penstock.hpp>

#include <string_view>

std::string_view version_seen_by_other();
std::string_view version_seen_by_other() { return penstock::version; }

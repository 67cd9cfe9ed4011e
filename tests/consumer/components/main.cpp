// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception

// A program that uses the components named at compile time, so it links only if their libraries are given.

#ifdef CONSUMER_CORE
#include <penstock/core.hpp>
#else
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/version.hpp>
#endif

#if defined(CONSUMER_COMPILED) && !defined(PENSTOCK_COMPILED)
#error "whoever links penstock::compiled must be told to"
#endif
#ifdef CONSUMER_ZSTD
#include <penstock/codec/unpack_zstd.hpp>
#include <penstock/codec/zstd.hpp>
#endif
#ifdef CONSUMER_GZIP
#include <penstock/codec/gzip.hpp>
#include <penstock/source/idx_gz.hpp>
#endif
#ifdef CONSUMER_ZLIB
#include <penstock/codec/unpack_gzip.hpp>
#endif
#ifdef CONSUMER_LZ4
#include <penstock/codec/lz4.hpp>
#include <penstock/codec/unpack_lz4.hpp>
#endif
#ifdef CONSUMER_BZ2
#include <penstock/codec/unpack_bzip2.hpp>
#endif
#ifdef CONSUMER_XZ
#include <penstock/codec/unpack_xz.hpp>
#endif
#ifdef CONSUMER_BROTLI
#include <penstock/codec/unpack_brotli.hpp>
#endif
#ifdef CONSUMER_SNAPPY
#include <penstock/codec/unpack_snappy.hpp>
#endif
#ifdef CONSUMER_SIMDJSON
#include <penstock/codec/json_field.hpp>
#endif
#ifdef CONSUMER_JSON
#include <penstock/codec/json.hpp>
#endif
#ifdef CONSUMER_YAML
#include <penstock/source/energon.hpp>
#endif
#ifdef CONSUMER_JPEG
#include <penstock/codec/jpeg.hpp>
#endif
#ifdef CONSUMER_PNG
#include <penstock/codec/png.hpp>
#endif
#ifdef CONSUMER_WEBP
#include <penstock/codec/webp.hpp>
#endif
#ifdef CONSUMER_VIDEO
#include <penstock/codec/video.hpp>
#endif
#ifdef CONSUMER_GIF
#include <penstock/codec/gif.hpp>
#endif
#ifdef CONSUMER_AVIF
#include <penstock/codec/avif.hpp>
#endif
#ifdef CONSUMER_TIFF
#include <penstock/codec/tiff.hpp>
#endif
#ifdef CONSUMER_UTF8PROC
#include <penstock/codec/unicode_normalizer.hpp>
#endif
#ifdef CONSUMER_AUDIO
#include <penstock/codec/audio.hpp>
#endif
#ifdef CONSUMER_RESAMPLE
#include <penstock/audio/resample.hpp>
#endif
#ifdef CONSUMER_PCRE2
#include <penstock/codec/bpe.hpp>
#endif
#ifdef CONSUMER_SENTENCEPIECE
#include <penstock/codec/sentencepiece.hpp>
#endif
#ifdef CONSUMER_TFRECORD
#include <penstock/source/tfrecord.hpp>
#endif
#ifdef CONSUMER_CACHE
#include <penstock/storage/cached.hpp>
#include <penstock/storage/memory_files.hpp>
#endif
#ifdef CONSUMER_CUDA
#include <penstock/device/cuda.hpp>
#endif
#ifdef CONSUMER_NVJPEG
#include <penstock/device/image/nvjpeg.hpp>
#endif
#ifdef CONSUMER_CUFILE
#include <penstock/device/cufile.hpp>
#include <penstock/source/raw_ranges.hpp>
#endif
#ifdef CONSUMER_FMT
#include <penstock/integration/fmt.hpp>
#endif
#ifdef CONSUMER_RANGE_V3
#include <penstock/integration/range_v3.hpp>
#endif
#ifdef CONSUMER_ASIO
#include <penstock/integration/asio.hpp>
#include <penstock/integration/serve_rank_metrics.hpp>
#endif
#ifdef CONSUMER_MPI
#include <penstock/integration/mpi.hpp>
#endif
#ifdef CONSUMER_LOCKFREE
#include <penstock/run/lockfree.hpp>
#endif
#ifdef CONSUMER_URING
#include <penstock/storage/uring_file.hpp>
#endif
#ifdef CONSUMER_ARROW
#include <penstock/source/parquet.hpp>
#include <penstock/storage/arrow_files.hpp>
#endif
#ifdef CONSUMER_LIBTORCH
#include <penstock/integration/libtorch.hpp>
#endif
#ifdef CONSUMER_HTTP
#include <penstock/storage/http.hpp>
#endif
#ifdef CONSUMER_CRYPTO
#include <penstock/storage/checked.hpp>
#include <penstock/storage/decrypting.hpp>
#include <penstock/storage/ed25519.hpp>
#include <penstock/storage/memory_files.hpp>
#include <penstock/storage/sha256_list.hpp>
#endif
#ifdef CONSUMER_S3
#include <penstock/storage/s3.hpp>
#include <penstock/storage/s3/aws_signature.hpp>
#include <penstock/storage/s3/credential_chain.hpp>
#include <penstock/storage/s3/list_result.hpp>
#endif

#include <cstddef>
#include <iostream>
#include <string_view>
#include <vector>

namespace ps = penstock;

namespace {

int faults = 0;

/// Every format refuses plain text, and its error names the format.
template <class Read>
void refuses([[maybe_unused]] std::string_view name, [[maybe_unused]] Read&& read) {
  try {
    read(ps::bytes_of("these bytes are of no format at all"));
    std::cout << name << " took bytes that are not its own\n";
    ++faults;
  } catch (const ps::error& e) {
    std::cout << name << ": " << e.what() << '\n';
  }
}

template <class Unpacker>
void unpacker_refuses() {
  refuses(Unpacker::unpacker_format, [](ps::bytes_view bytes) {
    typename Unpacker::stream stream;
    stream.begin();
    std::vector<std::byte> room(1000);
    for (int i = 0; i < 10; ++i) bytes = bytes.subspan(stream.step(bytes, room, true).taken);
  });
}

template <class Codec>
void codec_refuses() {
  refuses(Codec::codec_name, [](ps::bytes_view bytes) {
    typename Codec::scratch scratch;
    (void)Codec{}.decode(bytes, scratch).finish();
  });
}

}  // namespace

int main() {
  std::cout << "penstock " << ps::version << '\n';
#ifdef CONSUMER_COMPILED
  refuses("compiled", [](ps::bytes_view) { throw ps::error(ps::errc::format, "the library made this"); });
#endif
#ifdef CONSUMER_ZSTD
  codec_refuses<ps::zstd>();
  unpacker_refuses<ps::unpack_zstd>();
#endif
#ifdef CONSUMER_GZIP
  codec_refuses<ps::gzip>();
#endif
#ifdef CONSUMER_ZLIB
  unpacker_refuses<ps::unpack_gzip>();
#endif
#ifdef CONSUMER_LZ4
  codec_refuses<ps::lz4>();
  unpacker_refuses<ps::unpack_lz4>();
#endif
#ifdef CONSUMER_BZ2
  unpacker_refuses<ps::unpack_bzip2>();
#endif
#ifdef CONSUMER_XZ
  unpacker_refuses<ps::unpack_xz>();
#endif
#ifdef CONSUMER_BROTLI
  unpacker_refuses<ps::unpack_brotli>();
#endif
#ifdef CONSUMER_SNAPPY
  unpacker_refuses<ps::unpack_snappy>();
#endif
#ifdef CONSUMER_SIMDJSON
  refuses("simdjson", [](ps::bytes_view bytes) {
    ps::json_field<"a", int>::scratch scratch;
    (void)ps::json_field<"a", int>{}.decode(bytes, scratch);
  });
#endif
#ifdef CONSUMER_JSON
  refuses("json", [](ps::bytes_view bytes) {
    ps::no_scratch scratch;
    (void)ps::json{}.decode(bytes, scratch);
  });
#endif
#ifdef CONSUMER_YAML
  refuses("yaml", [](ps::bytes_view) { (void)ps::detail::yaml_document::read(ps::bytes_of("a: [")); });
#endif
#ifdef CONSUMER_JPEG
  codec_refuses<ps::jpeg>();
#endif
#ifdef CONSUMER_PNG
  codec_refuses<ps::png>();
#endif
#ifdef CONSUMER_WEBP
  codec_refuses<ps::webp>();
#endif
#ifdef CONSUMER_VIDEO
  codec_refuses<ps::video>();
#endif
#ifdef CONSUMER_GIF
  codec_refuses<ps::gif>();
#endif
#ifdef CONSUMER_AVIF
  codec_refuses<ps::avif>();
#endif
#ifdef CONSUMER_TIFF
  codec_refuses<ps::tiff>();
#endif
#ifdef CONSUMER_UTF8PROC
  refuses("utf8proc", [](ps::bytes_view) { (void)ps::unicode_normalizer(ps::unicode_form::nfc)("\xff"); });
#endif
#ifdef CONSUMER_AUDIO
  codec_refuses<ps::audio>();
#endif
#ifdef CONSUMER_RESAMPLE
  refuses("resample", [](ps::bytes_view) { (void)ps::resample(0); });
#endif
#ifdef CONSUMER_PCRE2
  refuses("pcre2", [](ps::bytes_view bytes) {
    (void)ps::bpe::from_str(ps::text_of(bytes));
    (void)ps::detail::token_pattern("(");
  });
#endif
#ifdef CONSUMER_SENTENCEPIECE
  refuses("sentencepiece", [](ps::bytes_view) { (void)ps::spm::from_file("/no such file"); });
#endif
#ifdef CONSUMER_TFRECORD
  refuses("tfrecord", [](ps::bytes_view) { (void)ps::tfrecord("/no such file"); });
#endif
#ifdef CONSUMER_CACHE
  refuses("cache", [](ps::bytes_view) {
    (void)ps::cached(ps::memory_files(), ps::disk_cache("/dev/null", std::uint64_t{1} << 30)).connect();
  });
#endif
#ifdef CONSUMER_NVJPEG
  refuses("nvjpeg", [](ps::bytes_view) { (void)ps::nvjpeg(ps::center_crop(8)).connect(1000); });
#endif
#ifdef CONSUMER_CUFILE
  refuses("cufile", [](ps::bytes_view) {
    (void)ps::cufile(ps::raw_ranges<float>("/no such file", ps::extents(1))).connect(0);
  });
#endif
#ifdef CONSUMER_FMT
  if (fmt::format("{}", ps::position{3, 4}) != "3:4") ++faults;
#endif
#ifdef CONSUMER_ASIO
  refuses("asio", [](ps::bytes_view) { (void)ps::metrics_server(nullptr, {.address = "nowhere"}, {}); });
#endif
#ifdef CONSUMER_MPI
  refuses("mpi", [](ps::bytes_view) { ps::mpi::barrier(MPI_COMM_WORLD); });  // it was not initialised
#endif
#ifdef CONSUMER_URING
  refuses("uring", [](ps::bytes_view) { (void)ps::uring_file({"/no such file"}).connect().size(0); });
#endif
#ifdef CONSUMER_ARROW
  refuses("arrow", [](ps::bytes_view) { (void)ps::arrow_files(nullptr, "a"); });
  refuses("arrow", [](ps::bytes_view) { (void)ps::parquet("/no such file"); });
#endif
#ifdef CONSUMER_LIBTORCH
  refuses("libtorch", [](ps::bytes_view) {
    if (ps::as_tensor(std::span<const float>()).numel() == 0)
      throw ps::error(ps::errc::format, "a tensor without values");
  });
#endif
#ifdef CONSUMER_HTTP
  refuses("http", [](ps::bytes_view) {
    (void)ps::http({"https://127.0.0.1:1/a"}, {.ca_file = "/no such file"}).connect();
  });
#endif
#ifdef CONSUMER_CRYPTO
  refuses("crypto", [](ps::bytes_view bytes) {
    const ps::encryption_key key(ps::bytes_of("take the bytes from your vault!!"));
    (void)ps::decrypting(ps::memory_files().add("a", bytes), key).connect().size(0);
  });
  refuses("crypto", [](ps::bytes_view bytes) {
    const auto files = ps::memory_files().add("a", bytes);
    std::byte first{};
    ps::checked(files, ps::sha256_list({{"a", ps::sha256_hash{}}})).connect().read(0, 0, {&first, 1});
  });
  refuses("crypto", [](ps::bytes_view bytes) { (void)ps::verifying_key::from_pem(ps::text_of(bytes)); });
#endif
#ifdef CONSUMER_S3
  refuses("s3", [](ps::bytes_view bytes) { (void)ps::detail::s3::read_list_page(ps::text_of(bytes)); });
  refuses("s3", [](ps::bytes_view bytes) {
    (void)ps::detail::s3::read_json_credentials(ps::text_of(bytes), "a test");
  });
  refuses("s3", [](ps::bytes_view) {
    (void)ps::s3({"bucket/a"}, {.connection = {.ca_file = "/no such file"}}).connect();
  });
  if (ps::detail::s3::payload_hash("") != ps::detail::s3::empty_payload) ++faults;
#endif
  return faults;
}

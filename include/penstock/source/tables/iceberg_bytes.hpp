// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<parquet/arrow/reader.h>)
#error "penstock/source/tables/iceberg_bytes.hpp needs Arrow C++ with Parquet: link penstock::arrow"
#endif

#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/reads/arrow_errors.hpp>

#ifdef __GNUC__
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif
#include <arrow/result.h>
#include <arrow/util/compression.h>
#ifdef __GNUC__
#pragma GCC diagnostic pop
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1::detail {

/// The most bytes that a file of a table's metadata may have.
inline constexpr std::uint64_t max_iceberg_bytes = 512_MiB;

/// Unpacks "deflate" and "zstandard", as Avro has them, and "gzip"; an `avro_unpacker`.
inline void iceberg_unpack(std::string_view codec, bytes_view packed, std::uint64_t limit,
                           std::vector<std::byte>& into) {
  arrow::util::GZipCodecOptions zlib;
  zlib.gzip_format = codec == "gzip" ? arrow::util::GZipFormat::GZIP : arrow::util::GZipFormat::DEFLATE;
  if (codec != "deflate" && codec != "zstandard" && codec != "gzip")
    throw error(errc::argument,
                {"the metadata are packed with '", codec, "'; null, deflate and zstandard are read"});
  const auto work = [&]() -> arrow::Status {
    std::unique_ptr<arrow::util::Codec> made;
    if (codec == "zstandard") {
      ARROW_ASSIGN_OR_RAISE(made, arrow::util::Codec::Create(arrow::Compression::ZSTD));
    } else {
      ARROW_ASSIGN_OR_RAISE(made, arrow::util::Codec::Create(arrow::Compression::GZIP, zlib));
    }
    ARROW_ASSIGN_OR_RAISE(const auto unpacker, made->MakeDecompressor());
    constexpr std::uint64_t least = 4096, likely = 4;
    into.resize(to_size(std::min(limit, std::max(least, likely * packed.size()))));
    std::size_t in = 0, out = 0;
    while (!unpacker->IsFinished()) {
      ARROW_ASSIGN_OR_RAISE(const auto done,
                            unpacker->Decompress(static_cast<std::int64_t>(packed.size() - in),
                                                 reinterpret_cast<const std::uint8_t*>(packed.data()) + in,
                                                 static_cast<std::int64_t>(into.size() - out),
                                                 reinterpret_cast<std::uint8_t*>(into.data()) + out));
      in += static_cast<std::size_t>(done.bytes_read);
      out += static_cast<std::size_t>(done.bytes_written);
      if (unpacker->IsFinished()) break;
      if (out == into.size() || done.need_more_output) {
        if (into.size() == limit)
          throw error(errc::limit, {"the metadata unpack to more than ", limit, " bytes"});
        into.resize(to_size(std::min<std::uint64_t>(limit, 2 * into.size())));
      } else if (done.bytes_read == 0 && done.bytes_written == 0) {
        return arrow::Status::IOError("they are cut off");
      }
    }
    into.resize(out);
    return arrow::Status::OK();
  };
  const arrow::Status done = work();
  if (!done.ok())
    throw error(errc::format, {"the metadata cannot be unpacked: ", arrow_message(done.message())});
}

}  // namespace penstock::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<zlib.h>)
#error "penstock/codec/detail/inflate_stream.hpp needs zlib: link penstock::zlib"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <zlib.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

namespace penstock::inline v0_1::detail {

/// A gzip file, whose members are read one after another, or a zlib stream, in pieces; see `unpacker`.
template <bool Gzip>
class inflate_stream {
 public:
  void begin() {
    if (!state_) {
      auto made = std::make_unique<z_stream>();
      if (::inflateInit2(made.get(), Gzip ? 15 + 16 : 15) != Z_OK) throw std::bad_alloc();
      state_.reset(made.release());
    }
    ::inflateReset(state_.get());
    between_ = true;
    first_ = true;
  }

  unpack_step step(bytes_view in, mutable_bytes out, bool) {
    if (between_ && !first_) {  // zeros after the last member are padding, as for gzip itself
      const auto end = Gzip
                           ? std::find_if(in.begin(), in.end(), [](std::byte b) { return b != std::byte{0}; })
                           : in.begin();
      const auto zeros = static_cast<std::size_t>(end - in.begin());
      if (zeros != 0 || in.empty()) return {zeros, 0, true};
      if (!Gzip || in.front() != std::byte{0x1f})
        throw error(errc::format, {"there is something after the ", last_name});
    }
    first_ = false;
    z_stream& z = *state_;
    const std::size_t offered = std::min(in.size(), maximum), room = std::min(out.size(), maximum);
    z.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(in.data()));  // zlib does not write there
    z.avail_in = static_cast<uInt>(offered);
    z.next_out = reinterpret_cast<Bytef*>(out.data());
    z.avail_out = static_cast<uInt>(room);
    const int result = ::inflate(&z, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) throw std::bad_alloc();
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      const std::string_view what = result == Z_NEED_DICT ? "it needs a dictionary"
                                    : z.msg == nullptr    ? "the data is damaged"
                                                          : z.msg;
      if (what == "incorrect data check")
        throw error(errc::checksum, {"the content does not match the ", name, "'s checksum"});
      throw error(errc::format, {"the ", name, " is damaged: ", what});
    }
    between_ = result == Z_STREAM_END;
    if (between_) ::inflateReset(&z);
    return {offered - z.avail_in, room - z.avail_out, between_};
  }

 private:
  static constexpr std::size_t maximum = std::numeric_limits<uInt>::max();
  static constexpr std::string_view name = Gzip ? "gzip member" : "zlib stream";
  static constexpr std::string_view last_name = Gzip ? "last gzip member" : "zlib stream";
  std::unique_ptr<z_stream, ended_by<inflateEnd>> state_;
  bool between_ = true;
  bool first_ = true;
};

}  // namespace penstock::inline v0_1::detail

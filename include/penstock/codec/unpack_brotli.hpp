// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<brotli/decode.h>)
#error "penstock/codec/unpack_brotli.hpp needs brotli: link penstock::brotli"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <brotli/decode.h>

#include <memory>
#include <new>

namespace penstock::inline v0_1 {

/// Brotli for sources that know from elsewhere how a file is packed: an unpacker for `mds`. A brotli stream
/// has no mark at its beginning, so others cannot recognise it.
///
/// In: pieces of one brotli stream. Out: pieces of the content.
/// Cost: libbrotlidec's own; its memory, up to 16 MiB and a little, is given back after each file. Threads:
/// one at a time per stream.
/// Throws `errc::format` for damage and for bytes behind the stream. Brotli has no checksum: damage that
/// makes another valid stream goes unnoticed here.
/// Source: RFC 7932.
///
///     auto samples = mds<unpack_brotli>("packed", {.folder = "cache"});
struct unpack_brotli {
  static constexpr std::string_view unpacker_format = "brotli";

  class stream {
   public:
    void begin() {
      state_.reset(::BrotliDecoderCreateInstance(nullptr, nullptr, nullptr));
      if (!state_) throw std::bad_alloc();
      whole_ = false;
    }

    unpack_step step(bytes_view in, mutable_bytes out, bool) {
      if (whole_) {
        if (!in.empty()) throw error(errc::format, "there is something after the brotli stream");
        return {0, 0, true};
      }
      std::size_t left = in.size(), room = out.size();
      const auto* packed = reinterpret_cast<const std::uint8_t*>(in.data());
      auto* to = reinterpret_cast<std::uint8_t*>(out.data());
      const auto result = ::BrotliDecoderDecompressStream(state_.get(), &left, &packed, &room, &to, nullptr);
      if (result == BROTLI_DECODER_RESULT_ERROR) fail();
      whole_ = result == BROTLI_DECODER_RESULT_SUCCESS;
      if (whole_) state_.reset();  // the library cannot restart
      return {in.size() - left, out.size() - room, whole_};
    }

   private:
    [[noreturn]] void fail() const {
      const BrotliDecoderErrorCode code = ::BrotliDecoderGetErrorCode(state_.get());
      // the codes of failed allocations
      if (code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES &&
          code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES)
        throw std::bad_alloc();
      throw error(errc::format, {"the brotli stream is damaged: ", ::BrotliDecoderErrorString(code)});
    }

    std::unique_ptr<BrotliDecoderState, detail::freed_by<BrotliDecoderDestroyInstance>> state_;
    bool whole_ = true;
  };
};

}  // namespace penstock::inline v0_1

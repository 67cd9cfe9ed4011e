// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<snappy.h>)
#error "penstock/codec/unpack_snappy.hpp needs snappy: link penstock::snappy"
#endif

#include <penstock/codec/concepts.hpp>
#include <penstock/core/error.hpp>

#include <snappy.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace penstock::inline v0_1 {

/// Snappy's raw format for sources that know from elsewhere how a file is packed: an unpacker for `mds`. The
/// format has no mark at its beginning, so others cannot recognise it.
///
/// In: pieces of a file that is one block. Out: pieces of the content.
/// Cost: snappy's own. A block cannot be unpacked in pieces, so a stream keeps the file, packed and unpacked;
/// the memory is kept from file to file. Threads: one at a time per stream.
/// Throws `errc::format` for damage, and for a size that the block cannot have. Snappy has no checksum:
/// damage that makes another valid block goes unnoticed here.
/// Source: snappy, format_description.txt.
///
///     auto samples = mds<unpack_snappy>("packed", {.folder = "cache"});
struct unpack_snappy {
  static constexpr std::string_view unpacker_format = "snappy";

  class stream {
   public:
    void begin() noexcept {
      packed_.clear();
      shown_ = 0;
      unpacked_ = false;
    }

    unpack_step step(bytes_view in, mutable_bytes out, bool last) {
      unpack_step done;
      if (!unpacked_) {
        packed_.insert(packed_.end(), in.begin(), in.end());
        done.taken = in.size();
        if (!last) return done;
        unpack();
      } else if (!in.empty()) {
        throw error(errc::format, "there is something after the snappy block");
      }
      done.made = std::min(out.size(), content_.size() - shown_);
      if (done.made != 0) std::memcpy(out.data(), content_.data() + shown_, done.made);
      shown_ += done.made;
      done.whole = shown_ == content_.size();
      return done;
    }

   private:
    void unpack() {
      constexpr std::size_t max_expansion = 64;  // three bytes of a copy yield at most 64
      const auto* const packed = reinterpret_cast<const char*>(packed_.data());
      std::size_t size = 0;
      if (!::snappy::GetUncompressedLength(packed, packed_.size(), &size) ||
          size / max_expansion > packed_.size())
        throw error(errc::format, "the file is not a snappy block, or it is cut off");
      content_.resize_for_overwrite(size);
      char nothing = 0;
      if (!::snappy::RawUncompress(packed, packed_.size(),
                                   size == 0 ? &nothing : reinterpret_cast<char*>(content_.data())))
        throw error(errc::format, "the snappy block is damaged or cut off");
      unpacked_ = true;
    }

    std::vector<std::byte> packed_;
    buffer content_;
    std::size_t shown_ = 0;
    bool unpacked_ = false;
  };
};

}  // namespace penstock::inline v0_1

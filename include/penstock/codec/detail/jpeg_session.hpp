// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<jpeglib.h>)
#error "penstock/codec/jpeg.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif

#include <penstock/base/owned.hpp>
#include <penstock/core/bytes.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdio>  // before jpeglib.h, which needs it
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include <jerror.h>
#include <jpeglib.h>

#if !defined(LIBJPEG_TURBO_VERSION_NUMBER) || LIBJPEG_TURBO_VERSION_NUMBER < 2001000
#error "penstock/codec/jpeg.hpp needs libjpeg-turbo 2.1 or later, which decodes parts of an image"
#endif

namespace penstock::inline v0_1::detail {

/// Memory that is handed out piece by piece, given back all at once, and kept for the next image.
class jpeg_arena {
 public:
  static constexpr std::size_t alignment = 64;  // at least what the library's own SIMD code wants

  /// A null pointer if an image would get more than `limit`, whatever came before it; throws std::bad_alloc.
  void* take(std::size_t size, std::uint64_t limit) {
    if (size > limit || size > std::numeric_limits<std::size_t>::max() / 2) return nullptr;
    size = (size + alignment - 1) / alignment * alignment;
    if (given_ + size > limit) return nullptr;
    if (count_ == 0 || chunks_[count_ - 1].size() - used_ < size) add_chunk(size, limit - given_);
    std::byte* const at = chunks_[count_ - 1].data() + used_;
    used_ += size;
    given_ += size;
    return at;
  }

  /// Several chunks become one, the next time. An image that failed leaves no trace.
  void reset(bool failed) noexcept {
    if (count_ > 1) {
      if (!failed) wanted_ = to_size(given_);
      for (const std::size_t kept = failed ? 1 : 0; count_ > kept; --count_) chunks_[count_ - 1] = buffer();
      held_ = count_ == 0 ? 0 : chunks_[0].size();
    }
    used_ = 0;
    given_ = 0;
  }
  [[nodiscard]] std::size_t held() const noexcept { return held_; }

 private:
  static constexpr std::size_t smallest = std::size_t{64} << 10;

  /// Doubles what is held, but not beyond what may still be given; if there is no memory for that, less.
  void add_chunk(std::size_t size, std::uint64_t left) {
    if (count_ == chunks_.size()) throw std::bad_alloc();
    const std::size_t least = std::max(size, smallest);
    const std::size_t wanted =
        std::max({least, wanted_, static_cast<std::size_t>(std::min<std::uint64_t>(held_, left))});
    buffer& chunk = chunks_[count_];
    try {
      chunk.resize_for_overwrite(wanted);
    } catch (const std::bad_alloc&) {
      if (wanted == least) throw;
      wanted_ = 0;
      chunk.resize_for_overwrite(least);
    }
    held_ += chunk.size();
    ++count_;
    used_ = 0;
  }

  std::array<buffer, 48> chunks_;
  std::size_t count_ = 0, used_ = 0, held_ = 0, wanted_ = 0;
  std::uint64_t given_ = 0;
};

/// An array of the library's that it may not want in memory all at once; here it always is.
template <class Rows>
struct jpeg_rows {
  Rows rows;
  JDIMENSION per_row, count, maximum;
  bool zeroed;
  jpeg_rows* next;
};

/// What a decompressor and a compressor share: the library's errors, without an exception that passes through
/// it, and its memory, kept from image to image. Its address must not change.
///
/// The library is called by `attempt` only. It leaves by longjmp, so that no frame in between may have a
/// destructor: callbacks catch what they throw.
class jpeg_session : unmovable {
 public:
  enum class trouble : std::uint8_t {
    none,
    library,
    memory,
    too_much_memory,
    too_big,
    truncated,
    scans,
    arithmetic,
    version
  };

  /// In bytes, from image to image.
  [[nodiscard]] std::size_t memory_held() const noexcept { return pools_[0].held() + pools_[1].held(); }

  std::uint64_t memory_limit = std::uint64_t{1} << 30;
  std::uint64_t damages = 0;  ///< warnings that mean damage, since the count was set to 0
  bool recover = false;       ///< damage is counted, otherwise an error
  bool ended = false;         ///< the file ended too early

 protected:
  /// Calls `f(self)`; false if the library gave up, for a reason that `fail` throws.
  template <class Self>
  [[nodiscard]] bool attempt(void (*f)(Self&), Self& self) {
    why_ = trouble::none;
    if (setjmp(jump_) != 0) return false;
    f(self);
    return true;
  }
  [[noreturn]] void leave(trouble why) {
    why_ = why;
    std::longjmp(jump_, 1);
  }
  [[noreturn]] void fail(std::uint64_t limit_of_scans = 0) const {
    switch (why_) {
      case trouble::memory:
        throw std::bad_alloc();
      case trouble::too_much_memory:
        throw error(errc::limit,
                    {"the jpeg image needs more than ", memory_limit,
                     " bytes of memory; to allow it, set .limits = {.bytes = ...} of the codec"});
      case trouble::too_big:
        throw error(errc::limit, {"the jpeg image is wider or higher than ", JPEG_MAX_DIMENSION,
                                  " pixels, the most that libjpeg decodes"});
      case trouble::truncated:
        throw error(errc::format, "the jpeg file is truncated");
      case trouble::scans:
        throw error(errc::limit, {"the jpeg file has more than ", limit_of_scans,
                                  " scans; to allow it, set .scans of the codec"});
      case trouble::arithmetic:
        throw error(errc::format,
                    "the jpeg file is arithmetic-coded, and libjpeg was built without arithmetic coding");
      case trouble::version:
        throw error(errc::argument, "jpeg: the program runs with another libjpeg than it was built with");
      default:
        throw error(errc::format, {"the jpeg file is damaged: ", text_.data()});
    }
  }

  [[nodiscard]] trouble why() const noexcept { return why_; }
  [[nodiscard]] const char* reason() const noexcept { return text_.data(); }

  /// Sets the error handlers; before the library creates its object.
  jpeg_error_mgr* handlers() {
    jpeg_std_error(&errors_);
    errors_.error_exit = [](j_common_ptr c) {
      jpeg_session& s = of(c);
      (*c->err->format_message)(c, s.text_.data());
      s.leave(trouble_of(c->err->msg_code));
    };
    errors_.emit_message = [](j_common_ptr c, int level) {
      if (level < 0) of(c).warned(c);
    };
    errors_.output_message = [](j_common_ptr) {};
    return &errors_;
  }
  /// Replaces the library's memory manager, which asks the system for memory for each image. Its own remains
  /// for what the library allocated when it created its object. Source: libjpeg-turbo 2.1.5, jmemmgr.c and
  /// libjpeg.txt, "Memory management".
  static void replace_memory(jpeg_memory_mgr& m) {
    m.alloc_small = [](j_common_ptr c, int pool, std::size_t size) { return of(c).take(pool, size); };
    m.alloc_large = m.alloc_small;
    m.alloc_sarray = [](j_common_ptr c, int pool, JDIMENSION width, JDIMENSION rows) {
      return of(c).array<JSAMPARRAY>(pool, width, rows);
    };
    m.alloc_barray = [](j_common_ptr c, int pool, JDIMENSION width, JDIMENSION rows) {
      return of(c).array<JBLOCKARRAY>(pool, width, rows);
    };
    m.request_virt_sarray = [](j_common_ptr c, int pool, boolean zero, JDIMENSION width, JDIMENSION rows,
                               JDIMENSION maximum) {
      return reinterpret_cast<jvirt_sarray_ptr>(
          of(c).request(of(c).samples_, pool, zero != FALSE, width, rows, maximum));
    };
    m.request_virt_barray = [](j_common_ptr c, int pool, boolean zero, JDIMENSION width, JDIMENSION rows,
                               JDIMENSION maximum) {
      return reinterpret_cast<jvirt_barray_ptr>(
          of(c).request(of(c).blocks_, pool, zero != FALSE, width, rows, maximum));
    };
    m.realize_virt_arrays = [](j_common_ptr c) {
      of(c).realize(of(c).samples_);
      of(c).realize(of(c).blocks_);
    };
    m.access_virt_sarray = [](j_common_ptr c, jvirt_sarray_ptr p, JDIMENSION first, JDIMENSION n, boolean) {
      return access(c, *reinterpret_cast<jpeg_rows<JSAMPARRAY>*>(p), first, n);
    };
    m.access_virt_barray = [](j_common_ptr c, jvirt_barray_ptr p, JDIMENSION first, JDIMENSION n, boolean) {
      return access(c, *reinterpret_cast<jpeg_rows<JBLOCKARRAY>*>(p), first, n);
    };
    m.free_pool = [](j_common_ptr c, int pool) {
      if (pool == JPOOL_IMAGE) of(c).forget_image();
    };
  }
  /// Prepares a decompressor or a compressor of the library's, which `make` creates; false if it gave up.
  template <class Info, class Self>
  [[nodiscard]] bool make_info(Info& info, void (*make)(Self&), Self& self) {
    info = Info{};
    info.err = handlers();
    info.client_data = this;
    if (!attempt(make, self)) return false;
    replace_memory(*info.mem);
    return true;
  }
  /// The tables of one file must not serve the next.
  template <class Info>
  void forget_tables(Info& info) noexcept {
    for (auto& table : info.quant_tbl_ptrs) table = nullptr;
    for (auto& table : info.dc_huff_tbl_ptrs) table = nullptr;
    for (auto& table : info.ac_huff_tbl_ptrs) table = nullptr;
    pools_[JPOOL_PERMANENT].reset(why_ != trouble::none);
  }
  void forget_image() noexcept {
    samples_ = nullptr;
    blocks_ = nullptr;
    pools_[JPOOL_IMAGE].reset(why_ != trouble::none);
  }
  static jpeg_session& of(j_common_ptr c) noexcept { return *static_cast<jpeg_session*>(c->client_data); }
  template <class Info>
  static jpeg_session& of(const Info* c) noexcept {
    return *static_cast<jpeg_session*>(c->client_data);
  }

 private:
  static trouble trouble_of(int code) noexcept {
    switch (code) {
      case JERR_OUT_OF_MEMORY:
        return trouble::memory;
      case JERR_IMAGE_TOO_BIG:
        return trouble::too_big;
      case JERR_ARITH_NOTIMPL:
        return trouble::arithmetic;
      case JERR_BAD_LIB_VERSION:
      case JERR_BAD_STRUCT_SIZE:
        return trouble::version;
      default:
        return trouble::library;
    }
  }
  /// Warnings that say nothing about the pixels.
  static bool harmless(int code) noexcept {
    switch (code) {
      case JWRN_ADOBE_XFORM:
      case JWRN_EXTRANEOUS_DATA:
      case JWRN_JFIF_MAJOR:
      case JWRN_NOT_SEQUENTIAL:
      case JWRN_TOO_MUCH_DATA:
      case JWRN_BOGUS_ICC:
        return true;
      default:
        return false;
    }
  }
  void warned(j_common_ptr c) {
    if (harmless(c->err->msg_code)) return;
    ++damages;
    if (recover) return;
    (*c->err->format_message)(c, text_.data());
    leave(ended ? trouble::truncated : trouble::library);
  }

  void* take(int pool, std::size_t size) {
    void* at = nullptr;
    bool out_of_memory = false;
    try {
      at = pools_[pool == JPOOL_PERMANENT ? JPOOL_PERMANENT : JPOOL_IMAGE].take(size, memory_limit);
    } catch (...) {
      out_of_memory = true;
    }
    if (out_of_memory) leave(trouble::memory);
    if (at == nullptr) leave(trouble::too_much_memory);
    return at;
  }
  /// Rows one after another, each aligned, and as wide as the SIMD code may write.
  template <class Rows>
  Rows array(int pool, JDIMENSION width, JDIMENSION rows) {
    using element = std::remove_pointer_t<std::remove_pointer_t<Rows>>;
    constexpr std::size_t step = jpeg_arena::alignment;
    const std::uint64_t row_bytes = (std::uint64_t{width} * sizeof(element) + step - 1) / step * step;
    if (rows != 0 && row_bytes > memory_limit / rows) leave(trouble::too_much_memory);
    const auto index = static_cast<Rows>(take(pool, rows * sizeof(element*)));
    auto* at = static_cast<std::byte*>(take(pool, to_size(row_bytes * rows) + step));
    for (JDIMENSION y = 0; y < rows; ++y, at += row_bytes) index[y] = reinterpret_cast<element*>(at);
    return index;
  }
  template <class Rows>
  jpeg_rows<Rows>* request(jpeg_rows<Rows>*& list, int pool, bool zero, JDIMENSION width, JDIMENSION rows,
                           JDIMENSION maximum) {
    auto* const made = static_cast<jpeg_rows<Rows>*>(take(pool, sizeof(jpeg_rows<Rows>)));
    list = new (made) jpeg_rows<Rows>{nullptr, width, rows, maximum, zero, list};
    return made;
  }
  template <class Rows>
  void realize(jpeg_rows<Rows>* list) {
    using element = std::remove_pointer_t<std::remove_pointer_t<Rows>>;
    for (; list != nullptr; list = list->next) {
      if (list->rows != nullptr) continue;
      list->rows = array<Rows>(JPOOL_IMAGE, list->per_row, list->count);
      if (list->zeroed)
        for (JDIMENSION y = 0; y < list->count; ++y)
          std::memset(static_cast<void*>(list->rows[y]), 0, list->per_row * sizeof(element));
    }
  }
  template <class Rows>
  static Rows access(j_common_ptr c, jpeg_rows<Rows>& a, JDIMENSION first, JDIMENSION n) {
    if (a.rows == nullptr || n > a.maximum || first > a.count || a.count - first < n) {
      c->err->msg_code = JERR_BAD_VIRTUAL_ACCESS;
      (*c->err->error_exit)(c);
    }
    return a.rows + first;
  }

  jpeg_error_mgr errors_{};
  std::jmp_buf jump_{};
  std::array<jpeg_arena, 2> pools_;
  jpeg_rows<JSAMPARRAY>* samples_ = nullptr;
  jpeg_rows<JBLOCKARRAY>* blocks_ = nullptr;
  std::array<char, JMSG_LENGTH_MAX> text_{};
  trouble why_ = trouble::none;
};

}  // namespace penstock::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Penstock 0.1.0, the component jpeg. It needs penstock.hpp beside it.
// Made by tools/amalgamate.py from include/penstock; do not edit.
#pragma once

#if !__has_include(<jpeglib.h>)
#error "penstock/codec/jpeg.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif
#if !__has_include(<jpeglib.h>)
#error "penstock_jpeg.hpp needs libjpeg-turbo: link penstock::jpeg"
#endif

#include "penstock.hpp"

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <jerror.h>
#include <jpeglib.h>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <type_traits>

// ---- penstock/codec/detail/jpeg_session.hpp

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
class jpeg_session {
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

  jpeg_session() = default;
  jpeg_session(const jpeg_session&) = delete;
  jpeg_session& operator=(const jpeg_session&) = delete;

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
  void forget_image() noexcept {
    samples_ = nullptr;
    blocks_ = nullptr;
    pools_[JPOOL_IMAGE].reset(why_ != trouble::none);
  }
  void forget_tables() noexcept { pools_[JPOOL_PERMANENT].reset(why_ != trouble::none); }
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

// ---- penstock/codec/detail/jpeg_reader.hpp

namespace penstock::inline v0_1::detail {

/// Throws `errc::format` for bytes that are no JPEG file, and for kinds of JPEG that are not decoded. Reads
/// the markers up to the frame header. Source: ITU-T T.81, B.1 and table B.1.
inline void check_jpeg_kind(bytes_view file) {
  const auto at = [&](std::size_t i) { return std::to_integer<unsigned>(file[i]); };
  if (file.size() < 2 || at(0) != 0xff || at(1) != 0xd8)
    throw error(errc::format, file.empty() ? "there are no bytes where a jpeg file should be"
                                           : "these bytes are no jpeg file: it begins with 0xff 0xd8");
  std::size_t i = 2;
  for (;;) {
    while (i < file.size() && at(i) != 0xff) ++i;
    while (i < file.size() && at(i) == 0xff) ++i;
    if (i + 4 > file.size()) return;  // the library finds out why
    const unsigned marker = at(i++);
    if (marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) continue;
    const std::size_t length = at(i) << 8 | at(i + 1);
    if (marker == 0xd9 || marker == 0xda || length < 2) return;
    if (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc) {
      const unsigned bits = at(i + 2);
      const unsigned kind = marker & 3;
      if (kind == 3)
        throw error(errc::format,
                    {"this is a lossless jpeg file of ", bits, " bits per sample (frame header 0xff 0x",
                     marker == 0xc3 ? "c3" : "c7 to 0xcf", "); the codec decodes the lossy kinds"});
      if ((marker & 4) != 0)
        throw error(errc::format, "this is a hierarchical jpeg file; the codec decodes one frame only");
      if (bits != 8)
        throw error(errc::format, {"this jpeg file has ", bits, " bits per sample; the codec decodes 8"});
      return;
    }
    i += length;
  }
}

/// One decompressor, created on first use and kept.
class jpeg_reader : public jpeg_session {
 public:
  jpeg_reader() = default;
  ~jpeg_reader() {
    if (created_) jpeg_destroy_decompress(&info_);
  }

  std::uint32_t scans = 100;

  /// Reads the header of a file.
  void open(bytes_view file) {
    check_jpeg_kind(file);
    create();
    close();
    file_ = file;
    damages = 0;
    ended = false;
    turn_ = {};
    exif_seen_ = false;
    source_.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
    source_.bytes_in_buffer = file.size();
    header_ = true;
    if (!attempt(&read_header, *this)) give_up();
    if (info_.data_precision != 8) {
      close();
      throw error(errc::format,
                  {"this jpeg file has ", info_.data_precision, " bits per sample; the codec decodes 8"});
    }
    header_ = false;
    open_ = true;
  }
  /// Whether the header of this file was the last thing read.
  [[nodiscard]] bool at_header_of(bytes_view file) const noexcept {
    return open_ && file.data() == file_.data() && file.size() == file_.size();
  }
  /// As stored.
  [[nodiscard]] image_size size() const noexcept { return {info_.image_width, info_.image_height}; }
  [[nodiscard]] orientation turned() const noexcept { return turn_.found(); }
  [[nodiscard]] J_COLOR_SPACE colours() const noexcept { return info_.jpeg_color_space; }

  /// Starts to decode a part to this colour space, of the image with its sides halved so often; the rows that
  /// follow are those of the part. Sets `first` and `width()`, the columns that are decoded, which contain
  /// the part's.
  void start(const image_part& part, J_COLOR_SPACE colours, unsigned halvings) {
    open_ = false;
    info_.out_color_space = colours;
    info_.scale_num = 1;
    info_.scale_denom = 1u << halvings;
    block_ = static_cast<JDIMENSION>(DCTSIZE) >> halvings;
    part_ = part;
    if (!attempt(&start_part, *this)) give_up();
  }
  [[nodiscard]] std::uint32_t first() const noexcept { return first_; }
  [[nodiscard]] std::uint32_t width() const noexcept { return info_.output_width; }

  /// The most rows that `read` takes at once.
  static constexpr unsigned rows_per_read = 8;
  /// Decodes the next rows; returns how many, at least one.
  unsigned read(std::span<std::uint8_t* const> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) rows_[i] = rows[i];
    wanted_ = static_cast<unsigned>(rows.size());
    if (!attempt(&read_some, *this)) give_up();
    return got_;
  }
  /// The rows before the part, which the library cannot skip: as many as `before()` says, to one row's
  /// memory.
  [[nodiscard]] std::uint32_t before() const noexcept { return part_.y - info_.output_scanline; }

  void close() noexcept {
    open_ = false;
    if (!created_) return;
    jpeg_abort_decompress(&info_);
    // The tables of one file must not decode the next.
    for (auto& table : info_.quant_tbl_ptrs) table = nullptr;
    for (auto& table : info_.dc_huff_tbl_ptrs) table = nullptr;
    for (auto& table : info_.ac_huff_tbl_ptrs) table = nullptr;
    forget_tables();
  }

 private:
  [[noreturn]] void give_up() {
    close();
    fail(scans);
  }
  void create() {
    if (created_) return;
    info_ = jpeg_decompress_struct{};
    info_.err = handlers();
    info_.client_data = static_cast<jpeg_session*>(this);
    if (!attempt(&make, *this)) {
      jpeg_destroy_decompress(&info_);
      fail();
    }
    replace_memory(*info_.mem);
    source_.init_source = [](j_decompress_ptr) {};
    source_.term_source = source_.init_source;
    source_.fill_input_buffer = [](j_decompress_ptr c) { return self(c).no_more(); };
    source_.skip_input_data = [](j_decompress_ptr c, long n) { self(c).skip(n); };
    source_.resync_to_restart = jpeg_resync_to_restart;
    info_.src = &source_;
    progress_.progress_monitor = [](j_common_ptr c) {
      jpeg_reader& r = static_cast<jpeg_reader&>(of(c));
      if (static_cast<std::uint32_t>(r.info_.input_scan_number) > r.scans) r.leave(trouble::scans);
    };
    info_.progress = &progress_;
    created_ = true;
  }
  static jpeg_reader& self(j_decompress_ptr c) noexcept { return static_cast<jpeg_reader&>(of(c)); }

  static void make(jpeg_reader& r) {
    jpeg_create_decompress(&r.info_);
    jpeg_set_marker_processor(&r.info_, JPEG_APP0 + 1, [](j_decompress_ptr c) { return self(c).app1(); });
  }
  static void read_header(jpeg_reader& r) { (void)jpeg_read_header(&r.info_, TRUE); }

  static void start_part(jpeg_reader& r) {
    jpeg_decompress_struct& c = r.info_;
    (void)jpeg_start_decompress(&c);
    const auto mcu_width = static_cast<JDIMENSION>(c.max_h_samp_factor) * r.block_;
    const auto mcu_height = static_cast<JDIMENSION>(c.max_v_samp_factor) * r.block_;
    const image_part& part = r.part_;
    r.first_ = 0;
    if (r.recover || r.smooths()) return;
    bool wide = false, high = false;  // chroma is interpolated between columns, between rows
    for (int i = 0; i < c.num_components; ++i) {
      wide = wide || c.comp_info[i].h_samp_factor != c.max_h_samp_factor;
      high = high || c.comp_info[i].v_samp_factor != c.max_v_samp_factor;
    }
    // At a scale, chroma of a quarter of the resolution is enlarged in two steps, of which the library's crop
    // knows one. Found with libjpeg-turbo 2.1.5.
    if (r.block_ != DCTSIZE && (c.max_h_samp_factor > 2 || c.max_v_samp_factor > 2)) return;
    JDIMENSION from = part.x / mcu_width * mcu_width;
    if (wide) from -= std::min(from, mcu_width);
    const JDIMENSION to = std::min(c.output_width, part.x + part.width + (wide ? mcu_width : 0));
    if (from != 0 || to != c.output_width) {
      JDIMENSION width = to - from;
      jpeg_crop_scanline(&c, &from, &width);
      r.first_ = from;
    }
    JDIMENSION skipped = part.y / mcu_height * mcu_height;
    if (high) skipped -= std::min(skipped, mcu_height);
    if (skipped != 0) (void)jpeg_skip_scanlines(&c, skipped);
  }
  static void read_some(jpeg_reader& r) {
    r.got_ = jpeg_read_scanlines(&r.info_, r.rows_.data(), r.wanted_);
    if (r.got_ == 0) r.leave(trouble::truncated);
  }

  /// Whether the library guesses coefficients of a progressive file that it lacks, from neighbours as far
  /// away as two blocks; then only a whole decode is exact. Source: libjpeg-turbo 2.1.5, jdcoefct.c,
  /// smoothing_ok.
  [[nodiscard]] bool smooths() const noexcept {
    constexpr int guessed = 10;
    if (info_.progressive_mode == FALSE || info_.coef_bits == nullptr) return false;
    for (int i = 0; i < info_.num_components; ++i)
      for (int k = 1; k < guessed; ++k)
        if (info_.coef_bits[i][k] != 0) return true;
    return false;
  }

  /// The end of the file. A baseline file may lack its last marker: only if pixels are missing too will the
  /// library warn. With several scans, nobody knows how many are missing. With arithmetic coding nobody knows
  /// whether pixels are: the decoder takes zeros for what follows a marker. Source: ITU-T T.81, D.2.6.
  boolean no_more() {
    static constexpr std::array<JOCTET, 2> end{0xff, JPEG_EOI};
    if (!ended && recover && !header_) ++damages;
    ended = true;
    if (header_ || (!recover && (info_.arith_code != FALSE || jpeg_has_multiple_scans(&info_) != FALSE)))
      leave(trouble::truncated);
    source_.next_input_byte = end.data();
    source_.bytes_in_buffer = end.size();
    return TRUE;
  }
  void skip(long n) {
    if (n <= 0) return;
    if (static_cast<std::size_t>(n) > source_.bytes_in_buffer) {
      (void)no_more();
      return;
    }
    source_.next_input_byte += n;
    source_.bytes_in_buffer -= static_cast<std::size_t>(n);
  }
  /// EXIF, of which the first block counts, and XMP.
  boolean app1() {
    if (source_.bytes_in_buffer < 2) return no_more();
    const JOCTET* const at = source_.next_input_byte;
    const std::size_t length = std::size_t{at[0]} << 8 | at[1];
    constexpr std::size_t head = 8;  // the length, and `Exif`, zero, any byte
    if (!exif_seen_ && length >= head && length <= source_.bytes_in_buffer &&
        std::memcmp(at + 2, "Exif", 5) == 0) {
      exif_seen_ = true;
      turn_.exif({reinterpret_cast<const std::byte*>(at) + head, length - head});
    }
    constexpr std::string_view xmp("http://ns.adobe.com/xap/1.0/\0", 29);
    if (length >= 2 + xmp.size() && length <= source_.bytes_in_buffer &&
        std::memcmp(at + 2, xmp.data(), xmp.size()) == 0)
      turn_.xmp({reinterpret_cast<const char*>(at) + 2 + xmp.size(), length - 2 - xmp.size()});
    skip(static_cast<long>(std::max<std::size_t>(length, 2)));
    return TRUE;
  }

  jpeg_decompress_struct info_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  bytes_view file_;
  image_part part_;
  std::array<JSAMPROW, rows_per_read> rows_{};
  std::uint32_t first_ = 0;
  JDIMENSION block_ = DCTSIZE;  // pixels of a block's side
  unsigned wanted_ = 0, got_ = 0;
  metadata_orientation turn_;
  bool created_ = false, open_ = false, header_ = false, exif_seen_ = false;
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/codec/detail/jpeg_pixels.hpp

namespace penstock::inline v0_1::detail {

/// Four channels as the file has them, which is inverted, to a pixel. Source: Pillow 9.4, JpegImagePlugin.py
/// ("assume adobe conventions"), Convert.c: cmyk2rgb and rgb2l.
template <std::size_t Channels>
void convert_cmyk(const std::uint8_t* from, std::size_t pixels, std::uint8_t* to) noexcept {
  for (std::size_t i = 0; i < pixels; ++i, from += 4, to += Channels) {
    std::array<std::uint32_t, 3> rgb{};
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t product = (255u - from[c]) * from[3] + 128;
      rgb[c] = from[3] - (((product >> 8) + product) >> 8);
    }
    if constexpr (Channels == 1) {
      to[0] = static_cast<std::uint8_t>((rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16);
    } else {
      for (std::size_t c = 0; c < 3; ++c) to[c] = static_cast<std::uint8_t>(rgb[c]);
      if constexpr (Channels == 4) to[3] = 255;
    }
  }
}

/// A lazy image of a file whose header was read. `Scratch` is the worker's: it has `reader()`, `image` and
/// `damage()`.
template <pixel_format Format, class Scratch>
class jpeg_pixels : public image_expression<jpeg_pixels<Format, Scratch>, std::uint8_t, Format::channels> {
  using base = image_expression<jpeg_pixels<Format, Scratch>, std::uint8_t, Format::channels>;

 public:
  using base::channels;
  using typename base::view_type;

  jpeg_pixels(Scratch& scratch, bytes_view file, const image_size& stored, orientation o, bool four,
              bool scales) noexcept
      : scratch_(&scratch), file_(file), stored_(stored), orientation_(o), four_(four), scales_(scales) {}

  /// As it is shown.
  [[nodiscard]] image_size size() const noexcept { return oriented(stored_, orientation_); }
  [[nodiscard]] image_scratch& memory() const noexcept { return scratch_->image; }

  /// By the DCT: 8 x 8 coefficients are decoded as 4 x 4, 2 x 2 or 1 pixel.
  [[nodiscard]] unsigned max_halvings() const noexcept { return scales_ ? 3 - halvings_ : 0; }
  [[nodiscard]] jpeg_pixels halved(unsigned times, real_part& where) const noexcept {
    jpeg_pixels smaller = *this;
    const std::uint32_t side = 1u << times;
    const auto up = [&](std::uint32_t n) { return n / side + (n % side != 0 ? 1 : 0); };
    smaller.halvings_ += times;
    smaller.stored_ = {up(stored_.width), up(stored_.height)};
    // The blocks begin at the upper left corner of the stored image, wherever that is shown.
    const orientation_steps o = steps_of(orientation_);
    const bool from_right = o.transpose ? o.flip_y : o.flip_x;
    const bool from_bottom = o.transpose ? o.flip_x : o.flip_y;
    const image_size shown = size(), now = smaller.size();
    const double scale = 1.0 / side;
    if (from_right) where.x += static_cast<double>(std::uint64_t{now.width} * side - shown.width);
    if (from_bottom) where.y += static_cast<double>(std::uint64_t{now.height} * side - shown.height);
    where = {where.x * scale, where.y * scale, where.width * scale, where.height * scale};
    return smaller;
  }

  [[nodiscard]] view_type read(const image_part& part) const {
    check(part);
    if (part.width == 0 || part.height == 0) return {};
    image_scratch& memory = scratch_->image;
    const view_type pixels = naming_codec("jpeg", [&] {
      return read_stored(stored_part(part, stored_, orientation_),
                         orientation_ == orientation::upright ? memory.pixels : memory.work);
    });
    if (orientation_ == orientation::upright) return pixels;
    auto* const turned =
        room_for<std::uint8_t>(memory.pixels, std::size_t{part.width} * part.height * channels);
    orient_pixels(pixels, orientation_,
                  destination<std::uint8_t>(
                      turned, extents(std::size_t{part.height}, std::size_t{part.width}, channels)));
    return {turned, part.size()};
  }

  void draw(const image_part& part, const destination<std::uint8_t>& into) const {
    check(part);
    if (part.width == 0 || part.height == 0) return;
    naming_codec("jpeg", [&] {
      if (orientation_ == orientation::upright)
        draw_upright(part, into);
      else
        orient_pixels(read_stored(stored_part(part, stored_, orientation_), scratch_->image.work),
                      orientation_, into);
    });
  }

 private:
  static constexpr unsigned rows_per_read = jpeg_reader::rows_per_read;
  using row_list = std::array<std::uint8_t*, rows_per_read>;

  void check(const image_part& part) const {
    if (!part.within(size()))
      throw error(errc::argument,
                  {"the part ", part.width, " x ", part.height, " at (", part.x, ", ", part.y,
                   ") does not lie within the image of ", size().width, " x ", size().height});
  }

  /// Decodes the stored part: `place(y, n, list)` says where n rows from row y of the part go, and
  /// `done(y, n, list)` follows. The lists' rows have `reader.width()` pixels.
  template <class Start, class Place, class Done>
  void rows(const image_part& part, Start&& start, Place&& place, Done&& done) const {
    jpeg_reader& reader = scratch_->reader();
    if (!reader.at_header_of(file_)) reader.open(file_);
    reader.start(part, colours(), halvings_);
    start(reader);
    const std::size_t row_bytes = std::size_t{reader.width()} * (four_ ? 4 : channels);
    row_list list{};
    if (const std::uint32_t before = reader.before(); before != 0) {
      std::uint8_t* const spare = room_for<std::uint8_t>(scratch_->image.tables, row_bytes);
      list.fill(spare);
      for (std::uint32_t left = before; left != 0;)
        left -= reader.read(std::span<std::uint8_t* const>(list).first(std::min(left, rows_per_read)));
    }
    for (std::uint32_t y = 0; y < part.height;) {
      const unsigned n = std::min(part.height - y, rows_per_read);
      place(y, n, list);
      const unsigned got = reader.read(std::span<std::uint8_t* const>(list).first(n));
      done(y, got, list);
      y += got;
    }
    if (reader.damages != 0) scratch_->damage();
    reader.close();
  }

  [[nodiscard]] view_type read_stored(const image_part& part, buffer& room) const {
    std::uint8_t* pixels = nullptr;
    std::uint8_t* four = nullptr;
    std::size_t width = 0, first = 0;
    rows(
        part,
        [&](const jpeg_reader& reader) {
          width = reader.width();
          first = part.x - reader.first();
          pixels = room_for<std::uint8_t>(room, width * part.height * channels);
          if (four_) four = room_for<std::uint8_t>(scratch_->image.dense, width * 4 * rows_per_read);
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          for (unsigned i = 0; i < n; ++i)
            list[i] = four_ ? four + i * width * 4 : pixels + (y + i) * width * channels;
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          if (!four_) return;
          for (unsigned i = 0; i < n; ++i)
            convert_cmyk<channels>(list[i], width, pixels + (y + i) * width * channels);
        });
    return {pixels + first * channels, part.size(), width * channels};
  }

  /// Straight into the destination if its pixels lie side by side and no margin is decoded; otherwise a few
  /// rows at a time.
  void draw_upright(const image_part& part, const destination<std::uint8_t>& into) const {
    const element_strides strides = into.strides();
    const bool beside = strides[2] == 1 && strides[1] == std::int64_t{channels};
    bool straight = false;
    std::uint8_t* some = nullptr;
    std::uint8_t* four = nullptr;
    std::size_t width = 0, first = 0;
    const auto destination_row = [&](std::uint32_t y) {
      return into.data() + static_cast<std::int64_t>(y) * strides[0];
    };
    rows(
        part,
        [&](const jpeg_reader& reader) {
          width = reader.width();
          first = part.x - reader.first();
          straight = beside && width == part.width && !four_;
          if (!straight)
            some = room_for<std::uint8_t>(scratch_->image.work, width * channels * rows_per_read);
          if (four_) four = room_for<std::uint8_t>(scratch_->image.dense, width * 4 * rows_per_read);
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          for (unsigned i = 0; i < n; ++i)
            list[i] = four_      ? four + i * width * 4
                      : straight ? destination_row(y + i)
                                 : some + i * width * channels;
        },
        [&](std::uint32_t y, unsigned n, row_list& list) {
          if (straight) return;
          if (four_)
            for (unsigned i = 0; i < n; ++i)
              convert_cmyk<channels>(list[i], width, some + i * width * channels);
          copy_pixels(
              view_type(some + first * channels, {part.width, n}, width * channels),
              destination<std::uint8_t>(destination_row(y),
                                        extents(std::size_t{n}, std::size_t{part.width}, channels), strides));
        });
  }

  [[nodiscard]] J_COLOR_SPACE colours() const noexcept {
    if (four_) return JCS_CMYK;
    return channels == 1 ? JCS_GRAYSCALE : channels == 3 ? JCS_RGB : JCS_EXT_RGBA;
  }

  Scratch* scratch_;
  bytes_view file_;
  image_size stored_;
  orientation orientation_;
  bool four_;    // the file has four channels
  bool scales_;  // it may be decoded smaller
  unsigned halvings_ = 0;
};

}  // namespace penstock::inline v0_1::detail

// ---- penstock/codec/jpeg.hpp

namespace penstock::inline v0_1 {

/// The per-worker memory of `jpeg`: a decompressor, created on first use, whose memory is kept from image to
/// image, and room for pixels.
class jpeg_scratch : public detail::damage_count {
 public:
  image_scratch image;  ///< room for pixels

  [[nodiscard]] detail::jpeg_reader& reader() {
    if (!reader_) reader_ = std::make_unique<detail::jpeg_reader>();
    return *reader_;
  }

 private:
  std::unique_ptr<detail::jpeg_reader> reader_;
};

/// A JPEG image whose header was read, and whose pixels are decoded when their part and place are known.
/// Valid until the worker's next `decode`.
template <pixel_format Format>
using jpeg_image = detail::jpeg_pixels<Format, jpeg_scratch>;

/// JPEG, decoded with libjpeg-turbo to `gray8`, `rgb8` or `rgba8` (alpha 255): `jpeg_as<gray8>`; `jpeg` is
/// `jpeg_as<rgb8>`.
///
/// In: any byte element. Out: a lazy image of the size as shown. `decode` reads the header only. A part is
/// decoded when it is read or drawn: up to its last row, in its columns' blocks, with the margin that
/// interpolated chroma needs, so that it equals the same part of the whole image to the pixel. Rows go
/// straight to a destination of (height, width, channels) if no margin is around them.
/// Files: baseline, progressive and, where the library was built with it, arithmetic-coded ones of 8 bits,
/// with any subsampling that it has; gray and RGB to each other with its weights; CMYK and YCCK as Pillow
/// does.
/// Pixels: those of `djpeg` and Pillow, with the accurate integer DCT and interpolated chroma. torchvision
/// calls it `decode_jpeg`, which does not turn images.
/// Kind: pointwise, keeps all guarantees. Cost per sample: the library's own; no allocation once the scratch
/// has grown. The entropy code before a part is read too, and a progressive file whole, with its coefficients
/// in memory: two bytes for each value that is stored, whatever the part. For one image the library gets at
/// most 8 times `limits.bytes` and 16 MiB more; what needs more is `errc::limit`. A progressive file's header
/// can ask for all of it, so that `limits.bytes` bounds the memory of a worker. Thread-safe, with a scratch
/// per thread.
/// Throws `errc::format` for what is no JPEG file, and for truncated, damaged, lossless and 12-bit ones (an
/// arithmetic-coded or progressive file is truncated already without its last marker);
/// `errc::limit` for sizes beyond `limits`, before anything is allocated for them, and for too many scans.
/// Damage below the part's last row is not seen. Errors that come later name the stage `decode<jpeg>` too.
/// Source: ITU-T T.81; libjpeg-turbo's libjpeg.txt.
///
///     auto images = records | decode<jpeg>(jpeg{.limits = {.width = 4096, .height = 4096}}) | batch(1);
template <pixel_format Format>
struct jpeg_as {
  static_assert(std::is_same_v<Format, gray8> || std::is_same_v<Format, rgb8> ||
                    std::is_same_v<Format, rgba8>,
                "penstock: jpeg_as<Format> decodes to gray8, rgb8 or rgba8");

  /// Of width, height and bytes.
  image_limits limits{};
  /// Turns the image as its EXIF block says.
  bool orient = true;
  /// Decodes what the library can of damaged and truncated files, and counts each of them as a warning in the
  /// run's counters; missing pixels are what the library makes of them, mostly gray. Files are then
  /// decoded from their first row on, in full width.
  bool recover = false;
  /// Lets a `resize` or `random_resized_crop` that comes directly behind the codec, and makes the image
  /// smaller with antialias, have it decoded at 1/2, 1/4 or 1/8 of its size: the smallest that is not smaller
  /// than the result. The rectangle stays the same, to fractions of a pixel; the pixels are near to those of
  /// the whole image, not equal to them. As Pillow's `draft`. Images that are not resized stay as they are.
  bool dct_scaling = false;
  /// The most scans: a progressive file of a few kilobytes can ask for hours of work.
  std::uint32_t scans = 100;

  static constexpr std::string_view codec_name = "jpeg";
  static constexpr std::string_view extensions[] = {"jpg", "jpeg", "jpe", "jfif"};
  static constexpr bool one_at_a_time = true;
  using scratch = jpeg_scratch;

  /// Whether these are the first bytes of a JPEG.
  [[nodiscard]] static bool recognises(bytes_view bytes) noexcept {
    return text_of(bytes).starts_with("\xff\xd8\xff");
  }

  template <byte_element Bytes>
  [[nodiscard]] jpeg_image<Format> decode(const Bytes& in, scratch& s) const {
    const bytes_view file = as_bytes(in);
    detail::jpeg_reader& reader = s.reader();
    reader.recover = recover;
    reader.scans = scans;
    // The coefficients of four channels take eight bytes a pixel.
    constexpr std::uint64_t spare = std::uint64_t{16} << 20;
    reader.memory_limit = std::min(limits.bytes, std::uint64_t{1} << 56) * 8 + spare;
    s.next_image();
    reader.open(file);
    detail::check_image_size(reader.size(), Format::channels, limits, codec_name);
    const J_COLOR_SPACE colours = reader.colours();
    if (colours != JCS_GRAYSCALE && colours != JCS_YCbCr && colours != JCS_RGB && colours != JCS_CMYK &&
        colours != JCS_YCCK)
      throw error(errc::format, "the jpeg file has a number of channels that is no colour: not 1, 3 or 4");
    return {s,
            file,
            reader.size(),
            orient ? reader.turned() : orientation::upright,
            colours == JCS_CMYK || colours == JCS_YCCK,
            dct_scaling};
  }
};

/// JPEG to red, green and blue.
using jpeg = jpeg_as<rgb8>;

}  // namespace penstock::inline v0_1

// ---- penstock/codec/jpeg_encoder.hpp

namespace penstock::inline v0_1 {

/// How many colour samples there are: as many as pixels, half in each row, or half in each row of every other
/// row.
enum class jpeg_chroma : std::uint8_t { full_444, half_422, quarter_420 };

/// How `jpeg_encoder` encodes.
struct jpeg_encoding {
  int quality = 90;  ///< 1 to 100, on the library's scale, which is Pillow's
  jpeg_chroma chroma = jpeg_chroma::quarter_420;
  bool progressive = false;
};

namespace detail {

class jpeg_writer : public jpeg_session {
 public:
  jpeg_writer() { memory_limit = std::numeric_limits<std::uint64_t>::max() / 4; }
  ~jpeg_writer() {
    if (created_) jpeg_destroy_compress(&info_);
  }

  void write(const std::uint8_t* pixels, const image_size& size, std::size_t pitch, int channels,
             const jpeg_encoding& how, buffer& out) {
    create();
    pixels_ = pixels;
    size_ = size;
    pitch_ = pitch;
    channels_ = channels;
    how_ = how;
    out_ = &out;
    const bool whole = attempt(&write_all, *this);
    forget();
    if (whole) return;
    if (why() == trouble::memory) throw std::bad_alloc();
    throw error(errc::argument, {"the pixels cannot be written as a jpeg file: ", reason()});
  }

 private:
  void create() {
    if (created_) return;
    info_ = jpeg_compress_struct{};
    info_.err = handlers();
    info_.client_data = static_cast<jpeg_session*>(this);
    if (!attempt(&make, *this)) {
      jpeg_destroy_compress(&info_);
      fail();
    }
    replace_memory(*info_.mem);
    target_.init_destination = [](j_compress_ptr c) { self(c).begin(); };
    target_.empty_output_buffer = [](j_compress_ptr c) -> boolean {
      self(c).put(block_bytes);
      self(c).begin();
      return TRUE;
    };
    target_.term_destination = [](j_compress_ptr c) {
      self(c).put(block_bytes - self(c).target_.free_in_buffer);
    };
    info_.dest = &target_;
    created_ = true;
  }
  /// What one image set is not for the next: the library keeps, for one, Huffman tables that it optimised.
  void forget() noexcept {
    jpeg_abort_compress(&info_);
    for (auto& table : info_.quant_tbl_ptrs) table = nullptr;
    for (auto& table : info_.dc_huff_tbl_ptrs) table = nullptr;
    for (auto& table : info_.ac_huff_tbl_ptrs) table = nullptr;
    info_.comp_info = nullptr;
    info_.script_space = nullptr;
    info_.script_space_size = 0;
    forget_tables();
  }
  static jpeg_writer& self(j_compress_ptr c) noexcept { return static_cast<jpeg_writer&>(of(c)); }
  static void make(jpeg_writer& w) { jpeg_create_compress(&w.info_); }
  static void write_all(jpeg_writer& w) {
    jpeg_compress_struct& c = w.info_;
    c.image_width = w.size_.width;
    c.image_height = w.size_.height;
    c.input_components = w.channels_;
    c.in_color_space = w.channels_ == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&c);
    jpeg_set_quality(&c, w.how_.quality, TRUE);
    if (w.channels_ == 3) {
      c.comp_info[0].h_samp_factor = w.how_.chroma == jpeg_chroma::full_444 ? 1 : 2;
      c.comp_info[0].v_samp_factor = w.how_.chroma == jpeg_chroma::quarter_420 ? 2 : 1;
    }
    if (w.how_.progressive) jpeg_simple_progression(&c);
    jpeg_start_compress(&c, TRUE);
    while (c.next_scanline < c.image_height) {
      auto* row = const_cast<JSAMPROW>(w.pixels_ + std::size_t{c.next_scanline} * w.pitch_);
      (void)jpeg_write_scanlines(&c, &row, 1);
    }
    jpeg_finish_compress(&c);
  }

  void begin() noexcept {
    target_.next_output_byte = block_.data();
    target_.free_in_buffer = block_bytes;
  }
  void put(std::size_t n) {
    bool out_of_memory = false;
    try {
      out_->append({reinterpret_cast<const std::byte*>(block_.data()), n});
    } catch (...) {
      out_of_memory = true;
    }
    if (out_of_memory) leave(trouble::memory);
  }

  static constexpr std::size_t block_bytes = std::size_t{16} << 10;
  jpeg_compress_struct info_{};
  jpeg_destination_mgr target_{};
  std::array<JOCTET, block_bytes> block_{};
  const std::uint8_t* pixels_ = nullptr;
  image_size size_;
  std::size_t pitch_ = 0;
  int channels_ = 0;
  jpeg_encoding how_;
  buffer* out_ = nullptr;
  bool created_ = false;
};

}  // namespace detail

/// Writes JPEG files: from gray pixels, or red, green and blue, with libjpeg-turbo. For tools, tests and
/// shards that are made beforehand; a `decode` needs none.
///
/// One object per thread; it keeps its memory, so that nothing is allocated from the second image of a size
/// on.
/// Cost: the library's own, and a copy of the file. Throws `errc::argument` for pixels without a size or with
/// more than 65,500 in one direction, and a quality that is not 1 to 100. torchvision calls it `encode_jpeg`.
///
///     std::uint8_t pixels[4 * 2 * 3] = {};
///     jpeg_encoder encoder;
///     bytes_view file = encoder.encode(pixel_view<std::uint8_t, 3>(pixels, {4, 2}), {.quality = 80});
class jpeg_encoder {
 public:
  /// The file, valid until the next one.
  template <std::size_t Channels>
  bytes_view encode(const pixel_view<std::uint8_t, Channels>& pixels, const jpeg_encoding& how = {}) {
    file_.clear();
    append(pixels, file_, how);
    return file_.view();
  }
  /// Appends the file to a buffer; after an error, a part of the file may be there.
  template <std::size_t Channels>
  void append(const pixel_view<std::uint8_t, Channels>& pixels, buffer& to, const jpeg_encoding& how = {}) {
    static_assert(Channels == 1 || Channels == 3, "penstock: a jpeg file has one channel or three");
    constexpr std::uint32_t maximum = JPEG_MAX_DIMENSION;
    const image_size size = pixels.size();
    if (size.width == 0 || size.height == 0 || size.width > maximum || size.height > maximum)
      throw error(errc::argument, {"jpeg_encoder: the image is ", size.width, " x ", size.height,
                                   "; give it 1 to ", maximum, " pixels in each direction"});
    if (how.quality < 1 || how.quality > 100)
      throw error(errc::argument,
                  {"jpeg_encoder: the quality is ", how.quality, "; give a number from 1 to 100"});
    if (!writer_) writer_ = std::make_unique<detail::jpeg_writer>();
    writer_->write(pixels.data(), size, pixels.pitch(), static_cast<int>(Channels), how, to);
  }

 private:
  std::unique_ptr<detail::jpeg_writer> writer_;
  buffer file_;
};

}  // namespace penstock::inline v0_1

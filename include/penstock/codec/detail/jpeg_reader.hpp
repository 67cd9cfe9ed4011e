// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/detail/jpeg_session.hpp>
#include <penstock/image/orientation.hpp>

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
    forget_tables(info_);
  }

 private:
  [[noreturn]] void give_up() {
    close();
    fail(scans);
  }
  void create() {
    if (created_) return;
    if (!make_info(info_, &make, *this)) {
      jpeg_destroy_decompress(&info_);
      fail();
    }
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

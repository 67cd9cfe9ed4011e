// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#if !__has_include(<utf8proc.h>)
#error "penstock/codec/unicode_normalizer.hpp needs utf8proc: link penstock::utf8proc"
#endif

#include <penstock/codec/text.hpp>

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// The normal forms of Unicode: composed (C) or decomposed (D), and with K the characters that are there for
/// compatibility alone, as ligatures and full-width letters, become what they stand for.
/// Source: Unicode Standard Annex 15.
enum class unicode_form { nfc, nfd, nfkc, nfkd };

namespace detail {

/// A worker's memory for normal forms.
struct normal_form_memory {
  buffer text;
  std::vector<utf8proc_int32_t> points;
  std::vector<std::uint64_t> marks;
};

/// Brings text into a normal form. Text that is in it, which most is, is only looked at; of other text the
/// parts that are not, each up to where nothing before it has an influence.
class normal_form {
 public:
  /// The one of a form, made when it is first asked for.
  [[nodiscard]] static const normal_form& of(unicode_form form) {
    switch (form) {
      case unicode_form::nfc:
        return shared<unicode_form::nfc>();
      case unicode_form::nfd:
        return shared<unicode_form::nfd>();
      case unicode_form::nfkc:
        return shared<unicode_form::nfkc>();
      default:
        return shared<unicode_form::nfkd>();
    }
  }
  normal_form(const normal_form&) = delete;
  normal_form& operator=(const normal_form&) = delete;

  /// A text, which must be UTF-8, in this form: itself, or in `memory`.
  [[nodiscard]] std::string_view apply(std::string_view text, normal_form_memory& memory) const {
    part next = find(text, 0);
    if (next.begin == text.size()) return text;
    memory.text.clear();
    std::size_t done = 0;
    for (; next.begin != text.size(); next = find(text, next.end)) {
      memory.text.append(bytes_of(text.substr(done, next.begin - done)));
      memory.points.clear();
      for (std::size_t i = next.begin; i < next.end;) {
        const character one(text, i);
        decompose(one.code, memory.points);
        i += one.size;
      }
      order(memory.points, memory.marks);
      compose(memory.points);
      char bytes[4];
      for (const utf8proc_int32_t code : memory.points) {
        const auto size = utf8proc_encode_char(code, reinterpret_cast<utf8proc_uint8_t*>(bytes));
        memory.text.append(bytes_of(std::string_view(bytes, static_cast<std::size_t>(size))));
      }
      done = next.end;
    }
    memory.text.append(bytes_of(text.substr(done)));
    return text_of(memory.text.view());
  }

 private:
  static constexpr std::uint32_t characters = 0x110000;

  struct part {
    std::size_t begin, end;
  };
  struct character {
    std::uint32_t code;
    std::size_t size;

    character(std::string_view text, std::size_t i) noexcept {
      const auto byte = [&](std::size_t k) { return std::uint32_t{static_cast<unsigned char>(text[i + k])}; };
      const auto more = [&](std::size_t k) { return byte(k) & 0x3fu; };
      size = byte(0) < 0x80 ? 1 : byte(0) < 0xe0 ? 2 : byte(0) < 0xf0 ? 3 : 4;
      code = size == 1   ? byte(0)
             : size == 2 ? (byte(0) & 0x1fu) << 6 | more(1)
             : size == 3 ? (byte(0) & 0xfu) << 12 | more(1) << 6 | more(2)
                         : (byte(0) & 7u) << 18 | more(1) << 12 | more(2) << 6 | more(3);
    }
  };

  explicit normal_form(unicode_form form)
      : composes_(form == unicode_form::nfc || form == unicode_form::nfkc),
        options_(form == unicode_form::nfc || form == unicode_form::nfd
                     ? UTF8PROC_DECOMPOSE
                     : static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT)),
        starters_(characters),
        marks_(characters) {
    // Characters that may become one with what is before them: the last ones of what others consist of.
    std::vector<bool> joins(characters);
    std::vector<utf8proc_int32_t> points;
    std::vector<std::uint64_t> memory;
    const auto each = [](const auto& use) {
      for (std::uint32_t code = 0; code < characters; ++code)
        if (code < 0xd800 || code > 0xdfff) use(code);
    };
    if (composes_)
      each([&](std::uint32_t code) {
        points.clear();
        decompose(code, points, UTF8PROC_DECOMPOSE);
        if (points.size() > 1) joins[static_cast<std::size_t>(points.back())] = true;
      });
    each([&](std::uint32_t code) {
      points.clear();
      decompose(code, points);
      order(points, memory);
      compose(points);
      if (joins[code] || points.size() != 1 || points[0] != static_cast<utf8proc_int32_t>(code)) return;
      (class_of(points[0]) == 0 ? starters_ : marks_)[code] = true;
    });
  }
  template <unicode_form Form>
  [[nodiscard]] static const normal_form& shared() {
    static const normal_form one(Form);
    return one;
  }

  [[nodiscard]] static std::uint32_t class_of(utf8proc_int32_t code) noexcept {
    return static_cast<std::uint32_t>(utf8proc_get_property(code)->combining_class);
  }
  void decompose(std::uint32_t code, std::vector<utf8proc_int32_t>& points) const {
    decompose(code, points, options_);
  }
  static void decompose(std::uint32_t code, std::vector<utf8proc_int32_t>& points,
                        utf8proc_option_t options) {
    constexpr std::size_t most = 18;  // U+FDFA, by the stability policy of Unicode for ever
    const std::size_t before = points.size();
    points.resize(before + most);
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(code), points.data() + before,
                                               most, options, nullptr);
    points.resize(before + static_cast<std::size_t>(std::clamp<utf8proc_ssize_t>(count, 0, most)));
  }
  /// Puts marks that stand one behind the other in the order of their classes. Without utf8proc's own
  /// function, whose time is the square of how many there are.
  static void order(std::vector<utf8proc_int32_t>& points, std::vector<std::uint64_t>& marks) {
    for (std::size_t i = 0; i < points.size();) {
      marks.clear();
      std::uint64_t of = 0;
      std::size_t end = i;
      for (; end < points.size() && (of = class_of(points[end])) != 0; ++end)
        marks.push_back(of << 56 | std::uint64_t{end - i} << 21 | static_cast<std::uint64_t>(points[end]));
      if (!std::ranges::is_sorted(marks)) {
        std::ranges::sort(marks);
        for (std::size_t k = i; k < end; ++k)
          points[k] = static_cast<utf8proc_int32_t>(marks[k - i] & ((1u << 21) - 1));
      }
      i = end + 1;
    }
  }
  void compose(std::vector<utf8proc_int32_t>& points) const {
    if (!composes_) return;
    const auto count =
        utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                 static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
    points.resize(static_cast<std::size_t>(count));
  }

  /// The next part that may have to change, at or behind `from`, with the character before it, which it may
  /// become one with; it ends where a character begins that has nothing to do with it. Empty, at the end, if
  /// there is none.
  [[nodiscard]] part find(std::string_view text, std::size_t from) const noexcept {
    std::size_t begin = from;
    std::uint32_t last = 0;
    for (std::size_t i = from; i < text.size();) {
      std::uint64_t eight = ~std::uint64_t{0};
      if (text.size() - i >= 8) std::memcpy(&eight, text.data() + i, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        i += 8;
        begin = i - 1;
        last = 0;
        continue;
      }
      const character one(text, i);
      if (starters_[one.code]) {
        begin = i;
        last = 0;
      } else {
        const std::uint32_t of = marks_[one.code] ? class_of(static_cast<utf8proc_int32_t>(one.code)) : 0;
        if (of < last || of == 0) return {begin, next_starter(text, i + one.size)};
        last = of;
      }
      i += one.size;
    }
    return {text.size(), text.size()};
  }
  [[nodiscard]] std::size_t next_starter(std::string_view text, std::size_t i) const noexcept {
    while (i < text.size()) {
      const character one(text, i);
      if (starters_[one.code]) break;
      i += one.size;
    }
    return i;
  }

  bool composes_;
  utf8proc_option_t options_;
  std::vector<bool> starters_;  ///< that are what they are, wherever they stand
  std::vector<bool> marks_;     ///< that are what they are, in the order of their classes
};

}  // namespace detail

/// Text in a normal form of Unicode, as Python's `unicodedata.normalize` makes it.
///
/// A function for `map`, of text that is UTF-8. Characters have the properties of the Unicode version that
/// utf8proc was built with (15 for utf8proc 2.8).
/// Kind: pointwise, keeps all guarantees. Cost per sample: a scan and a copy if the text is in the form
/// already; what is not takes n log n for n marks one behind the other. Allocates the result. The first one
/// of a form makes a table of 270 KiB, which all share. Thread-safe.
/// Throws `errc::format` with the offset for what is no UTF-8.
///
///     auto texts = lines("corpus.txt") | decode<text> | map(unicode_normalizer(unicode_form::nfc));
class unicode_normalizer {
 public:
  explicit unicode_normalizer(unicode_form form) : form_(&detail::normal_form::of(form)) {}

  [[nodiscard]] std::string operator()(std::string_view text) const {
    if (const std::size_t good = detail::valid_utf8_prefix(bytes_of(text)); good != text.size())
      throw error(errc::format,
                  {"the text is not UTF-8: found ", detail::quoted(bytes_of(text.substr(good)), 4)})
          .at_offset(good);
    detail::normal_form_memory memory;
    return std::string(form_->apply(text, memory));
  }

 private:
  const detail::normal_form* form_;
};

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/codec/layouts/npy_header.hpp>

#include <penstock/codec/layouts/number_text.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/known_formats.hpp>

#include <bit>
#include <charconv>
#include <system_error>

namespace penstock::inline v0_1::detail {

/// Reads the Python dict literal of an npy header: exactly the keys descr, fortran_order and shape, in any
/// order, with any spacing and an optional trailing comma. No recursion, and no allocation except for
/// messages.
class npy_header_parser {
 public:
  npy_header_parser(std::string_view literal, std::uint64_t base) noexcept : text_(literal), base_(base) {}

  void parse(npy_header& header) {
    expect('{');
    bool descr = false, fortran = false, shape = false;
    for (;;) {
      skip_space();
      if (peek() == '}') break;
      const std::string_view key = quoted_text();
      expect(':');
      skip_space();
      if (key == "descr") {
        once(descr, key);
        read_descr(header);
      } else if (key == "fortran_order") {
        once(fortran, key);
        header.fortran = truth();
      } else if (key == "shape") {
        once(shape, key);
        read_shape(header.shape);
      } else {
        fail("has an unknown key " + quoted(bytes_of(key)));
      }
      skip_space();
      if (peek() != ',') break;
      ++at_;
    }
    expect('}');
    skip_space();
    if (at_ != text_.size()) fail("has " + quoted(bytes_of(text_.substr(at_))) + " after its closing brace");
    if (!descr || !fortran || !shape) fail("lacks one of the keys 'descr', 'fortran_order' and 'shape'");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw error(errc::format, {"the npy header ", what}).at_offset(base_ + at_);
  }
  [[nodiscard]] char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }
  void skip_space() noexcept {
    while (at_ < text_.size() && std::string_view(" \t\n\v\f\r").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  void expect(char c) {
    skip_space();
    if (peek() != c)
      fail(std::string("should have '") + c + "' where it has " + quoted(bytes_of(text_.substr(at_)), 8));
    ++at_;
  }
  void once(bool& seen, std::string_view key) {
    if (seen) fail("has the key " + quoted(bytes_of(key)) + " twice");
    seen = true;
  }
  std::string_view quoted_text() {
    const char quote = peek();
    if (quote != '\'' && quote != '"')
      fail("should have a quoted text where it has " + quoted(bytes_of(text_.substr(at_)), 8));
    const std::size_t first = at_ + 1;
    const std::size_t last = text_.find(quote, first);
    if (last == std::string_view::npos) fail("has a text without a closing quote");
    at_ = last + 1;
    return text_.substr(first, last - first);
  }
  bool truth() {
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("should have True or False where it has " + quoted(bytes_of(text_.substr(at_)), 8));
  }
  void read_descr(npy_header& header) {
    if (peek() == '[' || peek() == '(')
      fail("describes a structured dtype, which is not supported: save the fields as arrays of their own");
    const std::string_view descr = quoted_text();
    header.descr = descr;
    std::size_t i = 0;
    if (i < descr.size() && std::string_view("<>|=").find(descr[i]) != std::string_view::npos)
      header.order = descr[i++];
    if (i < descr.size()) header.kind = descr[i++];
    if (header.kind == 'O')
      fail(
          "says dtype object, which is pickled Python code and is never read: save the array with a numeric "
          "dtype");
    const char* const end = descr.data() + descr.size();
    const auto [stop, failure] = std::from_chars(descr.data() + i, end, header.item_size);
    if (failure != std::errc{} || stop != end)
      fail("has a dtype " + quoted(bytes_of(descr)) + " that is not supported");
  }
  void read_shape(extents& shape) {
    expect('(');
    for (;;) {
      skip_space();
      if (peek() == ')') break;
      std::uint64_t length = 0;
      const char* const end = text_.data() + text_.size();
      const auto [stop, failure] = std::from_chars(text_.data() + at_, end, length);
      if (failure != std::errc{})
        fail("has a shape with " + quoted(bytes_of(text_.substr(at_)), 8) + " in it");
      if (!shape.push_back(length))
        fail("has more than " + std::to_string(extents::max_rank) +
             " dimensions, the most that is supported");
      at_ = static_cast<std::size_t>(stop - text_.data());
      if (peek() == 'L') ++at_;  // as Python 2 wrote its long integers
      skip_space();
      if (peek() != ',') break;
      ++at_;
    }
    expect(')');
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::uint64_t base_;
};

PENSTOCK_INLINE npy_header read_npy_header(bytes_view file) {
  constexpr std::string_view magic{"\x93NUMPY", 6};
  if (file.size() < 10 || text_of(file.first(6)) != magic) {
    const bool archive = text_of(file).starts_with("PK\3\4");
    throw not_a("an npy file", archive || text_of(file).starts_with(magic) ? bytes_view() : file,
                {"it begins with ", quoted(file, 8), " and not with \"\\x93NUMPY\"",
                 archive ? "; it is an archive, as .npz files are: see npz<T> and npz_rows" : ""});
  }
  const auto byte_at = [&](std::size_t i) { return std::to_integer<std::uint32_t>(file[i]); };
  const std::uint32_t major = byte_at(6);
  if (major < 1 || major > 3 || byte_at(7) != 0)
    throw error(errc::format, {"npy version ", major, ".", byte_at(7), " is not supported"}).at_offset(6);
  const std::size_t preamble = major == 1 ? 10 : 12;
  std::size_t length = byte_at(8) | byte_at(9) << 8;
  if (major > 1) {
    if (file.size() < preamble) throw error(errc::format, "the npy file ends within its header").at_offset(8);
    length |= static_cast<std::size_t>(byte_at(10) | byte_at(11) << 8) << 16;
  }
  if (length > file.size() - preamble)
    throw error(errc::format, {"the npy header says it has ", length, " bytes, but the file has only ",
                               file.size() - preamble, " more"})
        .at_offset(8);
  npy_header header;
  npy_header_parser(text_of(file.subspan(preamble, length)), preamble).parse(header);
  header.data_offset = preamble + length;
  return header;
}

PENSTOCK_INLINE std::uint64_t npy_payload(const npy_header& header) {
  std::uint64_t bytes = header.item_size;
  bool empty = false;
  for (const std::uint64_t length : header.shape) {
    empty = empty || length == 0;
    if (length != 0 && bytes > (std::uint64_t{1} << 62) / length)
      throw error(errc::format,
                  {"the npy header says shape ", to_string(header.shape), ", which no file can hold"})
          .at_offset(8);
    if (length != 0) bytes *= length;
  }
  return empty ? 0 : bytes;
}

PENSTOCK_INLINE npy_header whole_npy(bytes_view file, char kind, std::size_t item_size) {
  npy_header header = read_npy_header(file);
  if (header.kind != kind || header.item_size != item_size)
    throw error(errc::format,
                {"the npy file holds dtype '", header.descr, "', but '", kind, item_size, "' was asked for"})
        .at_offset(8);
  if (header.fortran && header.shape.rank() > 1)
    throw error(
        errc::format,
        "the npy file is in Fortran order, which is not supported: save it with numpy.ascontiguousarray")
        .at_offset(8);
  const std::size_t size = file.size() - header.data_offset;
  const std::uint64_t expected = npy_payload(header);
  if (size != expected)
    throw error(errc::format, {"the npy header says shape ", to_string(header.shape), " of '", header.descr,
                               "', which is ", expected, " bytes, but ", size, " follow it"})
        .at_offset(header.data_offset);
  return header;
}

PENSTOCK_INLINE std::vector<std::byte> npy_file(char kind, std::size_t item_size, const extents& shape,
                                                std::size_t count, bytes_view values) {
  if (shape.elements() != count)
    throw error(errc::argument, {"npy_bytes: shape ", to_string(shape), " has ", shape.elements(),
                                 " elements, but ", count, " values were given"});
  const char native = item_size == 1 ? '|' : std::endian::native == std::endian::little ? '<' : '>';
  std::string head = text({"{'descr': '", native, kind, item_size,
                           "', 'fortran_order': False, 'shape': ", to_string(shape), ", }"});
  head.append(63 - (10 + head.size()) % 64, ' ');  // numpy aligns the values to 64
  head += '\n';
  std::string preamble("\x93NUMPY\1\0", 8);
  preamble += static_cast<char>(head.size() & 0xff);
  preamble += static_cast<char>(head.size() >> 8);
  preamble += head;
  std::vector<std::byte> file(preamble.size() + values.size());
  std::memcpy(file.data(), preamble.data(), preamble.size());
  if (!values.empty()) std::memcpy(file.data() + preamble.size(), values.data(), values.size());
  return file;
}

}  // namespace penstock::inline v0_1::detail

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/sha256_list.hpp>

#include <penstock/core/error.hpp>
#include <penstock/core/to_size.hpp>
#include <penstock/storage/url.hpp>

#include <algorithm>
#include <numeric>
#include <utility>

namespace penstock::inline v0_1 {

PENSTOCK_INLINE std::string to_string(const sha256_hash& hash) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string made;
  made.reserve(2 * hash.bytes.size());
  for (const std::byte byte : hash.bytes) {
    made += digits[std::to_integer<std::size_t>(byte >> 4)];
    made += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
  }
  return made;
}

namespace detail::hashes {

/// A name without what counts for nothing at its beginning.
[[nodiscard]] PENSTOCK_INLINE std::string_view plain(std::string_view name) noexcept {
  while (name.starts_with("./")) name.remove_prefix(2);
  return name;
}

}  // namespace detail::hashes

PENSTOCK_INLINE sha256_list::sha256_list() : sha256_list(std::vector<entry>{}) {}

PENSTOCK_INLINE sha256_list::sha256_list(std::vector<entry> entries) {
  for (const entry& one : entries)
    if (detail::hashes::plain(one.name).empty() || one.name.find('\0') != std::string::npos)
      throw error(errc::argument, "the name of an object in a list of hashes is empty or has a zero byte");
  std::optional<std::size_t> repeated;
  table_ = sorted(std::move(entries), repeated);
  if (repeated)
    throw error(errc::argument, "a list of hashes has two entries for this object; give one")
        .in_file(table_->entries[*repeated].name);
}

PENSTOCK_INLINE std::optional<sha256_hash> sha256_list::find(std::string_view name) const noexcept {
  if (name.find("://") != std::string_view::npos) name = name.substr(0, name.find('?'));
  for (;;) {
    const std::string_view wanted = detail::hashes::plain(name);
    const auto found = std::lower_bound(table_->by_name.begin(), table_->by_name.end(), wanted,
                                        [&](std::size_t i, std::string_view sought) {
                                          return detail::hashes::plain(table_->entries[i].name) < sought;
                                        });
    if (found != table_->by_name.end() && detail::hashes::plain(table_->entries[*found].name) == wanted)
      return table_->entries[*found].hash;
    const std::size_t slash = wanted.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    name = wanted.substr(slash + 1);
  }
}
PENSTOCK_INLINE sha256_list::sha256_list(shared<const table> made) noexcept : table_(std::move(made)) {}

PENSTOCK_INLINE shared<const sha256_list::table> sha256_list::sorted(std::vector<entry> entries,
                                                                     std::optional<std::size_t>& repeated) {
  shared<table> made(new table());
  made->entries = std::move(entries);
  made->by_name.resize(made->entries.size());
  std::iota(made->by_name.begin(), made->by_name.end(), std::size_t{0});
  const auto name = [&](std::size_t i) { return detail::hashes::plain(made->entries[i].name); };
  std::sort(made->by_name.begin(), made->by_name.end(), [&](std::size_t a, std::size_t b) {
    const int order = name(a).compare(name(b));
    return order != 0 ? order < 0 : a < b;
  });
  for (std::size_t i = 1; i < made->by_name.size(); ++i) {
    const std::size_t later = made->by_name[i];
    if (name(made->by_name[i - 1]) == name(later)) repeated = std::min(repeated.value_or(later), later);
  }
  return made;
}

namespace detail::hashes {

/// Goes through a list, and says where it is none.
class reader {
 public:
  explicit reader(std::string_view text) noexcept : text_(text) {}
  [[nodiscard]] bool at_end() const noexcept { return at_ == text_.size(); }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }

  [[nodiscard]] sha256_list::entry line() {
    sha256_list::entry made;
    const bool escaped = took('\\');
    for (std::byte& byte : made.hash.bytes) byte = static_cast<std::byte>(next_digit() << 4 | next_digit());
    if (!took(' ')) fail("a blank after 64 hexadecimal digits");
    if (!took(' ') && !took('*')) fail("a second blank or '*'");
    const std::size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) {
      at_ = text_.size();
      fail("the end of the last line");
    }
    std::string_view name = text_.substr(at_, end - at_);
    if (name.ends_with('\r')) name.remove_suffix(1);
    if (const std::size_t zero = name.find('\0'); zero != std::string_view::npos) {
      at_ += zero;
      fail("a name without zero bytes, as sha256sum without -z writes it");
    }
    made.name = escaped ? unescaped(name) : std::string(name);
    if (plain(made.name).empty()) fail("a name");
    at_ = end + 1;
    return made;
  }
  [[noreturn, gnu::cold]] void fail(std::string_view wanted) const {
    throw error(errc::format, {"this is not what sha256sum writes, or it was cut or edited: expected ",
                               wanted, "; write the list again"})
        .at_offset(at_);
  }

 private:
  [[nodiscard]] bool took(char wanted) noexcept {
    if (at_ == text_.size() || text_[at_] != wanted) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] unsigned next_digit() {
    const int value = at_ == text_.size() ? -1 : hex_value(text_[at_]);
    if (value < 0) fail("64 hexadecimal digits");
    ++at_;
    return static_cast<unsigned>(value);
  }
  [[nodiscard]] std::string unescaped(std::string_view name) {
    std::string made;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (name[i] != '\\') {
        made += name[i];
        continue;
      }
      const char what = ++i == name.size() ? '\0' : name[i];
      if (what != 'n' && what != 'r' && what != '\\') {
        at_ += i;
        fail("n, r or a backslash after a backslash in this name");
      }
      made += what == 'n' ? '\n' : what == 'r' ? '\r' : '\\';
    }
    return made;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace detail::hashes

PENSTOCK_INLINE std::string to_string(const sha256_list& all) {
  std::string text;
  for (const sha256_list::entry& one : all.entries()) {
    const bool escaped = one.name.find_first_of("\\\n\r") != std::string::npos;
    if (escaped) text += '\\';
    text.append(to_string(one.hash)).append("  ");
    for (const char c : one.name) {
      const std::size_t which = std::string_view("\\\n\r").find(c);
      if (which == std::string_view::npos)
        text += c;
      else
        text.append(1, '\\').append(1, "\\nr"[which]);
    }
    text += '\n';
  }
  return text;
}

PENSTOCK_INLINE sha256_list sha256_list_from_string(std::string_view text) {
  detail::hashes::reader in(text);
  if (in.at_end()) in.fail("a line for each object");
  std::vector<sha256_list::entry> entries;
  std::vector<std::size_t> offsets;
  while (!in.at_end()) {
    offsets.push_back(in.at());
    entries.push_back(in.line());
  }
  std::optional<std::size_t> repeated;
  sha256_list made(sha256_list::sorted(std::move(entries), repeated));
  if (repeated)
    throw error(errc::format, {"the list has two entries for '", made.entries()[*repeated].name,
                               "'; write it again with one for each object"})
        .at_offset(offsets[*repeated]);
  return made;
}

namespace detail {

PENSTOCK_INLINE buffer only_object(session_view session, storage_facts where, std::string_view called) {
  if (where.names.size() != 1)
    throw error(errc::argument,
                {called, " is one object, and the storage has ", where.names.size(), "; name the one"});
  buffer bytes(to_size(session.size(0)));
  session.read(0, 0, bytes.span());
  return bytes;
}

}  // namespace detail
}  // namespace penstock::inline v0_1

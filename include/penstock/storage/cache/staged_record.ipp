// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/cache/staged_record.hpp>

#include <penstock/core/fingerprint.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/to_size.hpp>

#include <charconv>

namespace penstock::inline v0_1 {
namespace detail::staging {

inline constexpr std::string_view record_head = "penstock staged 1\n";

/// Takes a record apart, from its beginning to its end; `good` is false after the first wrong byte.
class record_text {
 public:
  explicit record_text(std::string_view text) noexcept : rest_(text) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] bool at_end() const noexcept { return rest_.empty(); }
  [[nodiscard]] bool take(std::string_view word) noexcept {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void expect(std::string_view word) noexcept {
    if (!take(word)) fail();
  }
  /// A number, and the character after it.
  [[nodiscard]] std::uint64_t number(char after) noexcept {
    std::uint64_t value = 0;
    const auto [end, code] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (code != std::errc()) {
      fail();
      return 0;
    }
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    expect({&after, 1});
    return value;
  }
  /// A text, with its length before it.
  [[nodiscard]] std::string text() {
    const std::uint64_t size = number(' ');
    if (size > rest_.size()) fail();
    std::string found(rest_.substr(0, good_ ? to_size(size) : 0));
    rest_.remove_prefix(found.size());
    expect("\n");
    return found;
  }
  [[nodiscard]] std::optional<whole_copy> copy() noexcept {
    whole_copy found;
    found.of.size = number(' ');
    found.of.stamp = number(' ');
    found.file.size = number(' ');
    found.file.changed = number(' ');
    found.file.inode = number(' ');
    found.file.born = number('\n');
    found.file.regular = true;
    return found;
  }

 private:
  void fail() noexcept {
    good_ = false;
    rest_ = {};
  }
  std::string_view rest_;
  bool good_ = true;
};

PENSTOCK_INLINE const whole_copy* record::copy_of(const file_facts& found) const noexcept {
  if (last && last->wrote(found)) return &*last;
  if (before && before->wrote(found)) return &*before;
  return nullptr;
}

PENSTOCK_INLINE std::string to_text(const record& what) {
  std::string all(record_head);
  append(all, {"object ", what.object.size(), " ", what.object, "\nfile ", what.file.size(), " ", what.file,
               "\n"});
  const auto add = [&all](std::string_view word, const std::optional<whole_copy>& one) {
    if (one)
      append(all, {word, one->of.size, " ", one->of.stamp, " ", one->file.size, " ", one->file.changed, " ",
                   one->file.inode, " ", one->file.born, "\n"});
  };
  add("before ", what.before);
  add("last ", what.last);
  if (what.part)
    append(all,
           {"part ", what.part->size, " ", what.part->stamp, " ", what.boot.size(), " ", what.boot, "\n"});
  append(all, {"sum ", fingerprint().add(all).value(), "\n"});
  return all;
}

PENSTOCK_INLINE std::optional<record> parse_record(std::string_view text) {
  record_text rest(text);
  record found;
  rest.expect(record_head);
  rest.expect("object ");
  found.object = rest.text();
  rest.expect("file ");
  found.file = rest.text();
  if (rest.take("before ")) found.before = rest.copy();
  if (rest.take("last ")) found.last = rest.copy();
  if (rest.take("part ")) {
    object_version part;
    part.size = rest.number(' ');
    part.stamp = rest.number(' ');
    found.part = part;
    found.boot = rest.text();
  }
  rest.expect("sum ");
  if (!rest.good()) return std::nullopt;
  const std::uint64_t sum = rest.number('\n');
  const std::size_t summed = text.rfind("sum ");
  if (!rest.good() || !rest.at_end() || sum != fingerprint().add(text.substr(0, summed)).value())
    return std::nullopt;
  return found;
}

}  // namespace detail::staging
}  // namespace penstock::inline v0_1

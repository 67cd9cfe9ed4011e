// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/braces.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail::braces {

inline constexpr std::uint64_t most_names = 10'000'000;
inline constexpr std::uint64_t most_text = std::uint64_t{1} << 30;
inline constexpr int deepest = 64;

[[noreturn]] PENSTOCK_INLINE void fail(const std::string& what, std::string_view pattern) {
  constexpr std::size_t shown = 200;
  throw error(errc::argument, {what, " in the name pattern '", pattern.substr(0, shown),
                               pattern.size() > shown ? "..." : "", "'"});
}

/// Where the text at `from` stops being inside braces: the matching '}', or npos.
PENSTOCK_INLINE std::size_t closing(std::string_view text, std::size_t from) {
  int depth = 0;
  for (std::size_t i = from; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '{') {
      ++depth;
    } else if (text[i] == '}' && --depth == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

/// The parts between the commas of this level; nested braces stay whole.
PENSTOCK_INLINE std::vector<std::string_view> split_list(std::string_view body) {
  std::vector<std::string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] == '\\') {
      ++i;
    } else if (body[i] == '{') {
      ++depth;
    } else if (body[i] == '}') {
      --depth;
    } else if (body[i] == ',' && depth == 0) {
      parts.push_back(body.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(body.substr(std::min(begin, body.size())));
  return parts;
}

PENSTOCK_INLINE std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

PENSTOCK_INLINE bool zero_padded(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0';
}

PENSTOCK_INLINE std::string padded(std::int64_t value, std::size_t width) {
  const bool negative = value < 0;
  const std::uint64_t size =
      negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits = std::to_string(size);
  const std::size_t taken = digits.size() + (negative ? 1u : 0u);
  if (taken < width) digits.insert(0, width - taken, '0');
  return negative ? "-" + digits : digits;
}

PENSTOCK_INLINE bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

/// The names `a..b` and `a..b..step` with numbers or letters.
struct range {
  std::int64_t from = 0;
  std::uint64_t count = 0;
  std::uint64_t step = 1;
  std::size_t width = 0;
  bool up = true;
  bool letters = false;

  [[nodiscard]] std::string name(std::uint64_t i) const {
    const std::uint64_t moved = up ? i * step : 0 - i * step;
    const auto value = static_cast<std::int64_t>(static_cast<std::uint64_t>(from) + moved);
    return letters ? std::string(1, static_cast<char>(value)) : padded(value, width);
  }
};

/// Nothing when the body is no range.
PENSTOCK_INLINE std::optional<range> range_of(std::string_view body, std::string_view pattern) {
  const std::size_t first_dots = body.find("..");
  if (first_dots == std::string_view::npos) return std::nullopt;
  const std::string_view low = body.substr(0, first_dots);
  std::string_view high = body.substr(first_dots + 2);
  range found;
  if (const std::size_t dots = high.find(".."); dots != std::string_view::npos) {
    const auto given = whole_number(high.substr(dots + 2));
    if (!given) return std::nullopt;
    high = high.substr(0, dots);
    found.step = *given < 0 ? 0 - static_cast<std::uint64_t>(*given) : static_cast<std::uint64_t>(*given);
    if (found.step == 0) found.step = 1;
  }
  found.letters = is_letter(low) && is_letter(high);
  const auto from = found.letters ? std::optional<std::int64_t>(low[0]) : whole_number(low);
  const auto to = found.letters ? std::optional<std::int64_t>(high[0]) : whole_number(high);
  if (!from || !to) return std::nullopt;
  found.from = *from;
  found.up = *from <= *to;
  const auto first = static_cast<std::uint64_t>(*from), last = static_cast<std::uint64_t>(*to);
  const std::uint64_t span = found.up ? last - first : first - last;
  if (span / found.step >= most_names) fail("a range of more than 10 million names", pattern);
  found.count = span / found.step + 1;
  found.width = zero_padded(low) || zero_padded(high) ? std::max(low.size(), high.size()) : 0;
  return found;
}

/// How many names a part of a pattern stands for, and at most how many characters: what is too much is
/// refused before any of it is made.
class amount {
 public:
  explicit amount(std::string_view pattern) noexcept : pattern_(pattern) {}
  static amount none(std::string_view pattern) noexcept {
    amount nothing(pattern);
    nothing.names_ = 0;
    return nothing;
  }

  void append(char) {
    text_ += names_;
    check();
  }
  void add(const amount& more) {
    names_ += more.names_;
    text_ += more.text_;
    check();
  }
  void multiply(const amount& by) {  // what is below the bounds cannot overflow
    text_ = text_ * by.names_ + by.text_ * names_;
    names_ *= by.names_;
    check();
  }
  void multiply(const range& by) {
    amount names(pattern_);
    names.names_ = by.count;
    names.text_ = by.count * std::max(by.name(0).size(), by.name(by.count - 1).size());
    multiply(names);
  }
  void enclose() {
    text_ += 2 * names_;
    check();
  }
  [[nodiscard]] std::uint64_t count() const noexcept { return names_; }
  [[nodiscard]] std::uint64_t text() const noexcept { return text_; }

 private:
  void check() const {
    if (names_ > most_names) fail("more than 10 million names", pattern_);
    if (text_ > most_text) fail("names of more than a GiB of text", pattern_);
  }

  std::string_view pattern_;
  std::uint64_t names_ = 1;
  std::uint64_t text_ = 0;
};

/// The names themselves.
class names {
 public:
  explicit names(std::string_view) : made_{std::string{}} {}
  static names none(std::string_view pattern) {
    names nothing(pattern);
    nothing.made_.clear();
    return nothing;
  }

  void append(char c) {
    for (std::string& name : made_) name += c;
  }
  void add(names more) {
    made_.insert(made_.end(), std::make_move_iterator(more.made_.begin()),
                 std::make_move_iterator(more.made_.end()));
  }
  void multiply(const names& by) {
    multiply(by.made_.size(), [&by](std::uint64_t i) -> const std::string& { return by.made_[i]; });
  }
  void multiply(const range& by) {
    multiply(by.count, [&by](std::uint64_t i) { return by.name(i); });
  }
  void enclose() {
    for (std::string& name : made_) name = "{" + name + "}";
  }
  [[nodiscard]] std::vector<std::string> take() && { return std::move(made_); }

 private:
  template <class Choice>
  void multiply(std::uint64_t choices, Choice choice) {
    std::vector<std::string> product;
    product.reserve(static_cast<std::size_t>(choices) * made_.size());
    for (const std::string& left : made_) {
      for (std::uint64_t i = 0; i < choices; ++i) product.push_back(left + choice(i));
    }
    made_ = std::move(product);
  }

  std::vector<std::string> made_;
};

/// What one level of the pattern stands for: the product of its pieces, the leftmost varying slowest.
template <class Result>
Result expand(std::string_view text, std::string_view pattern, int depth = 0) {
  if (depth > deepest) fail("braces nested more than 64 deep", pattern);
  Result out(pattern);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() &&
        std::string_view("{},\\").find(text[i + 1]) != std::string_view::npos) {
      out.append(text[++i]);
      continue;
    }
    if (c == '}') fail("a '}' without its '{' (write \\} for a literal one)", pattern);
    if (c != '{') {
      out.append(c);
      continue;
    }
    const std::size_t end = closing(text, i);
    if (end == std::string_view::npos) fail("a '{' without its '}' (write \\{ for a literal one)", pattern);
    const std::string_view body = text.substr(i + 1, end - i - 1);
    i = end;
    const auto parts = split_list(body);
    if (parts.size() > 1) {
      Result choices = Result::none(pattern);
      for (const std::string_view part : parts) choices.add(expand<Result>(part, pattern, depth + 1));
      out.multiply(choices);
    } else if (const auto choices = range_of(body, pattern)) {
      out.multiply(*choices);
    } else {  // "{x}" stands for itself in Bash
      Result inside = expand<Result>(body, pattern, depth + 1);
      inside.enclose();
      out.multiply(inside);
    }
  }
  return out;
}

PENSTOCK_INLINE expansion_size measure(std::string_view pattern) {
  const auto found = expand<amount>(pattern, pattern);
  return {found.count(), found.text()};
}

}  // namespace detail::braces

PENSTOCK_INLINE std::vector<std::string> expand_braces(std::string_view pattern) {
  (void)detail::braces::measure(pattern);
  return detail::braces::expand<detail::braces::names>(pattern, pattern).take();
}

}  // namespace penstock::inline v0_1

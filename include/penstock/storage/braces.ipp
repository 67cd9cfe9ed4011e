// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/braces.hpp>

#include <penstock/core/to_size.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <utility>

namespace penstock::inline v0_1 {

namespace detail::braces {

inline constexpr std::uint64_t max_names = 10'000'000;
inline constexpr std::uint64_t max_text = std::uint64_t{1} << 30;
inline constexpr int deepest = 64;
inline constexpr std::size_t shown = 200;  // characters of a text shown in an error

[[noreturn]] PENSTOCK_INLINE void fail(const std::string& what, std::string_view pattern) {
  throw error(errc::argument, {what, " in the name pattern '", pattern.substr(0, shown),
                               pattern.size() > shown ? "..." : "", "'"});
}

/// Where the text at `from` leaves its braces: the matching '}', or npos.
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

/// The parts between the commas of this level; nested braces stay intact.
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
  std::string digits = text({size});
  const std::size_t taken = digits.size() + (negative ? 1u : 0u);
  digits.insert(0, taken < width ? width - taken : 0, '0');
  if (negative) digits.insert(0, 1, '-');
  return digits;
}

PENSTOCK_INLINE bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

/// The range `a..b` or `a..b..step` of numbers or letters.
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

/// Empty if the body is not a range.
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
  if (span / found.step >= max_names) fail("a range of more than 10 million names", pattern);
  found.count = span / found.step + 1;
  found.width = zero_padded(low) || zero_padded(high) ? std::max(low.size(), high.size()) : 0;
  return found;
}

/// What a part of a pattern expands to: the number of names, a bound on their characters, and the names
/// themselves if wanted. A pass that only counts refuses what is too large.
class expansion {
 public:
  /// Just the empty name, or no name at all.
  expansion(std::string_view pattern, bool makes_names, bool empty = false)
      : pattern_(pattern), makes_names_(makes_names), size_{empty ? 0u : 1u, 0} {
    if (makes_names && !empty) names_.emplace_back();
  }

  void append(std::string_view text) {
    for (std::string& name : names_) name += text;
    size_.text += size_.names * text.size();
    check();
  }
  void add(expansion more) {
    for (std::string& name : more.names_) names_.push_back(std::move(name));
    size_.names += more.size_.names;
    size_.text += more.size_.text;
    check();
  }
  void add(const range& more) {
    size_.names += more.count;
    size_.text += more.count * std::max(more.name(0).size(), more.name(more.count - 1).size());
    check();
    for (std::uint64_t i = 0; makes_names_ && i < more.count; ++i) names_.push_back(more.name(i));
  }
  void multiply(const expansion& by) {  // within the bounds, nothing can overflow
    size_.text = size_.text * by.size_.names + by.size_.text * size_.names;
    size_.names *= by.size_.names;
    check();
    std::vector<std::string> product;
    if (makes_names_) product.reserve(detail::to_size(size_.names));
    for (const std::string& left : names_)
      for (const std::string& right : by.names_) product.emplace_back(left).append(right);
    names_.swap(product);
  }

  [[nodiscard]] const expansion_size& size() const noexcept { return size_; }
  [[nodiscard]] std::vector<std::string>& names() noexcept { return names_; }

 private:
  void check() const {
    if (size_.names > max_names) fail("more than 10 million names", pattern_);
    if (size_.text > max_text) fail("names of more than a GiB of text", pattern_);
  }

  std::string_view pattern_;
  bool makes_names_;
  expansion_size size_;
  std::vector<std::string> names_;
};

/// Expands one level of the pattern: the product of its pieces, the leftmost varying slowest.
PENSTOCK_INLINE expansion expand(std::string_view text, std::string_view pattern, bool makes_names,
                                 int depth = 0) {
  if (depth > deepest) fail("braces nested more than 64 deep", pattern);
  expansion out(pattern, makes_names);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '}') fail("a '}' without its '{' (write \\} for a literal one)", pattern);
    if (c != '{') {
      const bool is_escape = c == '\\' && i + 1 < text.size() &&
                             std::string_view("{},\\").find(text[i + 1]) != std::string_view::npos;
      if (is_escape) ++i;
      out.append(text.substr(i, 1));
      continue;
    }
    const std::size_t end = closing(text, i);
    if (end == std::string_view::npos) fail("a '{' without its '}' (write \\{ for a literal one)", pattern);
    const std::string_view body = text.substr(i + 1, end - i - 1);
    i = end;
    expansion choices(pattern, makes_names, true);
    const auto parts = split_list(body);
    if (parts.size() > 1) {
      for (const std::string_view part : parts) choices.add(expand(part, pattern, makes_names, depth + 1));
    } else if (const auto numbers = range_of(body, pattern)) {
      choices.add(*numbers);
    } else {  // "{x}" stands for itself in Bash
      if (body.find("..") != std::string_view::npos && body.find_first_of("{/") == std::string_view::npos) {
        fail("'{" + std::string(body.substr(0, shown)) +
                 "}' is not a range: write {first..last} or {first..last..step} with whole numbers or two "
                 "letters, "
                 "or \\{ and \\} for literal braces;",
             pattern);
      }
      out.append("{");
      choices.add(expand(body, pattern, makes_names, depth + 1));
      choices.append("}");
    }
    out.multiply(choices);
  }
  return out;
}

PENSTOCK_INLINE expansion_size measure(std::string_view pattern) {
  return expand(pattern, pattern, false).size();
}

}  // namespace detail::braces

PENSTOCK_INLINE std::vector<std::string> expand_braces(std::string_view pattern) {
  (void)detail::braces::measure(pattern);
  return std::move(detail::braces::expand(pattern, pattern, true).names());
}

}  // namespace penstock::inline v0_1

// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/error.hpp>
#include <penstock/core/text.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail::braces {

using names = std::vector<std::string>;

inline constexpr std::uint64_t most_names = 10'000'000;
inline constexpr int deepest = 64;

[[noreturn]] inline void fail(const std::string& what, std::string_view pattern) {
  throw error(errc::argument, {what, " in the name pattern '", pattern, "'"});
}

/// Where the text at `from` stops being inside braces: the matching '}', or npos.
inline std::size_t closing(std::string_view text, std::size_t from) {
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
inline std::vector<std::string_view> split_list(std::string_view body) {
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

inline std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

inline bool zero_padded(std::string_view text) {
  if (!text.empty() && text[0] == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0';
}

inline std::string padded(std::int64_t value, std::size_t width) {
  const bool negative = value < 0;
  const std::uint64_t size =
      negative ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  std::string digits = detail::text({size});
  const std::size_t taken = digits.size() + (negative ? 1u : 0u);
  if (taken < width) digits.insert(0, width - taken, '0');
  if (negative) digits.insert(digits.begin(), '-');
  return digits;
}

inline bool is_letter(std::string_view text) {
  return text.size() == 1 && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
}

/// `a..b` and `a..b..step` with numbers or letters; false when the body is no range.
inline bool range(std::string_view body, std::string_view pattern, names& out) {
  const std::size_t first_dots = body.find("..");
  if (first_dots == std::string_view::npos) return false;
  const std::string_view low = body.substr(0, first_dots);
  std::string_view high = body.substr(first_dots + 2);
  std::uint64_t step = 1;
  if (const std::size_t dots = high.find(".."); dots != std::string_view::npos) {
    const auto given = whole_number(high.substr(dots + 2));
    if (!given) return false;
    high = high.substr(0, dots);
    step = *given < 0 ? 0 - static_cast<std::uint64_t>(*given) : static_cast<std::uint64_t>(*given);
    if (step == 0) step = 1;
  }
  const bool letters = is_letter(low) && is_letter(high);
  const auto from = letters ? std::optional<std::int64_t>(low[0]) : whole_number(low);
  const auto to = letters ? std::optional<std::int64_t>(high[0]) : whole_number(high);
  if (!from || !to) return false;
  const bool up = *from <= *to;
  const std::uint64_t span = up ? static_cast<std::uint64_t>(*to) - static_cast<std::uint64_t>(*from)
                                : static_cast<std::uint64_t>(*from) - static_cast<std::uint64_t>(*to);
  if (span / step >= most_names) fail("a range of more than 10 million names", pattern);
  const std::size_t width = zero_padded(low) || zero_padded(high) ? std::max(low.size(), high.size()) : 0;
  out.reserve(static_cast<std::size_t>(span / step) + 1);
  for (std::uint64_t i = 0; i <= span / step; ++i) {
    const std::uint64_t moved = i * step;
    const auto value =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(*from) + (up ? moved : 0 - moved));
    out.push_back(letters ? std::string(1, static_cast<char>(value)) : padded(value, width));
  }
  return true;
}

/// What one level of the pattern stands for: the product of its pieces, the leftmost varying slowest.
inline names expand(std::string_view text, std::string_view pattern, int depth) {
  if (depth > deepest) fail("braces nested more than 64 deep", pattern);
  names out{std::string{}};
  const auto append = [&out](char c) {
    for (std::string& name : out) name += c;
  };
  const auto multiply = [&out, pattern](const names& choices) {
    if (choices.size() * out.size() > most_names) fail("more than 10 million names", pattern);
    names product;
    product.reserve(choices.size() * out.size());
    for (const std::string& left : out) {
      for (const std::string& right : choices) product.push_back(left + right);
    }
    out = std::move(product);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() &&
        std::string_view("{},\\").find(text[i + 1]) != std::string_view::npos) {
      append(text[++i]);
      continue;
    }
    if (c == '}') fail("a '}' without its '{' (write \\} for a literal one)", pattern);
    if (c != '{') {
      append(c);
      continue;
    }
    const std::size_t end = closing(text, i);
    if (end == std::string_view::npos) fail("a '{' without its '}' (write \\{ for a literal one)", pattern);
    const std::string_view body = text.substr(i + 1, end - i - 1);
    i = end;
    const auto parts = split_list(body);
    names choices;
    if (parts.size() > 1) {
      for (const std::string_view part : parts) {
        names some = expand(part, pattern, depth + 1);
        if (choices.size() + some.size() > most_names) fail("more than 10 million names", pattern);
        choices.insert(choices.end(), std::make_move_iterator(some.begin()),
                       std::make_move_iterator(some.end()));
      }
    } else if (!range(body, pattern, choices)) {  // "{x}" stands for itself in Bash
      choices = expand(body, pattern, depth + 1);
      for (std::string& name : choices) name = detail::text({"{", name, "}"});
    }
    multiply(choices);
  }
  return out;
}

}  // namespace detail::braces

/// The names that a pattern in the manner of Bash stands for: `train-{0000..0127}.tar` is 128 names.
///
/// Ranges of numbers keep the zero padding of their wider end (`{000..123}`), may have a step (`{0..10..2}`)
/// and may go down;
/// ranges of single letters, lists (`{train,val}`), nesting and several groups work as in Bash, the leftmost
/// group varying slowest. `{x}` without comma or range stands for itself; `\{ \} \, \\` are literal.
/// Throws errc::argument for braces without their partner, and for more than 10 million names.
/// Source: Bash reference manual, "Brace Expansion"; what WebDataset's shard patterns mean.
[[nodiscard]] inline std::vector<std::string> expand_braces(std::string_view pattern) {
  return detail::braces::expand(pattern, pattern, 0);
}

}  // namespace penstock::inline v0_1

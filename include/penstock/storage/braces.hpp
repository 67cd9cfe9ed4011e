// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

namespace detail::braces {

/// How many names a pattern stands for, and at most how many characters.
struct expansion_size {
  std::uint64_t names = 0;
  std::uint64_t text = 0;
};
/// What `expand_braces` would make, or the error it would throw, before any of it is made.
[[nodiscard]] expansion_size measure(std::string_view pattern);

}  // namespace detail::braces

/// The names that a pattern in the manner of Bash stands for: `train-{0000..0127}.tar` is 128 names.
///
/// Ranges of numbers keep the zero padding of their wider end (`{000..123}`), may have a step (`{0..10..2}`)
/// and may go down;
/// ranges of single letters, lists (`{train,val}`), nesting and several groups work as in Bash, the leftmost
/// group varying slowest. `{x}` without comma or range stands for itself; `\{ \} \, \\` are literal.
/// Throws errc::argument for braces without their partner, for a range that is none (`{0..}`, `{1..b}`), and,
/// before any name is made, for more than 10 million names or a GiB of text.
/// Source: Bash reference manual, "Brace Expansion"; what WebDataset's shard patterns mean.
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/braces.ipp>
#endif

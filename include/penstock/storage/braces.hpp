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

/// How many names a pattern expands to, and an upper bound on their characters.
struct expansion_size {
  std::uint64_t names = 0;
  std::uint64_t text = 0;
};
/// What `expand_braces` would produce, or the error it would throw, without making any name.
[[nodiscard]] expansion_size measure(std::string_view pattern);

}  // namespace detail::braces

/// Expands a pattern as Bash does: `train-{0000..0127}.tar` is 128 names.
///
/// Ranges of numbers keep the zero padding of their wider end (`{000..123}`), may have a step (`{0..10..2}`),
/// and may count down; ranges of single letters, lists (`{train,val}`), nesting and several groups work as in
/// Bash, with the leftmost group varying slowest. `{x}` without a comma or range stands for itself; `\{ \} \,
/// \\` are literal.
/// Throws errc::argument for unbalanced braces, for an invalid range (`{0..}`, `{1..b}`), and, before making
/// any name, for more than 10 million names or a GiB of text.
/// Source: Bash reference manual, "Brace Expansion"; what WebDataset's shard patterns mean.
[[nodiscard]] std::vector<std::string> expand_braces(std::string_view pattern);

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/braces.ipp>
#endif

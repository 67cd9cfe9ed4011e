// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/any_seed.hpp>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace penstock::inline v0_1 {

namespace detail {
struct split_fn;
}

/// A split of a dataset by its name, as sources take it behind the folder; `split("train")` makes one.
class named_split {
 public:
  std::string name;

 private:
  friend detail::split_fn;
  // Two arguments, so that options in braces, `{{"png"}}`, are not taken for a name.
  named_split(std::string_view called, int) : name(called) {}
};

namespace detail {

/// `order/split.hpp` says what the stage is.
template <class Fraction>
struct split_stage_of {
  static_assert(!std::same_as<Fraction, Fraction>,
                "penstock: split(fraction, seed(7)) needs #include <penstock/order/split.hpp>");
};

struct split_fn {
  [[nodiscard]] named_split operator()(std::string_view name) const { return {name, 0}; }
  template <class Fraction>
    requires std::is_arithmetic_v<Fraction>
  [[nodiscard]] auto operator()(Fraction fraction, any_seed seed) const {
    return typename split_stage_of<Fraction>::type(static_cast<double>(fraction), seed.value());
  }
};

}  // namespace detail

/// `split("train")` names a split that the dataset's files have, and stands behind the folder of a source:
/// `parquet(folder, split("train"))`. `split(0.9, seed(7))` is a stage that splits at random; see
/// `split_stage`.
///
/// Names of splits are found as Hugging Face's `datasets` does it, and upper case makes no difference:
/// * files `data/<name>-00000-of-00004.parquet`: any names;
/// * otherwise folders called after a split: "train", "my-train", "train_images";
/// * otherwise files called after one: "train.parquet", "imdb-test-00000-of-00001.arrow".
/// "train" is also "training"; "validation" is "valid", "val" and "dev"; "test" is "testing", "eval" and
/// "evaluation"; around such a word stand only `-`, `.`, `_`, blanks, digits, or nothing. Any other name is a
/// word of its own, or all that stands in front of "-00000-of-00004". `split("all")` reads every file as one
/// dataset.
/// Sources that find several splits in a folder, or in a storage, and were not told which to read throw
/// `errc::argument`, with the names. A split that is not there is `errc::missing`. Patterns and lists of
/// paths are taken as they are.
/// Source: Hugging Face, datasets 5.2, `data_files.py`.
///
///     auto train = directory("imagenet", split("train")) | shuffle(seed(1));
inline constexpr detail::split_fn split{};

}  // namespace penstock::inline v0_1

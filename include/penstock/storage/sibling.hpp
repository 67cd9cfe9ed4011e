// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/core/compiled.hpp>
#include <penstock/storage/concepts.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace penstock::inline v0_1 {

/// How the name of a file that lies beside an object is made of the object's name.
///
///     const bool added = sibling{".idx"}.of("a/train-0.tar") == "a/train-0.tar.idx";
///     const bool put_instead = sibling{".idx", true}.of("a/train-0.tar.gz") == "a/train-0.idx";
struct sibling {
  std::string_view suffix;  ///< a constant: the text must outlive the value
  /// Whether it stands instead of the extensions: the last part of the name is cut at its first dot, except a
  /// leading one.
  bool instead = false;

  [[nodiscard]] std::string of(std::string_view name) const;
  friend bool operator==(const sibling&, const sibling&) = default;
};

/// A storage that can name the files beside its objects.
///   beside(which)                   a storage of the same kind and with the same options, whose object i is the sibling of
///                                   object i. Sends nothing; an object that is not there is an error that recurs, as in any
///                                   storage
template <class S>
concept sibling_storage = storage<S> && requires(const S& s, sibling which) {
  { s.beside(which) } -> std::same_as<S>;
};

}  // namespace penstock::inline v0_1

#ifndef PENSTOCK_COMPILED
#include <penstock/storage/sibling.ipp>
#endif

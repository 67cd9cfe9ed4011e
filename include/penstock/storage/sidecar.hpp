// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/storage/concepts.hpp>

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::inline v0_1 {

/// How the name of a file that lies beside an object is made of the object's name.
///
///     const bool added = sidecar{".idx"}.of("a/train-0.tar") == "a/train-0.tar.idx";
///     const bool put_instead = sidecar{".idx", true}.of("a/train-0.tar.gz") == "a/train-0.idx";
struct sidecar {
  std::string_view suffix;  ///< a constant: the text must outlive the value
  /// Whether it stands instead of the extensions: the last part of the name is cut at its first dot, except a
  /// leading one.
  bool instead = false;

  [[nodiscard]] std::string of(std::string_view name) const {
    if (instead) {
      const std::size_t slash = name.rfind('/');
      const std::size_t second = slash == std::string_view::npos ? 1 : slash + 2;
      name = name.substr(0, name.find('.', second));
    }
    return std::string(name).append(suffix);
  }
  [[nodiscard]] std::vector<std::string> of_each(std::span<const std::string> names) const {
    std::vector<std::string> made;
    for (const std::string& name : names) made.push_back(of(name));
    return made;
  }
  friend bool operator==(const sidecar&, const sidecar&) = default;
};

/// Whether a storage can name the files beside its objects.
///   sidecars(which)                   a storage of the same kind and with the same options, whose object i is the sidecar of
///                                   object i. Sends nothing; an object that is not there is an error that recurs, as in any
///                                   storage
template <storage S>
[[nodiscard]] constexpr bool has_sidecars() noexcept {
  return requires(const S& s, sidecar which) {
    { s.sidecars(which) } -> std::same_as<S>;
  };
}

}  // namespace penstock::inline v0_1

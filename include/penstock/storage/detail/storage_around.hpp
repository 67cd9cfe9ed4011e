// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/message.hpp>
#include <penstock/storage/concepts.hpp>
#include <penstock/storage/sidecar.hpp>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace penstock::inline v0_1::detail {

/// A storage around another one, which has its names: `Derived` adds `session` and `connect`. Sidecars and
/// objects with other names are those of the storage inside, with the same around them.
/// With `HidesPaths` names do not count as paths, and sidecars are found by their names, too.
template <class Derived, storage Storage, bool HidesPaths = false>
class storage_around {
 public:
  static constexpr bool names_are_paths = !HidesPaths && is_local<Storage>();

  [[nodiscard]] std::span<const std::string> names() const { return inner_->names(); }
  /// Whether the names are paths in the local file system; see `is_local`.
  [[nodiscard]] bool local() const { return !HidesPaths && is_local(*inner_); }
  /// See `has_sidecars`.
  [[nodiscard]] Derived sidecars(sidecar which) const
    requires(has_sidecars<Storage>() || (HidesPaths && renaming_storage<Storage>))
  {
    if constexpr (has_sidecars<Storage>())
      return around(inner_->sidecars(which));
    else
      return with_names(which.of_each(names()));
  }
  /// See `renaming_storage`.
  [[nodiscard]] Derived with_names(std::vector<std::string> names) const
    requires renaming_storage<Storage>
  {
    return around(inner_->with_names(std::move(names)));
  }

 protected:
  explicit storage_around(Storage where) : inner_(new Storage(std::move(where))) {}

  [[nodiscard]] const Storage& inner() const noexcept { return *inner_; }
  /// "retrying(file(a.tar), 5 attempts)".
  [[nodiscard]] std::string describe_as(std::string_view name, std::string_view how) const {
    std::string inside = "a storage";
    if constexpr (requires { inner_->describe(); }) inside = inner_->describe();
    return text({name, "(", inside, ", ", how, ")"});
  }
  /// What `Derived` forgets of the objects when it is put around others.
  void change_objects() noexcept {}

 private:
  [[nodiscard]] Derived around(Storage other) const {
    Derived made = static_cast<const Derived&>(*this);
    static_cast<storage_around&>(made).inner_.reset(new Storage(std::move(other)));
    made.change_objects();
    return made;
  }

  shared<const Storage> inner_;  // shared, since a storage need not be assignable
};

}  // namespace penstock::inline v0_1::detail

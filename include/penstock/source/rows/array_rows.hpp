// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <penstock/base/shared.hpp>
#include <penstock/core/error.hpp>
#include <penstock/core/message.hpp>
#include <penstock/core/projection.hpp>
#include <penstock/core/tensor.hpp>
#include <penstock/source/files/stored_files.hpp>
#include <penstock/source/manifest.hpp>
#include <penstock/storage/concepts.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace penstock::inline v0_1 {
namespace detail {

template <std::uint64_t... Lengths>
struct row_shape {
  using type = known_shape<Lengths...>;
  static constexpr const extents* wanted = &type::static_shape;
  static constexpr type of(const extents&) noexcept { return {}; }
};
template <>
struct row_shape<> {
  using type = given_shape;
  static constexpr const extents* wanted = nullptr;
  static type of(const extents& found) noexcept { return {found}; }
};

/// What a run keeps for files of arrays: nothing but whether they are used. `Files` has
///   row, row_bytes            the shape and the bytes of a row
///   number(place, document)   of a row in its file, for keys; `document` remembers what was found last
///   offset(place, number)     where it begins
///   swapped(shard)            whether the byte order is not this machine's
template <class Files, class T, class Shape, class Session>
class array_rows {
 public:
  using element = stored_array<T, typename Shape::type, Session>;
  struct worker : values_worker<Session> {
    std::size_t document = 0;
    std::uint64_t offset = 0;  // of the current row
  };

  array_rows(const shared<const Files>& files, const projection& used) noexcept
      : files_(files.get()), used_(!used.nothing()) {}

  /// Whether files are opened.
  [[nodiscard]] bool reads() const noexcept { return used_; }
  [[nodiscard]] std::uint64_t bytes_per_sample() const noexcept { return used_ ? files_->row_bytes : 0; }
  void enter(Session&, std::size_t, worker&) const noexcept {}
  [[nodiscard]] element open(Session& session, const manifest::place& at, worker& w) const {
    w.offset = files_->offset(at, files_->number(at, w.document));
    return element(Shape::of(files_->row), session, files_->object(at.shard), w.offset, w,
                   files_->swapped(at.shard));
  }
  [[nodiscard]] bool needs_confirm(const worker&) const noexcept { return used_; }
  void add_context(error& e, Session&, const manifest::place& at, const worker& w) const {
    e.in_file(files_->path(at.shard)).at_offset(w.offset);
  }
  /// The file and the row's number in it: "features.npy:17".
  [[nodiscard]] std::string key(Session&, const manifest::place& at) const {
    std::size_t document = 0;
    return text({files_->path(at.shard), ":", files_->number(at, document)});
  }
  template <class Sink>
  void ranges(Session& session, object_id object, const manifest::place& at, Sink&& sink) const {
    std::size_t document = 0;
    if (used_) sink(session, object, files_->offset(at, files_->number(at, document)), files_->row_bytes);
  }

 private:
  const Files* files_;  // which the reader holds
  bool used_;
};

}  // namespace detail
}  // namespace penstock::inline v0_1
